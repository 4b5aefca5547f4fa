// kernels/reference/inference/packed_weight.cpp -- packed weights in plain loops.
#include "kernels/inference/packed_weight.hpp"

#include "kernels/common/check.hpp"
#include "kernels/inference/packed_layout.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/reference/inference/pack_block.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::kernels::reference {

namespace {

/// Stores block `block` of lane `lane` of a panel as packed_layout.hpp says.
void put_block(std::byte* panel, weight_type type, std::size_t lane,
               std::size_t block, const packed_block& from) {
  auto* const chunk = panel + block / 2 * chunk_bytes(type);
  std::memcpy(chunk + 4 * lane + 2 * (block % 2), &from.scale, sizeof(bf16));
  auto* const codes = chunk + scale_bytes + 4 * lane;
  for (std::size_t k = 0; k != block_cols; ++k) {
    const std::byte code{from.codes[k]};
    const auto group = k / 4;
    if (type == weight_type::q8)
      codes[64 * (8 * (block % 2) + group) + k % 4] = code;
    else
      codes[64 * group + k % 4] |= code << (4 * (block % 2));
  }
}

} // namespace

packed_weight
reference_backend::pack_weight(weight_type type, std::size_t rows,
                               std::size_t cols, const row_reader& read) {
  std::vector<float> row(cols);
  if (type == weight_type::f32) {
    auto to = allocate_packed(rows * cols * sizeof(float));
    auto* values = reinterpret_cast<float*>(to.get());
    for (std::size_t r = 0; r != rows; ++r)
      read(r, values + r * cols);
    return {matrix_view<const float>(values, rows, cols), to};
  }
  if (type == weight_type::bf16) {
    auto to = allocate_packed(rows * cols * sizeof(bf16));
    auto* values = reinterpret_cast<bf16*>(to.get());
    for (std::size_t r = 0; r != rows; ++r) {
      read(r, row.data());
      for (std::size_t i = 0; i != cols; ++i)
        values[r * cols + i] = to_bf16(row[i]);
    }
    return {matrix_view<const bf16>(values, rows, cols), to};
  }
  const auto size = panel_bytes(type, rows, cols);
  auto to = allocate_packed(size);
  std::memset(to.get(), 0, size);
  const auto stride = chunks_of(cols) * chunk_bytes(type);
  row.resize(chunks_of(cols) * chunk_cols);
  for (std::size_t r = 0; r != panels_of(rows) * panel_rows; ++r) {
    std::fill(row.begin(), row.end(), 0.0f);
    if (r < rows)
      read(r, row.data());
    for (std::size_t b = 0; b != row.size() / block_cols; ++b) {
      const auto* block = row.data() + b * block_cols;
      put_block(to.get() + r / panel_rows * stride, type, r % panel_rows, b,
                type == weight_type::q8 ? pack_block_q8(block)
                                        : pack_block_q4(block));
    }
  }
  return {type, rows, cols, to};
}

void reference_backend::packed_matmul(matrix_view<float> y_TO,
                                      matrix_view<const float> x_TI,
                                      const packed_weight& w_OI) {
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows && y_TO.cols == w_OI.rows()
                      && x_TI.cols == w_OI.cols());
  std::vector<float> w_I(w_OI.cols());
  for (std::size_t o = 0; o != y_TO.cols; ++o) {
    w_OI.unpack_row(o, w_I);
    for (std::size_t t = 0; t != y_TO.rows; ++t) {
      double sum = 0;
      for (std::size_t i = 0; i != x_TI.cols; ++i)
        sum += double{x_TI(t, i)} * w_I[i];
      y_TO(t, o) = static_cast<float>(sum);
    }
  }
}

} // namespace shoal::kernels::reference
