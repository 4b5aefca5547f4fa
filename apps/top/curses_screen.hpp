// apps/top/curses_screen.hpp -- the terminal, by ncurses.
//
// While an object exists, the terminal shows its lines and gives keys one by one;
// its destructor brings back what stood there before.
//
// Threads: one, and only one object at a time.
// Errors:  open() says why the terminal cannot be used.
#pragma once

#include "apps/top/top_page.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::apps {

class curses_screen {
public:
  /// @returns nothing, with the reason, if the terminal cannot be used
  static std::unique_ptr<curses_screen> open(std::string& why);
  ~curses_screen();
  curses_screen(const curses_screen&) = delete;
  curses_screen& operator=(const curses_screen&) = delete;

  /// The present size; follows that of the window.
  int columns() const;
  int rows() const;
  /// Draws what differs from before.
  void show(const std::vector<text_line>& lines);
  /// The next key that has been pressed; none: there is none now. A changed size
  /// of the window is a key without effect.
  struct pressed {
    bool any = false;
    top_key key = top_key::none;
  };
  pressed next_key();

private:
  explicit curses_screen(void* screen);
  void* screen_;
  std::pair<int, int> size_shown_{}; ///< columns, rows
};

} // namespace shoal::apps
