// runtime/model/text/models/vocabulary.hpp -- texts of tokens and their ids.
//
// Errors: what is wrong with an entry of a file goes to the view.
#pragma once

#include "kernels/common/tensor.hpp"
#include "runtime/model/text/models/json_view.hpp"

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::model::text {

using kernels::token_id;

/// Limits: entries of a vocabulary; bytes of a token (a decoder shows up to
/// that many for each requested id; known files have some hundred at most); the
/// largest gap between ids.
inline constexpr std::size_t vocabulary_tokens_max = 1u << 22;
inline constexpr std::size_t token_bytes_max = 1u << 16;
inline constexpr std::size_t id_gap_max = 1u << 16;

/// Bytes of a token of the models that look for tokens at every character of a
/// text (Unigram, WordPiece): the time is at most the text's bytes times this.
inline constexpr std::size_t searched_token_bytes_max = 1024;

/// Lets a transparent look-up take a string_view.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};
using vocabulary =
  std::unordered_map<std::string, token_id, text_hash, std::equal_to<>>;

/// By id: tokens that a text must not become, whatever it says. Null: none.
using banned_tokens = const std::vector<bool>*;

inline bool is_banned(banned_tokens banned, token_id id) {
  return banned != nullptr && (*banned)[static_cast<std::size_t>(id)];
}

/// Reads {"token": id, ...}: no id twice, none far beyond the others.
vocabulary read_vocabulary(const json_view& from, std::size_t bytes_max);

/// The tokens <0x00> to <0xFF>; -1 where there is none.
using byte_tokens = std::array<token_id, 256>;
byte_tokens byte_tokens_of(const vocabulary& tokens);

/// A text of the file, as quoted in a message.
std::string in_quotes(std::string_view text);

} // namespace shoal::model::text
