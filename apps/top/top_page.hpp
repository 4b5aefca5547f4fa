// apps/top/top_page.hpp -- the lines on the screen, and what the keys change.
//
//   totals        as many lines as the width needs
//   views         "[1 all] 2 links 3 traffic 4 training 5 models"
//   tables        scrolled
//   what the keys do
//
// Threads: pure functions.
#pragma once

#include "apps/top/top_tables.hpp"

#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

enum class top_view { all, links, traffic, training, models };
inline constexpr int top_views = 5;

enum class top_key {
  none,
  quit,
  up,
  down,
  page_up,
  page_down,
  first,
  last,
  next_view,
  previous_view,
  view_1,
  view_2,
  view_3,
  view_4,
  view_5,
  sort,
  help,
  pause
};

/// What the user has chosen.
struct top_choice {
  top_view view = top_view::all;
  /// The column that rows are sorted by, of the view's first table; nothing: as
  /// the node orders them.
  std::optional<std::size_t> sorted;
  int scrolled = 0; ///< lines of the tables above the first one shown
  bool help = false;
  bool paused = false;
  bool over = false;
};

/// What is to be shown: no status before the first answer.
struct top_state {
  const status_json* status = nullptr;
  const top_memory* memory = nullptr;
  std::string lost; ///< why the node does not answer; empty: it does
  std::int64_t unix_ms = 0;
};

/// @param lines  how many of the tables fit, for a page
void press(top_key key, top_choice& choice, int lines);

struct top_page {
  std::vector<text_line> lines; ///< at most `rows`, each at most `columns` wide
  int table_rows = 0;           ///< rows for tables
};

/// Bounds what is scrolled, and takes a column that does not exist for none.
top_page
page_of(const top_state& state, top_choice& choice, int columns, int rows);

} // namespace shoal::apps
