// apps/top/cells.hpp -- text measured in a terminal's columns, and numbers drawn
// in a few of them.
//
// A character takes 0 (combining), 1 or 2 (East Asian wide) columns.
//
// Threads: pure functions; the locale does not matter.
// Source:  UAX #11, by utf8proc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::apps {

/// @pre text is safe to show (runtime/core/text/shown.hpp)
int columns_of(std::string_view text);

/// The text in at most `columns`; if it is longer, it ends in an ellipsis.
std::string cut(std::string_view text, int columns);

enum class align { left, right };
/// The text in exactly `columns`, cut or filled with spaces.
std::string fitted(std::string_view text, int columns, align to = align::left);

/// The last values as blocks of eight heights, from the smallest value to the
/// largest; all equal: the lowest. What is not finite is a space.
std::string sparkline(std::span<const double> values, int columns);

/// "950", "1.2k", "34k", "5.6M": at most four columns below 1e15.
std::string short_count(double count);

/// "0 %" to "100 %", of a share from 0 to 1.
std::string percent(double share);

} // namespace shoal::apps
