// runtime/core/text/hex.hpp -- hexadecimal digits back into bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::core {

/// Reads two digits for each byte of `out`, of either case.
/// @returns false, with `out` unspecified, if `text` is anything else
[[nodiscard]] bool
from_hex(std::string_view text, std::span<std::uint8_t> out) noexcept;

} // namespace shoal::core
