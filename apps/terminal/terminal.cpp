// apps/terminal/terminal.cpp -- escape sequences for redrawing a page.
#include "apps/terminal/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace shoal::apps {
namespace {

constexpr const char* home = "\x1b[H";
constexpr const char* clear_line = "\x1b[K"; ///< from the cursor to the end of
                                             ///< the line
constexpr const char* clear_rest = "\x1b[J"; ///< and all below

/// The first characters of UTF-8 text. Wide ones count as one: a name in such a
/// script may make the line wrap.
std::string_view first(std::string_view text, int columns) {
  std::size_t end = 0;
  for (int n = 0; n < columns && end < text.size(); ++n)
    do
      ++end;
    while (end < text.size()
           && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return text.substr(0, end);
}

} // namespace

bool stdout_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

std::optional<terminal_size> stdout_size() {
  winsize w{};
  if (!::isatty(STDOUT_FILENO))
    return std::nullopt;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0
      || w.ws_row == 0)
    return terminal_size{80, 24}; // its size is unknown
  return terminal_size{w.ws_col, w.ws_row};
}

std::string redraw(const std::string& text, terminal_size size) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.data() + begin, end - begin);
    begin = end + 1;
  }
  // The cursor stays after the last line: one row is left for it.
  const auto room = static_cast<std::size_t>(std::max(size.rows - 1, 1));
  std::string more;
  if (lines.size() > room) {
    more = "... " + std::to_string(lines.size() - room + 1)
           + " more lines do not fit this window";
    lines.resize(room - 1);
    lines.emplace_back(more);
  }
  std::string out = home;
  for (const std::string_view& line : lines)
    (out += first(line, size.columns)).append(clear_line).append("\n");
  return out + clear_rest;
}

} // namespace shoal::apps
