// kernels/cpu/inference/packed_weight.cpp -- packs weights, cuts products into tasks.
#include "kernels/inference/packed_weight.hpp"

#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"
#include "kernels/cpu/product/pack_panel.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

packed_weight
cpu_backend::pack_weight(weight_type type, std::size_t rows, std::size_t cols,
                         const row_reader& read) {
  prepare_scratch();
  if (type == weight_type::f32) {
    auto to = packed_.take(rows * cols * sizeof(float));
    auto* values = reinterpret_cast<float*>(to.get());
    for_ranges(team_, rows, cols, [&](std::size_t first, std::size_t last) {
      for (auto r = first; r != last; ++r)
        read(r, values + r * cols);
    });
    return {matrix_view<const float>(values, rows, cols), to};
  }
  if (type == weight_type::bf16) {
    auto to = packed_.take(rows * cols * sizeof(bf16));
    auto* values = reinterpret_cast<bf16*>(to.get());
    team_.run(rows, [&](std::size_t r, unsigned worker) {
      auto& row = scratch_[worker];
      row.resize(std::max(row.size(), cols));
      read(r, row.data());
      for (std::size_t i = 0; i != cols; ++i)
        values[r * cols + i] = to_bf16(row[i]);
    });
    return {matrix_view<const bf16>(values, rows, cols), to};
  }
  auto to = packed_.take(panel_bytes(type, rows, cols));
  const auto panel = chunks_of(cols) * chunk_bytes(type);
  team_.run(panels_of(rows), [&](std::size_t p, unsigned worker) {
    pack_panel(type, p, rows, cols, read, scratch_[worker],
               to.get() + p * panel);
  });
  return {type, rows, cols, to};
}

void cpu_backend::packed_matmul(matrix_view<float> y_TO,
                                matrix_view<const float> x_TI,
                                const packed_weight& w_OI) {
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows && y_TO.cols == w_OI.rows()
                      && x_TI.cols == w_OI.cols());
  if (y_TO.empty())
    return;
  // The way follows from the type, never from the number of rows.
  switch (w_OI.type()) {
  case weight_type::f32:
    return rows_product(team_, rows_, float_engine(weight_type::f32), y_TO,
                        x_TI, w_OI);
  case weight_type::bf16:
    return rows_product(team_, rows_,
                        features_.bf16 ? dot_engine()
                                       : float_engine(weight_type::bf16),
                        y_TO, x_TI, w_OI);
  case weight_type::q8:
  case weight_type::q4:
    return quantised_matmul(y_TO, x_TI, w_OI);
  }
}

void cpu_backend::quantised_matmul(matrix_view<float> y_TO,
                                   matrix_view<const float> x_TI,
                                   const packed_weight& w_OI) {
  const auto T = y_TO.rows;
  const bool few = T <= few_tokens;
  if (!few && !features_.vnni && has_i16_products())
    return panels_product_i16(team_, i16_, y_TO, x_TI, w_OI);
  codes_.resize(T, x_TI.cols);
  const auto quantise = [&](std::size_t first, std::size_t last) {
    for (auto t = first; t != last; ++t)
      quantise_row(codes_, t, x_TI.row(t), x_TI.cols);
  };
  const auto multiply = [&](std::size_t first, std::size_t last) {
    if (features_.vnni)
      panels_product_vnni(y_TO, codes_, w_OI, first, last);
    else
      panels_product(y_TO, codes_, w_OI, first, last);
  };
  const auto panels = panels_of(y_TO.cols);
  if (few) {
    quantise(0, T);
    for_bytes(team_, panels, w_OI.bytes() / panels, streams, multiply);
  } else {
    for_ranges(team_, T, x_TI.cols, quantise);
    // Some 10 us are half a million products.
    for_ranges(team_, panels, T * x_TI.cols / 2, multiply);
  }
}

} // namespace shoal::kernels::cpu
