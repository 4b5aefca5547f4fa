// runtime/model/text/hf_tokenizer.hpp -- tokenizer.json: text to ids and back.
//
// The tokenizers of the families gpt2, llama, mistral, mixtral, qwen2, qwen3,
// qwen3_moe and gemma2 (BPE), of T5, XLM-RoBERTa and ALBERT (Unigram) and of
// BERT (WordPiece), as the package `tokenizers` runs them:
//
//   text -> added tokens -> normalizer -> added tokens -> pre-tokenizer
//        -> model, piece by piece -> post-processor -> ids
//   ids  -> texts of tokens -> decoder -> text
//
// Invalid UTF-8 in a text counts as U+FFFD, one for each maximal broken part,
// as a Python reader with errors="replace" returns it.
//
// Units:   sizes in bytes. Ids are those of the file.
// Threads: hf_tokenizer is immutable and cheap to copy; an encoder and a
//          decode_stream belong to one thread each.
// Cost:    encode O(n log n) in the longest word (BPE) or O(n) times the bytes of
//          the longest token (models/vocabulary.hpp limits them), otherwise O(n);
//          memory 3 to 5 times the text, 50 bytes per character of the longest
//          word.
// Errors:  a failure names the file, the key and the error. Settings of the
//          file that are not supported (dropout, truncation, padding) give a
//          notice.
#pragma once

#include "kernels/common/tensor.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/text/text_range.hpp"
#include "runtime/model/text/patterns/regex.hpp" // text_bytes_max

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model::text {

using kernels::token_id;

/// Larger files are refused unread. Longer texts: text_bytes_max of regex.hpp.
inline constexpr std::uint64_t tokenizer_bytes_max = 128u << 20;
inline constexpr std::uint64_t tokenizer_config_bytes_max = 16u << 20;

struct tokenizer_parts; // private

class hf_tokenizer {
public:
  /// @param json    the text of a tokenizer.json
  /// @param config  the text of a tokenizer_config.json, "" for none
  /// @param where   (config_where) begins every failure about it
  static result<hf_tokenizer>
  parse(std::string_view json, std::string_view config = {},
        std::string_view where = "tokenizer.json",
        std::string_view config_where = "tokenizer_config.json");

  /// The highest id plus one: the least vocab_size of a model.
  std::size_t id_count() const;
  std::optional<token_id> id_of(std::string_view token) const;
  /// Whether a text that is decoded leaves this token out.
  bool is_special(token_id id) const;
  /// bos_token and eos_token of tokenizer_config.json.
  std::optional<token_id> bos() const;
  std::optional<token_id> eos() const;
  const std::vector<std::string>& notices() const;

  /// The text of ids; ids without a token add nothing.
  std::string
  decode(std::span<const token_id> ids, bool skip_special = true) const;

  /// The bytes that each id adds behind other text, or as the first one of a text, by
  /// id; none for special tokens. @returns a failure if the decoder looks at more than
  /// one token
  result<std::vector<std::string>> token_bytes(bool first = false) const;
  /// The same of one id; of a special token: its text. If the decoder looks at more
  /// than one token: the text of the id alone
  std::string piece(token_id id, bool first = false) const;

private:
  friend class encoder;
  friend class decode_stream;
  explicit hf_tokenizer(std::shared_ptr<const tokenizer_parts> parts);

  std::shared_ptr<const tokenizer_parts> parts_;
};

/// Reads tokenizer.json and, if there is one, tokenizer_config.json.
result<hf_tokenizer> read_tokenizer(const std::filesystem::path& directory);

/// Encodes texts one after the other and remembers words.
class encoder {
public:
  explicit encoder(hf_tokenizer tokenizer);
  ~encoder();
  encoder(encoder&&) noexcept;

  /// @param add_special whether to add what the post-processor puts around a
  /// text
  /// @param foreign  parts, in order, whose bytes belong to no special token:
  ///        there such a token's text is text. @pre if there are any, the text is
  ///        UTF-8
  result<std::vector<token_id>>
  encode(std::string_view text, bool add_special = true,
         std::span<const core::text_range> foreign = {});

private:
  struct memory;
  hf_tokenizer tokenizer_;
  std::unique_ptr<memory> memory_;
};

/// Decodes ids as they come; never returns half a character. Returns the same
/// as decode(), except for broken runs of bytes (token_decoder.hpp).
class decode_stream {
public:
  explicit decode_stream(hf_tokenizer tokenizer, bool skip_special = true);
  ~decode_stream();
  decode_stream(const decode_stream&); ///< goes on from there by itself
  decode_stream(decode_stream&&) noexcept;

  std::string push(token_id id);
  /// The text held back; broken characters as U+FFFD.
  std::string finish();

private:
  struct state;
  hf_tokenizer tokenizer_;
  bool skip_special_;
  std::unique_ptr<state> state_;
};

} // namespace shoal::model::text
