// apps/chat/chat_screen.hpp -- what stdout shows of an answer.
//
// On a terminal thoughts and the program's own lines are dim, and no control
// character of a text arrives. A file or a pipe gets the answer as it is, and
// nothing else. With --json it gets an event for each piece.
//
// Threads: one.
#pragma once

#include "apps/chat/chat_answer.hpp"

#include <string>

namespace shoal::apps {

class chat_screen {
public:
  /// @param json prints events
  explicit chat_screen(bool json);

  bool is_terminal() const noexcept { return terminal_; }
  /// More of an answer, or of the thoughts before it.
  void piece(const std::string& text, bool thought);
  /// The answer is there, or has been stopped.
  void end(const chat_answer& a, const std::string& model);
  /// A line of the program: on a terminal only.
  void note(const std::string& line);
  /// What it waits for: on a terminal; elsewhere an error line, once the waiting is
  /// long.
  void progress(const std::string& line, bool is_long);
  /// The same for something that went wrong: an error line elsewhere.
  void trouble(const std::string& line);
  /// Whether somebody reads what is written.
  bool open() const;

private:
  enum class open_text { none, answer, thoughts };
  void to(open_text next);
  void write(const std::string& text);

  bool json_;
  bool terminal_;
  bool dims_;
  open_text open_ = open_text::none;
  bool line_open_ = false;
};

} // namespace shoal::apps
