// kernels/cpu/many_rows.cpp -- products of many tokens, a part of the outputs
// at a time.
//
// By tiles of bf16: rows of bf16 weights are the left side of the product as
// they lie, so that they need no turning, and the tokens the right one; what
// comes out is turned. Of q8 and q4, whose panels are right sides, the tokens
// are the left side.
#include "kernels/cpu/many_rows.hpp"

#include "kernels/check.hpp"
#include "kernels/cpu/bf16_tile.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/packed_layout.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::kernels::cpu {

namespace {

/// Tokens of one pass: their results for the outputs of a task (512 KiB) stay
/// in the second-level cache beside what is multiplied, where that has 2 MiB.
/// AMX needs that; vdpbf16ps is slower than the next cache.
constexpr std::size_t pass_tokens = 512;
/// Inputs of one pass: 32 rows of them are 32 KiB, which stay in the
/// first-level cache while all of the other side passes by.
constexpr std::size_t pass_inputs = 512;
/// Outputs of a task at most; the activations are read once for each task.
constexpr std::size_t task_outputs = 256;
/// Tasks there should be, so that threads end together.
constexpr std::size_t tasks_wanted = 8;

constexpr std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

std::size_t outputs_of_task(std::size_t outputs) {
  const auto share = round_up(outputs / tasks_wanted, tile_side);
  return std::clamp(share, tile_side, task_outputs);
}

/// Aligned memory of one worker, cut into pieces.
class arena {
public:
  arena(std::vector<std::byte>& memory, std::size_t bytes) {
    constexpr std::size_t line = 64;
    if (memory.size() < bytes + line)
      memory.resize(bytes + line);
    auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    next_ = memory.data() + (line - at % line) % line;
  }
  template <class T>
  T* take(std::size_t count) {
    auto* piece = next_;
    next_ += round_up(count * sizeof(T), 64);
    return reinterpret_cast<T*>(piece);
  }

private:
  std::byte* next_;
};

/// One pass: some tokens, all outputs.
struct pass {
  matrix_view<float> y_TO;
  matrix_view<const float> x_TI;
  const packed_weight& w;
  features with;
  std::size_t tokens = round_up(x_TI.rows, tile_side);
  std::size_t inputs = round_up(x_TI.cols, chunk_cols);
  std::size_t outputs = outputs_of_task(w.rows());
  /// Of rows of activations; not a multiple of a page, so that rows lie in
  /// different sets of the caches.
  std::size_t x_stride = inputs + 32;

  bool rows_left() const { return w.type() == weight_type::bf16; }
  std::size_t x_size() const {
    return tokens * (rows_left() ? inputs : x_stride);
  }
};

/// Activations of 16 tokens, rounded: rows, or a panel of pairs.
void round_tokens(const pass& p, std::size_t panel, bf16* x,
                  std::vector<std::byte>& memory) {
  const auto first = panel * 16;
  const auto row = [&](std::size_t t, bf16* to) {
    if (first + t < p.x_TI.rows)
      round_row(p.x_TI.row(first + t), p.x_TI.cols, to, p.inputs);
    else
      std::fill_n(to, p.inputs, bf16{});
  };
  if (!p.rows_left()) {
    for (std::size_t t = 0; t != 16; ++t)
      row(t, x + (first + t) * p.x_stride);
    return;
  }
  arena from(memory, 16 * p.x_stride * sizeof(bf16));
  auto* rows = from.take<bf16>(16 * p.x_stride);
  for (std::size_t t = 0; t != 16; ++t)
    row(t, rows + t * p.x_stride);
  auto* to = reinterpret_cast<float*>(x + first * p.inputs);
  for (std::size_t k = 0; k != p.inputs; k += 32)
    transpose_16(reinterpret_cast<float*>(rows + k), p.x_stride / 2, to + 8 * k,
                 16);
}

/// Inputs [k, k + size) of outputs [first, first + p.outputs): rows of
/// size + 32 values, or panels of size * 16.
void unpack_weight(const pass& p, std::size_t first, std::size_t k,
                   std::size_t size, bf16* to) {
  if (p.rows_left()) {
    const auto w = p.w.halves();
    const auto here = std::min(size, w.cols - std::min(w.cols, k));
    for (std::size_t o = 0; o != p.outputs; ++o, to += size + 32) {
      const auto copied = first + o < w.rows ? here : 0;
      if (copied != 0)
        std::copy_n(w.row(first + o) + k, copied, to);
      std::fill(to + copied, to + size, bf16{});
    }
    return;
  }
  const auto panels = panels_of(p.w.rows());
  const auto stride = chunks_of(p.w.cols()) * chunk_bytes(p.w.type());
  for (auto panel = first / 16; panel != (first + p.outputs) / 16;
       ++panel, to += size * 16) {
    if (panel < panels)
      unpack_chunks(p.w.type(), p.w.data() + panel * stride, k / chunk_cols,
                    (k + size) / chunk_cols, to);
    else
      std::fill_n(to, size * 16, bf16{});
  }
}

/// Asks for part `part` of `parts` of what unpack_weight() will read, so that
/// it comes while the products before are computed.
void prefetch_weight(const pass& p, std::size_t first, std::size_t k,
                     std::size_t size, std::size_t part, std::size_t parts) {
  constexpr std::size_t line = 64;
  const auto ask = [](const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += line)
      __builtin_prefetch(static_cast<const std::byte*>(from) + at, 0, 2);
  };
  const auto share = [&](std::size_t count) {
    return std::pair{count * part / parts, count * (part + 1) / parts};
  };
  if (k >= p.w.cols())
    return;
  if (p.rows_left()) {
    const auto w = p.w.halves();
    const auto bytes = std::min(size, w.cols - k) * sizeof(bf16);
    const auto [low, high] = share(p.outputs);
    for (auto o = first + low; o < std::min(first + high, w.rows); ++o)
      ask(w.row(o) + k, bytes);
    return;
  }
  const auto chunk = chunk_bytes(p.w.type());
  const auto stride = chunks_of(p.w.cols()) * chunk;
  const auto [low, high] = share(p.outputs / panel_rows * (size / chunk_cols));
  for (auto i = low; i != high; ++i) {
    const auto panel = first / panel_rows + i / (size / chunk_cols);
    if (panel < panels_of(p.w.rows()))
      ask(p.w.data() + panel * stride
            + (k / chunk_cols + i % (size / chunk_cols)) * chunk,
          chunk);
  }
}

/// Copies 16 x 16 results to where they belong, as far as that is.
void put(const pass& p, const float* c, bool turned, std::size_t t,
         std::size_t o) {
  if (t >= p.y_TO.rows || o >= p.y_TO.cols)
    return;
  const auto rows = std::min<std::size_t>(16, p.y_TO.rows - t);
  const auto cols = std::min<std::size_t>(16, p.y_TO.cols - o);
  alignas(64) float part[256];
  std::size_t stride = tile_side;
  if (turned) {
    if (rows == 16 && cols == 16)
      return transpose_16(c, tile_side, p.y_TO.row(t) + o, p.y_TO.stride);
    transpose_16(c, tile_side, part, 16);
    c = part;
    stride = 16;
  }
  for (std::size_t r = 0; r != rows; ++r)
    std::copy_n(c + r * stride, cols, p.y_TO.row(t + r) + o);
}

/// Outputs [first, first + p.outputs) of all tokens of the pass.
void multiply(const pass& p, const bf16* x, std::size_t first,
              std::vector<std::byte>& memory) {
  const auto depth = std::min(pass_inputs, p.inputs);
  const auto w_size = p.outputs * (depth + 32);
  const auto c_size = p.outputs * p.tokens;
  arena from(memory, w_size * sizeof(bf16) + 64 + c_size * sizeof(float));
  auto* w = from.take<bf16>(w_size);
  auto* c = from.take<float>(c_size);
  const bool turned = p.rows_left();
  const auto token_tiles = p.tokens / tile_side;
  const auto output_tiles = p.outputs / tile_side;
  {
    const bf16_tiles tiles(p.with);
    for (std::size_t k = 0; k < p.inputs; k += pass_inputs) {
      const auto size = std::min(pass_inputs, p.inputs - k);
      unpack_weight(p, first, k, size, w);
      for (std::size_t i = 0; i != token_tiles; ++i)
        for (std::size_t j = 0; j != output_tiles; ++j) {
          bf16_tile_call call;
          const auto w_stride = turned ? size + 32 : size * 16;
          const auto x_stride = turned ? p.inputs * 16 : p.x_stride;
          const auto* w_at =
            w + j * (turned ? tile_side * w_stride : 2 * w_stride);
          const auto* x_at = turned ? x + i * 2 * x_stride + k * 16
                                    : x + i * tile_side * x_stride + k;
          call.a = turned ? w_at : x_at;
          call.a_stride = turned ? w_stride : x_stride;
          call.b = turned ? x_at : w_at;
          call.b_stride = turned ? x_stride : w_stride;
          call.steps = size / tile_depth;
          call.c = c + (i * output_tiles + j) * tile_side * tile_side;
          call.add = k != 0;
          tiles(call);
          const auto next = std::min(pass_inputs, p.inputs - k - size);
          if (next != 0)
            prefetch_weight(p, first, k + size, next, i * output_tiles + j,
                            token_tiles * output_tiles);
        }
    }
  }
  for (std::size_t i = 0; i != token_tiles; ++i)
    for (std::size_t j = 0; j != output_tiles; ++j)
      for (std::size_t a = 0; a != 2; ++a)
        for (std::size_t b = 0; b != 2; ++b) {
          const auto* block = c + (i * output_tiles + j) * tile_side * tile_side
                              + (turned ? b * 16 * tile_side + a * 16
                                        : a * 16 * tile_side + b * 16);
          put(p, block, turned, i * tile_side + a * 16,
              first + j * tile_side + b * 16);
        }
}

/// Chunks of a panel as floats: input k of output n at to[k * stride + n].
void unpack_panel(const packed_weight& w, std::size_t panel, float* to,
                  std::size_t stride) {
  const auto* chunk =
    w.data() + panel * chunks_of(w.cols()) * chunk_bytes(w.type());
  for (std::size_t k = 0; k != w.cols(); ++k) {
    const auto* here = chunk + k / chunk_cols * chunk_bytes(w.type());
    const auto block = k % chunk_cols / block_cols;
    const auto g = k % block_cols / 4;
    const auto* codes =
      here + scale_bytes + k % 4
      + 64 * (w.type() == weight_type::q8 ? 8 * block + g : g);
    for (std::size_t n = 0; n != panel_rows; ++n) {
      bf16 scale;
      std::memcpy(&scale, here + 4 * n + 2 * block, sizeof scale);
      const auto bits = static_cast<int>(codes[4 * n]);
      const auto code = w.type() == weight_type::q8
                          ? bits - code_offset
                          : q4_codes[bits >> (4 * block) & 15];
      to[k * stride + n] = to_float(scale) * static_cast<float>(code);
    }
  }
}

} // namespace

void many_rows_bf16(thread_team& team, many_rows_scratch& scratch,
                    matrix_view<float> y_TO, matrix_view<const float> x_TI,
                    const packed_weight& w_OI, features with) {
  SHOAL_KERNEL_ASSERT(with.bf16 && w_OI.type() != weight_type::f32);
  scratch.tasks.resize(
    std::max<std::size_t>(scratch.tasks.size(), team.size()));
  for (std::size_t t = 0; t < y_TO.rows; t += pass_tokens) {
    const auto last = std::min(y_TO.rows, t + pass_tokens);
    const pass p{y_TO.slice_rows(t, last), x_TI.slice_rows(t, last), w_OI,
                 with};
    constexpr std::size_t line = 64 / sizeof(bf16);
    if (scratch.x.size() < p.x_size() + line)
      scratch.x.resize(p.x_size() + line);
    const auto at = reinterpret_cast<std::uintptr_t>(scratch.x.data());
    auto* x = scratch.x.data() + (64 - at % 64) % 64 / sizeof(bf16);
    team.run(p.tokens / 16, [&](std::size_t panel, unsigned worker) {
      round_tokens(p, panel, x, scratch.tasks[worker]);
    });
    const auto tasks = (w_OI.rows() + p.outputs - 1) / p.outputs;
    team.run(tasks, [&](std::size_t task, unsigned worker) {
      multiply(p, x, task * p.outputs, scratch.tasks[worker]);
    });
  }
}

void many_rows_f32(thread_team& team, many_rows_scratch& scratch,
                   matrix_view<float> y_TO, matrix_view<const float> x_TI,
                   const packed_weight& w_OI) {
  scratch.tasks.resize(
    std::max<std::size_t>(scratch.tasks.size(), team.size()));
  const auto K = w_OI.cols();
  const auto step = outputs_of_task(w_OI.rows());
  const auto task = [&](std::size_t index, unsigned worker) {
    const auto first = index * step;
    const auto last = std::min(w_OI.rows(), first + step);
    arena from(scratch.tasks[worker], step * K * sizeof(float));
    auto* w = from.take<float>(step * K);
    auto y = y_TO.slice_cols(first, last);
    if (w_OI.type() == weight_type::bf16) {
      for (auto o = first; o != last; ++o)
        for (std::size_t i = 0; i != K; ++i)
          w[(o - first) * K + i] = to_float(w_OI.halves()(o, i));
      gemm(y, {x_TI.data, x_TI.stride}, {w, K, transposed::yes}, K, 1, 0);
      return;
    }
    for (auto o = first; o < last; o += panel_rows)
      unpack_panel(w_OI, o / panel_rows, w + (o - first), step);
    gemm(y, {x_TI.data, x_TI.stride}, {w, step}, K, 1, 0);
  };
  team.run((w_OI.rows() + step - 1) / step, task);
}

} // namespace shoal::kernels::cpu
