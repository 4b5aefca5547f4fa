// runtime/model/tokenizer.hpp -- text to token ids and back.
//
// The byte tokenizer: the ids of a text are its bytes, nothing is added. Ids
// from 256 up (a larger vocabulary, or bos and eos there) have no text. It is
// saved as a tokenizer_config.json with "tokenizer_class": "ByteTokenizer". A
// directory without a tokenizer still works with ids.
#pragma once

#include "kernels/tensor.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/result.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

using kernels::token_id;

/// Bytes as ids. Immutable: safe from several threads.
class byte_tokenizer {
public:
  static constexpr token_id byte_count = 256;

  std::vector<token_id> encode(std::string_view text) const;
  /// The bytes of the ids; ids without text give none.
  std::string bytes(std::span<const token_id> ids) const;
  /// As bytes(), with what is not UTF-8 replaced by U+FFFD.
  std::string decode(std::span<const token_id> ids) const;

  /// The text of tokenizer_config.json.
  std::string to_json(const model_config& config) const;
};

/// @returns the tokenizer that a directory names, nothing if it has none; a
/// failure if it names one that is not supported.
result<std::optional<byte_tokenizer>>
load_tokenizer(const std::filesystem::path& directory);

/// Turns bytes that arrive in pieces into whole UTF-8 characters; what cannot
/// become one is replaced by U+FFFD (one for each maximal broken part, as the
/// Unicode standard recommends, chapter 3.9).
class utf8_stream {
public:
  /// @returns what is complete now; keeps at most 3 bytes back.
  std::string push(std::string_view bytes);
  /// @returns the replacement of what stayed incomplete.
  std::string finish();

private:
  std::string pending_;
};

} // namespace shoal::model
