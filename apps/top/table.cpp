// apps/top/table.cpp -- chooses columns, then widths.
#include "apps/top/table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::apps {
namespace {

constexpr int gap = 1; ///< columns between two cells

/// Columns that are shown, in their order.
std::vector<std::size_t>
chosen_of(const table& t, const std::vector<int>& widths, int columns) {
  std::vector<std::size_t> out(t.columns.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  const auto needed = [&] {
    int sum = gap * (int(out.size()) - 1);
    for (const std::size_t c : out)
      sum += widths[c];
    return sum;
  };
  while (!out.empty() && needed() > columns) {
    const auto last = std::ranges::max_element(
      out, {}, [&](std::size_t c) { return t.columns[c].rank; });
    if (t.columns[*last].rank == 0)
      break;
    out.erase(last);
  }
  return out;
}

bool is_unknown(const cell& c) {
  return c.text.empty() || c.text == "-";
}

bool before(const cell& a, const cell& b) {
  const bool a_unknown = is_unknown(a), b_unknown = is_unknown(b);
  if (a_unknown || b_unknown)
    return !a_unknown && b_unknown;
  if (a.number && b.number)
    return *a.number > *b.number;
  if (a.number || b.number)
    return a.number.has_value();
  return a.text < b.text;
}

} // namespace

std::string plain_text(const text_line& line) {
  std::string out;
  for (const span_of_text& s : line)
    out += s.text;
  return out;
}

text_line cut_line(text_line line, int columns) {
  text_line out;
  for (span_of_text& s : line) {
    const int width = columns_of(s.text);
    if (width > columns) {
      s.text = cut(s.text, columns);
      columns = 0;
    } else {
      columns -= width;
    }
    if (!s.text.empty())
      out.push_back(std::move(s));
    if (columns <= 0)
      break;
  }
  return out;
}

void sort_rows(table& t, std::size_t column) {
  if (column < t.columns.size())
    std::ranges::stable_sort(t.rows, [column](const auto& a, const auto& b) {
      return before(a[column], b[column]);
    });
}

std::vector<text_line>
lines_of(const table& t, int columns, std::optional<std::size_t> sorted) {
  std::vector<text_line> out;
  out.push_back(cut_line({{t.title, tone::title}}, columns));
  if (t.rows.empty()) {
    out.push_back(cut_line({{t.empty, tone::dim}}, columns));
    return out;
  }
  std::vector<int> widths;
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    int width = columns_of(t.columns[c].title);
    for (const auto& row : t.rows)
      width = std::max(width, columns_of(row[c].text));
    const int most = t.columns[c].width_max;
    widths.push_back(most > 0 ? std::min(width, most) : width);
  }
  const auto shown = chosen_of(t, widths, columns);
  const auto add = [&](auto&& cell_of) {
    text_line line;
    for (const std::size_t c : shown) {
      auto [text, is] = cell_of(c);
      const bool last = c == shown.back() && t.columns[c].to == align::left;
      if (!line.empty())
        line.push_back({std::string(gap, ' ')});
      line.push_back(
        {last ? cut(text, widths[c]) : fitted(text, widths[c], t.columns[c].to),
         is});
    }
    out.push_back(cut_line(std::move(line), columns));
  };
  add([&](std::size_t c) {
    return std::pair(t.columns[c].title,
                     c == sorted ? tone::chosen : tone::heading);
  });
  for (const auto& row : t.rows)
    add([&](std::size_t c) { return std::pair(row[c].text, row[c].is); });
  return out;
}

} // namespace shoal::apps
