// kernels/reference/packed_weight.cpp -- packed weights in plain loops.
#include "kernels/packed_weight.hpp"

#include "kernels/check.hpp"
#include "kernels/pack_chunk.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

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
  auto to = allocate_packed(panel_bytes(type, rows, cols));
  for (std::size_t p = 0; p != panels_of(rows); ++p) {
    auto* panel = to.get() + p * chunks_of(cols) * chunk_bytes(type);
    if (type == weight_type::q8)
      pack_panel<weight_type::q8>(p, rows, cols, read, row, panel);
    else
      pack_panel<weight_type::q4>(p, rows, cols, read, row, panel);
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
