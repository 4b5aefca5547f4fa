// runtime/model/data/bigram.cpp -- the byte-bigram model that training must beat.
#include "runtime/model/data/bigram.hpp"

#include <cmath>

namespace shoal::model {

bigram::bigram() : pairs_(256 * 256) {
}

void bigram::train(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ++singles_[bytes[i]];
    ++total_;
    if (i == 0)
      continue;
    ++pairs_[bytes[i - 1] * 256u + bytes[i]];
    ++before_[bytes[i - 1]];
  }
}

double bigram::loss(std::uint8_t before, std::uint8_t next) const {
  const double single = (static_cast<double>(singles_[next]) + 1)
                        / (static_cast<double>(total_) + 256);
  const double pair = static_cast<double>(pairs_[before * 256u + next]);
  const double all = static_cast<double>(before_[before]);
  return -std::log((pair + single) / (all + 1));
}

namespace {

/// The bytes of one file of a corpus.
std::vector<std::uint8_t>
bytes_of(const corpus& text, const file_boundary& file) {
  std::vector<token_id> ids(file.last - file.first);
  if (file.validation)
    text.copy_validation(file.first, ids);
  else
    text.copy_train(file.first, ids);
  std::vector<std::uint8_t> bytes;
  for (const token_id id : ids) {
    SHOAL_ASSERT(id < 256);
    bytes.push_back(static_cast<std::uint8_t>(id));
  }
  return bytes;
}

} // namespace

double bigram_validation_loss(const corpus& text) {
  bigram model;
  for (const file_boundary& file : text.files) {
    if (!file.validation)
      model.train(bytes_of(text, file));
  }
  double sum = 0;
  std::uint64_t predicted = 0;
  for (const file_boundary& file : text.files) {
    if (!file.validation)
      continue;
    const auto bytes = bytes_of(text, file);
    for (std::size_t i = 1; i < bytes.size(); ++i, ++predicted)
      sum += model.loss(bytes[i - 1], bytes[i]);
  }
  return predicted == 0 ? 0 : sum / static_cast<double>(predicted);
}

} // namespace shoal::model
