// apps/chat/chat_screen.cpp -- dim and plain text on stdout.
#include "apps/chat/chat_screen.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

namespace shoal::apps {
namespace {

constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

/// See no-color.org; and a terminal may not know more than text.
bool may_dim() {
  const char* const none = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return (none == nullptr || *none == 0) && term != nullptr && *term != 0
         && std::string_view(term) != "dumb";
}

} // namespace

chat_screen::chat_screen(bool json)
  : json_(json), terminal_(!json && isatty(STDOUT_FILENO) == 1),
    dims_(terminal_ && may_dim()) {
}

bool chat_screen::open() const {
  return bool(std::cout);
}

void chat_screen::write(const std::string& text) {
  if (text.empty())
    return;
  const std::string shown =
    terminal_ ? core::shown(text, core::line_ends::kept) : text;
  line_open_ = !shown.ends_with('\n');
  std::cout << shown << std::flush;
}

void chat_screen::to(open_text next) {
  if (open_ == next)
    return;
  if (dims_ && open_ == open_text::thoughts)
    std::cout << plain;
  if (open_ != open_text::none && line_open_)
    write("\n");
  if (dims_ && next == open_text::thoughts)
    std::cout << dim;
  open_ = next;
}

void chat_screen::piece(const std::string& text, bool thought) {
  if (json_) {
    std::cout << model::json_text(chat_piece(text, thought)) << std::endl;
    return;
  }
  if (thought && !terminal_)
    return;
  to(thought ? open_text::thoughts : open_text::answer);
  write(text);
}

void chat_screen::end(const chat_answer& a, const std::string& model) {
  if (json_) {
    std::cout << model::json_text(chat_done(a, model)) << std::endl;
    return;
  }
  to(open_text::none);
  std::cout << std::flush;
  if (a.tokens() > 0)
    note("[" + speed_text(a) + "]");
}

void chat_screen::note(const std::string& line) {
  if (terminal_)
    std::cout << (dims_ ? dim : "") << core::shown(line, core::line_ends::kept)
              << (dims_ ? plain : "") << std::endl;
}

void chat_screen::progress(const std::string& line, bool is_long) {
  if (terminal_)
    note(line);
  else if (is_long)
    trouble(line);
}

void chat_screen::trouble(const std::string& line) {
  std::cerr << "shoal: " << line << "\n";
}

} // namespace shoal::apps
