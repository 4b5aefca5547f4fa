// apps/chat/line_reader.hpp -- lines that somebody types, with a history.
//
// The history is a file of mode 0600, with the last
// chat_limits::history_lines_max questions.
//
// Threads: one object in a process, used by one thread.
// Errors:  a history that cannot be read or written is done without.
#pragma once

#include "apps/chat/chat_interrupts.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace shoal::apps {

class line_reader {
public:
  /// @pre stdin and stdout are a terminal
  line_reader(std::filesystem::path history, chat_interrupts& interrupts);
  ~line_reader(); ///< gives the terminal back as it was
  line_reader(const line_reader&) = delete;
  line_reader& operator=(const line_reader&) = delete;

  enum class got {
    line,
    interrupted,       ///< Ctrl-C: what was typed is dropped
    interrupted_empty, ///< the same, and nothing was typed
    end,               ///< Ctrl-D, or the terminal is gone
  };
  /// Reads a line without its end.
  got read(const std::string& prompt, std::string& line);
  /// Adds a question to the history, and saves it.
  void remember(const std::string& question);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace shoal::apps
