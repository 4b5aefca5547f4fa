// runtime/model/decode/decoder.hpp -- a stage that computes token after token.
//
// Keys and values of all earlier positions stay in a cache beside the blocks,
// so that a call computes only the newest tokens: the whole prompt first
// (prefill), then one token at a time.
//
// Shapes:    T new tokens of one sequence; hidden states T rows of D.
// Cost:      a call of many tokens goes through the blocks in parts of
//            decode_rows_max, so that its memory has a bound.
// Threads:   one call at a time per stage, of its decoders and their passes.
// Ownership: the stage belongs to the caller and outlives the decoder, which
//            outlives its passes.
#pragma once

#include "runtime/model/decode/inference.hpp"

namespace shoal::model {

/// Tokens that go through the blocks at once: enough that reading the weights
/// once for all of them costs less than the products.
inline constexpr std::size_t decode_rows_max = 512;

/// The cached sequence of one request on one stage.
class stage_decoder {
public:
  /// Reserves room for `positions` tokens.
  /// @pre 1 <= positions <= max_position_embeddings
  stage_decoder(inference_stage& stage, std::size_t positions);

  std::size_t position() const noexcept { return position_; }
  std::size_t capacity() const noexcept { return capacity_; }
  /// Forgets the sequence; keeps the memory.
  void clear() noexcept { position_ = 0; }

  /// Begins to append tokens. The first stage reads `ids`, others `hidden_in`.
  /// All but the last write `hidden_out`; the last writes logits to
  /// `logits_out`: for the newest token only if it has V values, for all T
  /// tokens if it has T*V.
  /// @pre position() + T <= capacity(), and no other pass of this decoder is
  /// under way
  std::unique_ptr<pass>
  begin_append(std::span<const token_id> ids, std::span<const float> hidden_in,
               std::span<float> hidden_out, std::span<float> logits_out);

  /// The same from end to end.
  void append(std::span<const token_id> ids, std::span<const float> hidden_in,
              std::span<float> hidden_out, std::span<float> logits_out) {
    run(*begin_append(ids, hidden_in, hidden_out, logits_out));
  }

private:
  class append_pass;

  inference_stage& stage_;
  std::size_t capacity_;
  std::size_t width_ = 0; ///< K*H
  std::size_t position_ = 0;
  std::vector<aligned_buffer> keys_;   ///< per block: capacity rows of K*H
  std::vector<aligned_buffer> values_; ///< per block: capacity rows of K*H
};

} // namespace shoal::model
