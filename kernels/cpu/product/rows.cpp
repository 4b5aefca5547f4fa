// kernels/cpu/product/rows.cpp -- cuts a product of rows into tasks and tiles.
#include "kernels/cpu/product/rows.hpp"

#include "kernels/common/check.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

namespace {

/// Bytes of the panels of a task: they stay in the second-level cache while all
/// tokens pass by.
constexpr std::size_t panels_bytes_max = std::size_t{256} << 10;
/// The least number of tasks for each thread, so that threads finish together.
constexpr std::size_t tasks_per_thread = 4;
/// Tokens whose activations one task prepares.
constexpr std::size_t tokens_packed = 8;
constexpr std::size_t line = 64;

std::size_t parts_of(std::size_t size, std::size_t part) {
  return (size + part - 1) / part;
}

} // namespace

void rows_product(thread_team& team, rows_scratch& scratch, const row_engine& e,
                  matrix_view<float> y_TO, matrix_view<const float> x_TI,
                  const packed_weight& w_OI) {
  const std::size_t T = y_TO.rows, O = y_TO.cols;
  const std::size_t together = e.steps_together;
  const std::size_t steps =
    parts_of(w_OI.cols(), e.step_inputs * together) * together;
  // One line more: rows would share the sets of a cache if their distance were
  // a power of two.
  const std::size_t stride = parts_of(steps * e.x_bytes, line) * line + line;
  std::byte* const x = scratch.x.need(T * stride);
  const auto pack = [&](std::size_t first, std::size_t last) {
    for (auto t = first; t != last; ++t)
      e.pack_x(x_TI.row(t), x_TI.cols, steps, x + t * stride);
  };
  const bool tiled = e.tiled_in_place != nullptr && T <= tiled_tokens_max;
  if (T <= tile_tokens_max || tiled) {
    const auto in_place = T <= tile_tokens_max ? e.in_place : e.tiled_in_place;
    pack(0, T);
    for_bytes(team, O, w_OI.bytes() / O, panel_outputs,
              [&](std::size_t first, std::size_t last) {
                in_place(y_TO, {x, stride, T}, w_OI, first, last);
              });
    return;
  }
  team.run(parts_of(T, tokens_packed), [&](std::size_t task, unsigned) {
    pack(task * tokens_packed, std::min(T, (task + 1) * tokens_packed));
  });
  if (scratch.tasks.size() < team.size())
    scratch.tasks.resize(team.size());
  const std::size_t panel_bytes =
    steps * panel_outputs * e.x_bytes; // the size of activations
  const std::size_t panels = parts_of(O, panel_outputs);
  const std::size_t each =
    std::clamp<std::size_t>(std::min(panels_bytes_max / panel_bytes,
                                     panels / (tasks_per_thread * team.size())),
                            1, panels);
  team.run(parts_of(panels, each), [&](std::size_t task, unsigned worker) {
    const std::size_t first = task * each;
    const std::size_t count = std::min(each, panels - first);
    std::byte* const sums =
      scratch.tasks[worker].need(each * (e.sum_bytes + panel_bytes));
    std::byte* const w = sums + each * e.sum_bytes;
    for (std::size_t p = 0; p != count; ++p)
      e.pack_panel(w_OI, (first + p) * panel_outputs, steps,
                   w + p * panel_bytes);
    const auto y = y_TO.slice_cols(
      first * panel_outputs, std::min(O, (first + count) * panel_outputs));
    for (std::size_t t = 0; t < T; t += e.tile_tokens) {
      const std::size_t last = std::min(T, t + e.tile_tokens);
      e.multiply(y.slice_rows(t, last), {x + t * stride, stride, last - t},
                 {w, panel_bytes, steps}, sums);
    }
  });
}

} // namespace shoal::kernels::cpu
