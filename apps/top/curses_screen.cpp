// apps/top/curses_screen.cpp -- the only file that knows ncurses.
#include "apps/top/curses_screen.hpp"

// Before the header: functions for wide characters, and no macros like `clear`.
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <langinfo.h>
#include <ncurses.h>

#include <clocale>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace shoal::apps {
namespace {

enum colour_pair : short {
  good_pair = 1,
  warning_pair,
  bad_pair,
  heading_pair
};

/// Texts are UTF-8. Only the classes of characters follow the user's locale:
/// numbers are written and read with a point. A locale without UTF-8 is most often
/// none at all, on a terminal that has it.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

void use_colours() {
  // https://no-color.org: set and not empty.
  const char* none = std::getenv("NO_COLOR");
  if ((none != nullptr && *none != 0) || !has_colors())
    return;
  start_color();
  use_default_colors();
  init_pair(good_pair, COLOR_GREEN, -1);
  init_pair(warning_pair, COLOR_YELLOW, -1);
  init_pair(bad_pair, COLOR_RED, -1);
  init_pair(heading_pair, COLOR_CYAN, -1);
}

attr_t attributes_of(tone is, short& pair) {
  pair = 0;
  switch (is) {
  case tone::plain:
    return A_NORMAL;
  case tone::dim:
    return A_DIM;
  case tone::title:
    return A_BOLD;
  case tone::heading:
    pair = heading_pair;
    return A_NORMAL;
  case tone::chosen:
    return A_REVERSE;
  case tone::good:
    pair = good_pair;
    return A_NORMAL;
  case tone::warning:
    pair = warning_pair;
    return A_BOLD;
  case tone::bad:
    pair = bad_pair;
    return A_BOLD;
  }
  return A_NORMAL;
}

top_key key_of(int code) {
  switch (code) {
  case 'q':
  case 'Q':
    return top_key::quit;
  case KEY_UP:
  case 'k':
    return top_key::up;
  case KEY_DOWN:
  case 'j':
    return top_key::down;
  case KEY_PPAGE:
    return top_key::page_up;
  case KEY_NPAGE:
  case ' ':
    return top_key::page_down;
  case KEY_HOME:
    return top_key::first;
  case KEY_END:
    return top_key::last;
  case '\t':
  case KEY_RIGHT:
    return top_key::next_view;
  case KEY_BTAB:
  case KEY_LEFT:
    return top_key::previous_view;
  case 's':
    return top_key::sort;
  case '?':
  case 'h':
    return top_key::help;
  case 'p':
    return top_key::pause;
  default:
    return code >= '1' && code <= '5'
             ? top_key(int(top_key::view_1) + code - '1')
             : top_key::none;
  }
}

} // namespace

std::unique_ptr<curses_screen> curses_screen::open(std::string& why) {
  use_utf8();
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* kind = std::getenv("TERM");
    why = "the terminal '" + std::string(kind ? kind : "")
          + "' (TERM) is not known here";
    return nullptr;
  }
  return std::unique_ptr<curses_screen>(new curses_screen(screen));
}

curses_screen::curses_screen(void* screen) : screen_(screen) {
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(25); // an escape sequence comes at once, also over a network
  curs_set(0);
  use_colours();
}

curses_screen::~curses_screen() {
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

int curses_screen::columns() const {
  return getmaxx(stdscr);
}

int curses_screen::rows() const {
  return getmaxy(stdscr);
}

void curses_screen::show(const std::vector<text_line>& lines) {
  werase(stdscr);
  // Which of its lines a terminal keeps when its size changes is its own affair.
  const std::pair size(columns(), rows());
  if (std::exchange(size_shown_, size) != size)
    clearok(stdscr, TRUE);
  for (std::size_t row = 0; row < lines.size(); ++row) {
    wmove(stdscr, int(row), 0);
    for (const span_of_text& s : lines[row]) {
      short pair = 0;
      const attr_t attributes = attributes_of(s.is, pair);
      wattr_set(stdscr, attributes, pair, nullptr);
      waddnstr(stdscr, s.text.data(), int(s.text.size()));
    }
  }
  wattr_set(stdscr, A_NORMAL, 0, nullptr);
  wrefresh(stdscr);
}

curses_screen::pressed curses_screen::next_key() {
  const int code = wgetch(stdscr);
  return {code != ERR, key_of(code)};
}

} // namespace shoal::apps
