// runtime/model/hf/chat_template.hpp -- how a model writes conversations.
//
// From chat_template.jinja, else from "chat_template" of tokenizer_config.json:
// one template, or a list of named ones, of which "tool_use" is taken for
// conversations with tools, "default" for others. The template gets what
// transformers gives it: messages, tools, documents, add_generation_prompt, the
// special tokens by name (bos_token and the like), and the client's own
// variables, which do not hide those.
//
// Before that, messages are brought into the form that templates expect: the
// arguments of a tool call as an object rather than as its JSON; content that
// consists of texts as one text (lines of its parts), unless the template knows
// parts, which is tried once with each.
//
// Threads: immutable.
// Errors:  a failure names the file and the line; fault says whose mistake it is.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/jinja/template.hpp"

#include <nlohmann/json.hpp>

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::model {

class chat_template {
public:
  /// @param config  the text of tokenizer_config.json, "" for none
  /// @param file    the text of chat_template.jinja, "" for none
  /// @returns nothing if neither has a template
  static result<std::optional<chat_template>>
  parse(std::string_view config, std::string_view file);

  struct input {
    nlohmann::ordered_json messages;  ///< a list of objects
    nlohmann::ordered_json tools;     ///< a list of objects; null: none
    nlohmann::ordered_json documents; ///< the same
    nlohmann::ordered_json variables; ///< an object; null: none
    bool add_generation_prompt = true;
    /// The text ends within the last message, which the model goes on with.
    bool continue_final_message = false;
    std::tm now{}; ///< for strftime_now
  };
  /// @returns the text; with `why` set on a failure
  std::optional<jinja::marked_text>
  render(input from, jinja::text_template::fault& why) const;

  /// Whether the text of the template mentions this, such as "<tool_call>".
  bool mentions(std::string_view text) const {
    return source_.find(text) != source_.npos;
  }

private:
  chat_template(jinja::text_template usual) : usual_(std::move(usual)) {}
  const jinja::text_template& template_for(const input& from) const;
  bool takes(const nlohmann::ordered_json& content) const;

  std::string source_;
  jinja::text_template usual_;
  std::optional<jinja::text_template> with_tools_;
  nlohmann::ordered_json tokens_; ///< special tokens by name
  bool takes_texts_ = true;
  bool takes_parts_ = false;
};

/// Reads the files of a directory.
result<std::optional<chat_template>>
load_chat_template(const std::filesystem::path& directory);

} // namespace shoal::model
