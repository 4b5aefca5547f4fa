// runtime/core/amounts.hpp -- sizes, counts and measured values as people read
// them, everywhere alike.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::core {

/// "512 B", "1.5 MiB", "16 GiB": the unit that leaves at most four digits before
/// the point, and one after it if it is not 0.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "1 file", "2 files".
[[nodiscard]] std::string
count_text(std::uint64_t count, std::string_view noun);

/// "640", "919 thousand", "3.3 million", "677.8 billion".
[[nodiscard]] std::string large_text(double count);

/// The value itself, but for "-nan", which printf says as often as "nan".
[[nodiscard]] double printable(double value);

} // namespace shoal::core
