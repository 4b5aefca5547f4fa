// runtime/core/text/nearest.hpp -- suggestions for a mistyped word.
//
// One function for keys, flags, variables, tables and commands, so that all of
// them are equally forgiving.
//
// Threads: pure functions. Cost: for each word the product of both lengths.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::core {

/// Number of letters to be added, left out, replaced, or swapped with the next
/// one to turn `a` into `b`; each place is changed once.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, the first of several; "" if each is more than
/// `distance_max` away.
[[nodiscard]] std::string_view
nearest(std::string_view word, const std::vector<std::string_view>& known,
        std::size_t distance_max);

/// The nearest of `known`, or "" where none is near: more than three changes (or a
/// third of a long word) make another word.
[[nodiscard]] std::string_view
meant(std::string_view word, const std::vector<std::string_view>& known);

/// "; did you mean 'X'?" of a word, or "" of none. @param prefix text before it, such
/// as "--"
[[nodiscard]] std::string
suggestion(std::string_view word, std::string_view prefix = {});
/// The same of the word that is meant.
[[nodiscard]] std::string
did_you_mean(std::string_view word, const std::vector<std::string_view>& known,
             std::string_view prefix = {});

} // namespace shoal::core
