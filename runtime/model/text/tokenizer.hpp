// runtime/model/text/tokenizer.hpp -- converts text to token ids and back.
//
// A model directory has a tokenizer.json (text/hf_tokenizer.hpp), or a
// tokenizer_config.json with "tokenizer_class": "ByteTokenizer", or neither and
// still works with ids. The byte tokenizer: the ids of a text are its bytes,
// nothing is added; ids from 256 up (a larger vocabulary, or bos and eos there)
// have no text. It is written as a tokenizer.json that other programs read; a
// directory with that file has the byte tokenizer.
//
// Threads: tokenizers are immutable; a text_encoder and a text_decoder belong
//          to one thread each.
// Errors:  a failure names the file and the key, or the problem of a text.
#pragma once

#include "kernels/common/tensor.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/config/config.hpp"
#include "runtime/model/text/hf_tokenizer.hpp"

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
  /// The bytes of the ids; ids without text add nothing.
  std::string bytes(std::span<const token_id> ids) const;
  /// Like bytes(), with invalid UTF-8 replaced by U+FFFD.
  std::string decode(std::span<const token_id> ids) const;

  /// The texts of tokenizer.json (byte level, no merges) and of
  /// tokenizer_config.json. Invalid UTF-8 differs: other programs take U+FFFD
  /// for broken text.
  static std::string to_json();
  static std::string config_json(const model_config& config);
};

/// Bytes, or the tokenizer of a tokenizer.json. Immutable, cheap to copy.
class tokenizer {
public:
  tokenizer() = default; ///< bytes
  explicit tokenizer(text::hf_tokenizer from) : file_(std::move(from)) {}

  /// The highest id with text, plus one.
  std::size_t id_count() const;
  /// The bytes that each id adds behind other text, or as the first one of a text, by
  /// id; none for ids that are no text, such as the end of a sequence. @returns a
  /// failure if that cannot be said of single tokens
  result<std::vector<std::string>> token_bytes(bool first = false) const;
  /// The same of one id; of a special token: its text. "": the id has no text
  std::string piece(token_id id, bool first = false) const;
  /// Settings of its file that are not supported, as lines for users.
  std::vector<std::string> notices() const;
  /// Null: bytes.
  const text::hf_tokenizer* file() const { return file_ ? &*file_ : nullptr; }

private:
  std::optional<text::hf_tokenizer> file_;
};

/// The tokens that end a text, the usual one first: what the tokenizer names,
/// and those of a model's configuration that are marks, such as "</s>", and no
/// text (an id that a configuration has by default may be any token). None: bytes.
std::vector<token_id>
ends_of_text(const tokenizer& by, std::span<const std::int32_t> of_model);

/// Puts the first of `ends` behind a text, unless one of them is there, or the
/// text begins with that one: then it ends the text before.
void end_text(std::vector<token_id>& ids, std::span<const token_id> ends);

/// The tokenizer that a directory names, without reading all of it.
enum class tokenizer_kind { none, bytes, file };
result<tokenizer_kind>
kind_of_tokenizer(const std::filesystem::path& directory);

/// @returns the tokenizer that a directory names, nothing if it has none; a
/// failure if it names one that is not supported.
result<std::optional<tokenizer>>
load_tokenizer(const std::filesystem::path& directory);

/// Encodes texts.
class text_encoder {
public:
  explicit text_encoder(const tokenizer& by);
  /// @param add_special, foreign  as text::encoder has them
  result<std::vector<token_id>>
  encode(std::string_view text, bool add_special = true,
         std::span<const core::text_range> foreign = {});

private:
  std::optional<text::encoder> file_;
};

/// Turns bytes that arrive in pieces into whole UTF-8 characters. Bytes that
/// cannot become one are replaced by U+FFFD (one for each maximal broken part,
/// as the Unicode standard recommends, chapter 3.9).
class utf8_stream {
public:
  /// @returns the text that is complete now; holds back at most 3 bytes.
  std::string push(std::string_view bytes);
  /// @returns the replacement of bytes that stayed incomplete.
  std::string finish();

private:
  std::string pending_;
};

/// Decodes ids as they come; never returns half a character.
class text_decoder {
public:
  /// @param by may be null: then no id has text
  explicit text_decoder(const tokenizer* by);
  std::string push(token_id id);
  std::string finish();

private:
  bool bytes_ = false;
  utf8_stream utf8_;
  std::optional<text::decode_stream> file_;
};

} // namespace shoal::model
