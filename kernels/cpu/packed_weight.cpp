// kernels/cpu/packed_weight.cpp -- packs weights and cuts products into tasks.
#include "kernels/packed_weight.hpp"

#include "kernels/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"
#include "kernels/cpu/product/pack_panel.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

namespace {

/// Bytes of weights that one task of a product of few tokens reads: at least
/// some 4 us at 16 GB/s, several times the cost of taking a task, and few
/// enough that threads finish together. Up to four times as many in a large
/// product, since a prefetch past the end of a task reads the memory of another
/// task.
constexpr std::size_t task_bytes = 64 << 10, task_bytes_max = 256 << 10;
constexpr std::size_t tasks_of_thread = 8;

/// Calls body(first, last) for ranges of `count` items of `bytes` each. The
/// size of a range is a multiple of `together` items, except for the last.
template <class Body>
void for_bytes(thread_team& team, std::size_t count, std::size_t bytes,
               std::size_t together, const Body& body) {
  const auto of_task =
    std::clamp(count * bytes / (team.size() * tasks_of_thread), task_bytes,
               task_bytes_max);
  const auto least = of_task / std::max<std::size_t>(1, bytes);
  const auto step = (least / together + 1) * together;
  team.run((count + step - 1) / step, [&](std::size_t task, unsigned) {
    body(task * step, std::min(count, (task + 1) * step));
  });
}

} // namespace

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
  const auto T = y_TO.rows;
  if (y_TO.empty())
    return;
  const auto type = w_OI.type();
  const auto row_bytes = w_OI.bytes() / w_OI.rows();
  if (type == weight_type::f32) {
    if (T > few_f32)
      return matmul(y_TO, x_TI, w_OI.floats());
    for_bytes(team_, y_TO.cols, row_bytes, 1,
              [&](std::size_t first, std::size_t last) {
                rows_product_f32(y_TO, x_TI, w_OI.floats(), first, last);
              });
    return;
  }
  const auto with = features_;
  if (T > (type == weight_type::bf16 ? few_bf16 : few_panels)) {
    if (with.bf16)
      many_rows_bf16(team_, many_, y_TO, x_TI, w_OI, with);
    else if (type == weight_type::bf16)
      product(team_, products_, f32_engine(), y_TO, {x_TI.data, x_TI.stride},
              {nullptr, w_OI.cols(), transposed::yes, w_OI.halves().data},
              x_TI.cols, false);
    else if (has_i16_products())
      many_rows_i16(team_, many_, y_TO, x_TI, w_OI);
    else
      many_rows_f32(team_, many_, y_TO, x_TI, w_OI);
    return;
  }
  if (type == weight_type::bf16 && with.bf16) {
    halves_.resize(T, x_TI.cols);
    for (std::size_t t = 0; t != T; ++t)
      halves_.set(t, x_TI.row(t), x_TI.cols);
    for_bytes(team_, y_TO.cols, row_bytes, 1,
              [&](std::size_t first, std::size_t last) {
                rows_product_dot(y_TO, halves_, w_OI.halves(), first, last);
              });
    return;
  }
  if (type == weight_type::bf16) {
    pairs_.resize(T, x_TI.cols);
    for (std::size_t t = 0; t != T; ++t)
      pair_row(pairs_, t, x_TI.row(t), x_TI.cols);
    for_bytes(team_, y_TO.cols, row_bytes, streams,
              [&](std::size_t first, std::size_t last) {
                rows_product_bf16(y_TO, pairs_, w_OI.halves(), first, last);
              });
    return;
  }
  codes_.resize(T, x_TI.cols);
  for (std::size_t t = 0; t != T; ++t)
    quantise_row(codes_, t, x_TI.row(t), x_TI.cols);
  const auto panels = panels_of(y_TO.cols);
  for_bytes(team_, panels, w_OI.bytes() / panels, streams,
            [&](std::size_t first, std::size_t last) {
              if (with.vnni)
                panels_product_vnni(y_TO, codes_, w_OI, first, last);
              else
                panels_product(y_TO, codes_, w_OI, first, last);
            });
}

} // namespace shoal::kernels::cpu
