// apps/top/cells.cpp -- widths by utf8proc.
#include "apps/top/cells.hpp"

#include "runtime/core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace shoal::apps {
namespace {

constexpr std::string_view ellipsis = "\u2026";

int columns_of_code(char32_t code) {
  return utf8proc_charwidth(utf8proc_int32_t(code));
}

} // namespace

int columns_of(std::string_view text) {
  int out = 0;
  for (std::size_t at = 0; at < text.size();)
    out += columns_of_code(core::next_code(text, at));
  return out;
}

std::string cut(std::string_view text, int columns) {
  if (columns <= 0)
    return {};
  int used = 0;
  std::size_t kept = 0; // bytes that leave a column for the ellipsis
  for (std::size_t at = 0; at < text.size();) {
    used += columns_of_code(core::next_code(text, at));
    if (used <= columns - 1)
      kept = at;
    if (used > columns)
      return std::string(text.substr(0, kept)).append(ellipsis);
  }
  return std::string(text);
}

std::string fitted(std::string_view text, int columns, align to) {
  std::string out = cut(text, columns);
  const auto spaces = std::size_t(std::max(columns - columns_of(out), 0));
  return to == align::left ? out.append(spaces, ' ')
                           : std::string(spaces, ' ') + out;
}

std::string sparkline(std::span<const double> values, int columns) {
  static constexpr std::array<std::string_view, 8> blocks{
    "\u2581", "\u2582", "\u2583", "\u2584",
    "\u2585", "\u2586", "\u2587", "\u2588"};
  if (columns <= 0)
    return {};
  if (values.size() > std::size_t(columns))
    values = values.last(std::size_t(columns));
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const double v : values)
    if (std::isfinite(v)) {
      least = std::min(least, v);
      most = std::max(most, v);
    }
  std::string out;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      out += ' ';
      continue;
    }
    // Halves, since the difference of two doubles may overflow.
    const double range = most / 2 - least / 2;
    const double share = range > 0 ? (v / 2 - least / 2) / range : 0;
    out += blocks[std::min<std::size_t>(std::size_t(share * 8), 7)];
  }
  return out;
}

std::string short_count(double count) {
  if (!std::isfinite(count) || count < 0)
    return "-";
  static constexpr const char* units[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (count >= 999.5 && unit + 1 < std::size(units)) {
    count /= 1000;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text,
                unit > 0 && count < 9.95 ? "%.1f%s" : "%.0f%s", count,
                units[unit]);
  return text;
}

std::string percent(double share) {
  if (!std::isfinite(share))
    return "-";
  return std::to_string(std::lround(std::clamp(share, 0.0, 1e6) * 100)) + " %";
}

} // namespace shoal::apps
