// runtime/core/grammar/gbnf.hpp -- grammars as llama.cpp's users write them.
//
//   root   ::= item ("," item)*     # rule `root` is the whole text
//   item   ::= [a-z]+ | "\"" [^"\n]{1,20} "\""
//
// Texts in quotes, sets of characters, ".", names of rules, ( ), | and the
// repetitions * + ? {n} {n,} {n,m}; escapes \n \r \t \\ \" \[ \] \xNN \uNNNN
// \UNNNNNNNN. A rule ends with its line, unless that is inside of ( ) or the next
// one begins with "|". Source: llama.cpp's grammars/README.md.
//
// Errors: the line and what is wrong there.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"

#include <string_view>

namespace shoal::core::grammar {

/// Bytes of a grammar or a regular expression.
inline constexpr std::size_t pattern_bytes_max = std::size_t{256} << 10;
/// The largest number in { }.
inline constexpr std::uint32_t repetitions_max = 10'000;

model::result<rule_set> parse_gbnf(std::string_view text);

} // namespace shoal::core::grammar
