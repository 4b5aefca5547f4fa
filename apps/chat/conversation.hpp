// apps/chat/conversation.hpp -- what has been said, and how the next answer is
// to be sampled; as a request, and as a file.
//
// A file is a JSON object with "model" and "messages", each with "role" and
// "content", as requests have them.
//
// Threads: one. Errors: failures name the file or the setting.
#pragma once

#include "apps/chat/chat_options.hpp"
#include "runtime/core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::apps {

namespace chat_limits {
/// Of one question. A context of 128 Ki tokens is half a MiB of English.
inline constexpr std::size_t question_bytes_max = 4 << 20;
/// Of a saved chat, and of the messages in one.
inline constexpr std::size_t file_bytes_max = 64 << 20;
inline constexpr std::size_t messages_max = 10000;
/// Lines of questions that are remembered over chats.
inline constexpr int history_lines_max = 1000;
inline constexpr std::size_t history_bytes_max = 8 << 20;
} // namespace chat_limits

struct chat_message {
  std::string role; ///< "user" or "assistant"
  std::string content;
};

class conversation {
public:
  /// @param settings are those that a chat begins with
  explicit conversation(chat_settings settings)
    : settings_(std::move(settings)) {}

  const chat_settings& settings() const noexcept { return settings_; }
  void set_system(std::string text) { settings_.system = std::move(text); }
  /// Changes "temperature", "top_p", "max_tokens" or "seed"; an empty value
  /// leaves it to the model.
  [[nodiscard]] model::status
  set(const std::string& name, const std::string& value);
  /// "temperature 0.7, seed unset, ..."
  [[nodiscard]] std::string settings_text() const;

  const std::vector<chat_message>& messages() const noexcept { return said_; }
  void ask(std::string question);
  void answer(std::string text);
  /// Takes back what was said after the last question, and that question.
  /// @returns it; empty: there is none
  std::string take_back();
  /// Forgets all messages; settings stay.
  void clear() { said_.clear(); }

  /// The body of a request for a stream.
  [[nodiscard]] std::string request(const std::string& model) const;

  /// Writes a file (mode 0600); replaces only a saved chat.
  [[nodiscard]] model::status
  save(const std::filesystem::path& file, const std::string& model) const;
  /// Replaces messages and system text by those of a file.
  [[nodiscard]] model::status load(const std::filesystem::path& file);

private:
  chat_settings settings_;
  std::vector<chat_message> said_;
};

} // namespace shoal::apps
