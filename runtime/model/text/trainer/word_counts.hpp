// runtime/model/text/trainer/word_counts.hpp -- (private) the different words of texts,
// and the count of each.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::model::text {

/// Views into the texts.
using word_counts = std::unordered_map<std::string_view, std::uint64_t>;

/// Counts the pieces into which a pattern cuts the texts: gpt2_pattern or
/// qwen2_pattern. @pre the texts are UTF-8
result<word_counts>
count_words(std::span<const std::string_view> texts, std::string_view pattern,
            unsigned threads, const watch& told);

/// Cuts a text into parts of about `bytes`, only where both patterns cut it
/// anyway, whatever is around: between the only line end after a printable
/// ASCII character and another such character. For tests.
std::vector<std::string_view>
cut_between_words(std::string_view text, std::size_t bytes);

} // namespace shoal::model::text
