// runtime/model/text/token_decoder.hpp -- "decoder": joins the texts of tokens.
//
// ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, WordPiece and
// Sequence of them. A step turns a list of texts into another; the last list is joined.
// Without a decoder the texts are joined by spaces, as `tokenizers` does.
//
// text_stream does the same token by token and returns each character as soon
// as it is complete. It differs from decode() in one point: if a run of byte
// tokens begins with valid characters and then breaks, these have been shown
// already, while decode() replaces each byte of the run. Chains that change a
// text after fusing it, other than by Strip at its start, are returned only at
// the end.
//
// Threads: token_decoder is immutable; a stream belongs to one thread, and
//          its decoder outlives it.
// Errors:  parse: an unknown type is named. The text stays unchanged if a
//          pattern gives up (regex), or if a Replace would make the text grow
//          beyond grown_bytes_max.
#pragma once

#include "runtime/model/text/models/json_view.hpp"
#include "runtime/model/text/normalizer.hpp"
#include "runtime/model/text/pre_tokenizer.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::model::text {

/// Characters that Strip removes from an end, at most.
inline constexpr std::size_t strip_characters_max = 1u << 16;

struct byte_level_decoding {};
struct byte_fallback_decoding {};
struct fuse_decoding {};
/// Removes up to `start` (`stop`) of this character from each text's ends.
struct strip_decoding {
  char32_t content = 0;
  std::size_t start = 0;
  std::size_t stop = 0;
};
/// Each text but the first either loses its prefix or gets a space before it.
struct word_piece_decoding {
  std::string prefix;
  bool cleanup = false; ///< spaces before punctuation go, as English has it
};
using decoder_step = std::variant<byte_level_decoding, byte_fallback_decoding,
                                  fuse_decoding, strip_decoding, replace_step,
                                  metaspace_step, word_piece_decoding>;

class token_decoder {
public:
  /// null: joined by spaces.
  static token_decoder parse(const json_view& from);

  /// @pre the texts are UTF-8
  std::string decode(std::vector<std::string> tokens) const;

  /// Whether each token adds bytes of its own to a text.
  bool is_by_token() const;
  /// Those bytes: they may be part of a character. @pre is_by_token()
  /// @param first the token is the first one of a text
  std::string token_bytes(const std::string& token, bool first = false) const;

private:
  friend class text_stream;
  void add(const json_view& from, int depth);

  std::vector<decoder_step> steps_;
  bool given_ = false;
};

class text_stream {
public:
  explicit text_stream(const token_decoder& decoder);

  /// @returns the text that is certain now, in whole characters.
  std::string push(std::string_view token);
  std::string finish();

private:
  /// The state of step i between tokens.
  struct state {
    std::string pending;  ///< bytes that are not a whole character yet
    bool started = false; ///< a token has passed; bytes: a part of the run has
    bool first = false;   ///< the last one was the first
    std::size_t cut = 0;  ///< characters that were stripped at the start
    bool cutting = true;
  };
  /// @param bytes_max limits the text made of the token's text
  void pass(std::size_t step, std::string text, std::size_t bytes_max,
            std::string& out);
  void end(std::size_t step, std::string& out);
  std::string bytes_of_run(std::size_t step, bool at_end);

  const token_decoder* decoder_;
  std::vector<state> states_;
  std::vector<bool> fused_;       ///< the step sees one text in parts
  std::vector<std::string> held_; ///< all tokens, if only the end can decide
  bool hold_ = false;
  bool goes_on_ = false; ///< what is passed on is more of the text before it
};

} // namespace shoal::model::text
