// runtime/model/data/bigram.hpp -- the byte-bigram model that training must beat.
//
//   p(b | a) = (count(a, b) + p1(b) * s) / (count(a) + s),  s = 1
//   p1(b)    = (count(b) + 1) / (count + 256)
//
// that is, counts of pairs, smoothed with one pseudo-observation from the
// add-one unigram. Pairs do not cross file boundaries.
#pragma once

#include "runtime/model/data/corpus.hpp"

#include <array>

namespace shoal::model {

/// Counts of bytes and pairs.
class bigram {
public:
  bigram();
  /// Adds the bytes of one file.
  void train(std::span<const std::uint8_t> bytes);
  /// Negative log likelihood of one byte after another, in nats.
  double loss(std::uint8_t before, std::uint8_t next) const;

private:
  std::vector<std::uint64_t> pairs_; ///< 256 * 256
  std::array<std::uint64_t, 256> singles_{};
  std::array<std::uint64_t, 256> before_{};
  std::uint64_t total_ = 0;
};

/// Mean loss in nats per predicted byte of the validation files, trained on
/// the train files; 0 if there is nothing to predict.
/// @pre all tokens are bytes (below 256)
double bigram_validation_loss(const corpus& text);

} // namespace shoal::model
