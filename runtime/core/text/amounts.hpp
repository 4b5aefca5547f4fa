// runtime/core/text/amounts.hpp -- sizes, counts and measured values in
// readable form, everywhere alike.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::core {

/// "512 B", "1.5 MiB", "16 GiB": the unit that leaves at most four digits
/// before the point; one digit after the point if it is not 0.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "93.1 MB/s", "1 GB/s": decimal units, as networks are sold.
[[nodiscard]] std::string rate_text(std::uint64_t bytes_per_s);

/// "100 us", "2.5 ms", "1.2 s".
[[nodiscard]] std::string delay_text(std::uint64_t nanoseconds);

/// "1 file", "2 files".
[[nodiscard]] std::string
count_text(std::uint64_t count, std::string_view noun);

/// "a, b, c"; of many the first, "a, b, ... and 5 more", so that a large shoal
/// does not fill the screen.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

/// "640", "919 thousand", "3.3 million", "677.8 billion".
[[nodiscard]] std::string large_text(double count);

/// "4 s", "3 min", "2 h", "5 d": the largest unit of which there is at least
/// one.
[[nodiscard]] std::string age_text(std::int64_t ms);

/// "2026-03-01 14:05:09 UTC": the same on all machines.
[[nodiscard]] std::string utc_text(std::int64_t unix_ms);

/// "2026-03-01 14:05:09 UTC (4 s ago)".
[[nodiscard]] std::string
when_text(std::int64_t unix_ms, std::int64_t now_unix_ms);

/// The value itself, except that "-nan", which printf prints as often as "nan",
/// becomes "nan".
[[nodiscard]] double printable(double value);

} // namespace shoal::core
