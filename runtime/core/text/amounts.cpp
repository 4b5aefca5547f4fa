// runtime/core/text/amounts.cpp -- amounts as text.
#include "runtime/core/text/amounts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <span>

namespace shoal::core {

namespace {

/// @param step factor from each unit to the next
std::string
in_units(double value, double step, std::span<const char* const> units) {
  std::size_t unit = 0;
  for (; value >= step && unit + 1 < units.size(); ++unit)
    value /= step;
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  std::string text = digits;
  if (text.ends_with(".0"))
    text.resize(text.size() - 2);
  return text + " " + units[unit];
}

} // namespace

std::string size_text(std::uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return in_units(double(bytes), 1024, units);
}

std::string rate_text(std::uint64_t bytes_per_s) {
  static const char* const units[] = {"B/s", "kB/s", "MB/s", "GB/s"};
  return in_units(double(bytes_per_s), 1000, units);
}

std::string delay_text(std::uint64_t nanoseconds) {
  static const char* const units[] = {"ns", "us", "ms", "s"};
  return in_units(double(nanoseconds), 1000, units);
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun)
         + (count == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t shown_max = 8;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < shown_max; ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown_max)
    out += " and " + std::to_string(names.size() - shown_max) + " more";
  return out;
}

std::string large_text(double count) {
  char text[48];
  if (count < 1e4)
    std::snprintf(text, sizeof text, "%.0f", count);
  else if (count < 1e6)
    std::snprintf(text, sizeof text, "%.0f thousand", count / 1e3);
  else if (count < 1e9)
    std::snprintf(text, sizeof text, "%.1f million", count / 1e6);
  else
    std::snprintf(text, sizeof text, "%.1f billion", count / 1e9);
  return text;
}

std::string age_text(std::int64_t ms) {
  const std::int64_t s = std::max<std::int64_t>(ms, 0) / 1000;
  if (s < 60)
    return std::to_string(s) + " s";
  if (s < 3600)
    return std::to_string(s / 60) + " min";
  if (s < 24 * 3600)
    return std::to_string(s / 3600) + " h";
  return std::to_string(s / (24 * 3600)) + " d";
}

std::string utc_text(std::int64_t unix_ms) {
  const std::time_t s = unix_ms / 1000;
  std::tm utc{};
  char text[40] = {};
  if (::gmtime_r(&s, &utc) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

std::string when_text(std::int64_t unix_ms, std::int64_t now_unix_ms) {
  return utc_text(unix_ms) + " (" + age_text(now_unix_ms - unix_ms) + " ago)";
}

double printable(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

} // namespace shoal::core
