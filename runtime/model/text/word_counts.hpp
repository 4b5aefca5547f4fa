// runtime/model/text/word_counts.hpp -- (private) the different words of texts,
// and how often each stands there.
#pragma once

#include "runtime/model/result.hpp"
#include "runtime/model/watch.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::model::text {

/// Views into the texts.
using word_counts = std::unordered_map<std::string_view, std::uint64_t>;

/// Counts the pieces into which GPT-2's pattern cuts the texts.
/// @pre the texts are UTF-8
result<word_counts> count_words(std::span<const std::string_view> texts,
                                unsigned threads, const watch& told);

/// Cuts a text into parts of about `bytes` in places where the pattern cuts it
/// anyway, whatever is around them: between the only line end after a printable
/// ASCII character and another such character. For tests.
std::vector<std::string_view>
cut_between_words(std::string_view text, std::size_t bytes);

} // namespace shoal::model::text
