// runtime/model/text/pre_tokenizer.hpp -- "pre_tokenizer": cuts text into pieces.
//
// ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit,
// BertPreTokenizer, CharDelimiterSplit and Sequence of them. Tokens never cross the border of a piece. Pieces are ranges of one text,
// which a step may also rewrite. Immutable: safe from several threads.
//
// Cost:   one pass over the text for each step.
// Errors: parse: an unknown type is named. apply: errors of regex, and a text
//         that grows beyond grown_bytes_max (regex.hpp).
#pragma once

#include "runtime/model/text/models/json_view.hpp"
#include "runtime/model/text/patterns/regex.hpp"

#include <variant>
#include <vector>

namespace shoal::model::text {

/// The pattern of GPT-2's pieces; it matches every character.
inline constexpr std::string_view gpt2_pattern =
  R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The same for Qwen 2.
inline constexpr std::string_view qwen2_pattern =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Bytes [first, last) of the text.
struct piece {
  std::size_t first = 0;
  std::size_t last = 0;
  bool at_start = false; ///< no part of the original text is before it
};

struct piece_list {
  std::string text;
  std::vector<piece> pieces; ///< none is empty

  std::string_view of(const piece& p) const {
    return std::string_view(text).substr(p.first, p.last - p.first);
  }
};

/// The treatment of a match: a piece of its own, removed, part of the piece
/// before or after, or one piece with adjacent matches.
enum class split_behaviour {
  isolated,
  removed,
  merged_with_previous,
  merged_with_next,
  contiguous
};

struct split_step {
  regex pattern;
  split_behaviour behaviour = split_behaviour::isolated;
  bool invert = false;
};
struct byte_level_step {
  bool add_prefix_space = true;
  std::optional<regex> pattern; ///< GPT-2's, unless "use_regex" is false
};
enum class prepend_scheme { first, never, always };
struct metaspace_step {
  std::string replacement;
  prepend_scheme scheme = prepend_scheme::always;
  bool split = true;
};
struct digits_step {
  bool individual = false;
};
struct whitespace_split_step {};
/// Words, and runs of other characters; white space is removed.
struct whitespace_step {};
struct punctuation_step {
  split_behaviour behaviour = split_behaviour::isolated;
};
using pre_tokenizer_step =
  std::variant<split_step, byte_level_step, metaspace_step, digits_step,
               whitespace_split_step, whitespace_step, punctuation_step>;

class pre_tokenizer {
public:
  /// null: no step. Faults go to the view.
  static pre_tokenizer parse(const json_view& from);

  status apply(piece_list& pieces) const;

private:
  void add(const json_view& from, int depth);

  std::vector<pre_tokenizer_step> steps_;
};

/// Of the pre-tokenizer and of the decoder.
metaspace_step parse_metaspace(const json_view& from);

/// Turns what find() gave into the pieces that remain.
std::vector<text_part> split_parts(std::vector<text_part> parts,
                                   split_behaviour behaviour, bool invert);

} // namespace shoal::model::text
