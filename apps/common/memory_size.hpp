// apps/common/memory_size.hpp -- an amount of memory as text.
//
//   8GiB  8G     binary: K, M, G, T with or without iB
//   8GB          decimal: KB, MB, GB, TB
//   50%          of the machine's memory
//
// Errors: a failure names the text and the possible forms.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace shoal::apps {

/// @param have the machine's memory (host_limits.hpp); 0: unknown
/// @returns 0 for an empty text: no choice
[[nodiscard]] model::result<std::uint64_t>
parse_memory(const std::string& text, std::uint64_t have);

/// "23.4 GiB", "512.0 MiB", "17 B".
[[nodiscard]] std::string memory_text(std::uint64_t bytes);

} // namespace shoal::apps
