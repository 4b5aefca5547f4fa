// apps/top/table.hpp -- rows of cells become lines of a width.
//
// Where the width does not suffice, columns are left out, those of the highest
// rank first; columns of rank 0 stay and are cut at the end of the line.
//
// Threads: pure functions.
#pragma once

#include "apps/top/cells.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

/// How a text looks; without colours good, warning and bad are plain or bold.
enum class tone { plain, dim, title, heading, chosen, good, warning, bad };

struct span_of_text {
  std::string text;
  tone is = tone::plain;
};
using text_line = std::vector<span_of_text>;

/// The texts of a line, joined.
std::string plain_text(const text_line& line);
/// The line in at most `columns`.
text_line cut_line(text_line line, int columns);

struct cell {
  std::string text;
  tone is = tone::plain;
  /// By which rows are sorted, the largest first; nothing: by the text.
  std::optional<double> number = std::nullopt;
};

struct column {
  std::string title;
  align to = align::left;
  int rank = 0;      ///< of leaving it out; 0: never
  int width_max = 0; ///< 0: as wide as its longest cell
};

struct table {
  std::string title;
  std::vector<column> columns;
  std::vector<std::vector<cell>> rows; ///< each as long as `columns`
  std::string empty; ///< what stands there if there are no rows
};

/// Sorts rows by a column: numbers descending, then texts ascending, then empty
/// ones and "-"; equal rows keep their order.
void sort_rows(table& t, std::size_t column);

/// Title, headings and rows. @param sorted  the marked column, if any
std::vector<text_line>
lines_of(const table& t, int columns, std::optional<std::size_t> sorted);

} // namespace shoal::apps
