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

std::size_t row_batch::normed() const noexcept {
  std::size_t sum = 0;
  for (const sequence& s : sequences)
    sum += s.normed;
  return sum;
}

row_batch one_sequence(std::size_t first, std::size_t rows, std::size_t logits,
                       std::size_t window_pages) {
  std::vector<core::page_id> pages(core::pages_for(first + rows));
  std::iota(pages.begin(), pages.end(), core::page_id{0});
  row_batch out{{{first, rows, pages, logits, {}}}};
  if (window_pages != 0) {
    for (core::page_id& page : pages)
      page %= static_cast<core::page_id>(window_pages);
    out.sequences.front().window_pages = std::move(pages);
  }
  return out;
}

} // namespace shoal::model
