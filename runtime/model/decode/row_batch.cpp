// runtime/model/decode/row_batch.cpp -- rows of many sequences in one pass.
#include "runtime/model/decode/row_batch.hpp"

#include <numeric>

namespace shoal::model {

std::size_t row_batch::rows() const noexcept {
  std::size_t sum = 0;
  for (const sequence& s : sequences)
    sum += s.rows;
  return sum;
}

std::size_t row_batch::logits() const noexcept {
  std::size_t sum = 0;
  for (const sequence& s : sequences)
    sum += s.logits;
  return sum;
}

row_batch
one_sequence(std::size_t first, std::size_t rows, std::size_t logits) {
  std::vector<core::page_id> pages(core::pages_for(first + rows));
  std::iota(pages.begin(), pages.end(), core::page_id{0});
  return {{{first, rows, std::move(pages), logits}}};
}

} // namespace shoal::model
