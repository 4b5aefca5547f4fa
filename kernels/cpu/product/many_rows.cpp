// kernels/cpu/product/many_rows.cpp -- products of many tokens, some outputs at a
// time.
//
// By tiles of bf16. Rows of bf16 weights are the left side of the product, so
// that they need no transposition, and the tokens are the right side; the
// result is transposed. The panels of q8 and q4 are right sides, so there the
// tokens are the left side. Both sides are cut into strips of 32 rows or
// columns of one pass of inputs, 16 KiB each: one strip of tokens stays in the
// first-level cache while the task's strips of the weight come from the
// second-level cache.
#include "kernels/cpu/product/many_rows.hpp"

#include "kernels/check.hpp"
#include "kernels/cpu/product/bf16_tile.hpp"
#include "kernels/cpu/product/gemm.hpp"
#include "kernels/packed_layout.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::kernels::cpu {

namespace {

/// Tokens of one pass. Their results for the outputs of a task (512 KiB) stay
/// in the second-level cache beside the factors, if it has 2 MiB. AMX needs
/// that; vdpbf16ps is slower than the third-level cache.
constexpr std::size_t pass_tokens = 512;
/// Inputs of one pass: two strips and the results of one call, 36 KiB, lie in
/// the first-level cache. More inputs push the strip of tokens out, fewer load
/// and store the results more often.
constexpr std::size_t pass_inputs = 256;
/// Outputs of a task at most; the activations are read once for each task.
constexpr std::size_t task_outputs = 512;
/// The least number of tasks, so that threads finish together.
constexpr std::size_t tasks_wanted = 4;

constexpr std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

std::size_t outputs_of_task(std::size_t outputs) {
  const auto share = round_up(outputs / tasks_wanted, tile_side);
  return std::clamp(share, tile_side, task_outputs);
}

/// Memory of one worker, cut into pieces.
class arena {
public:
  arena(scratch_memory& memory, std::size_t bytes)
    : next_(memory.need(bytes)) {}
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

  bool rows_left() const { return w.type() == weight_type::bf16; }
  std::size_t token_strips() const { return tokens / tile_side; }
  std::size_t output_strips() const { return outputs / tile_side; }
  std::size_t x_size() const { return tokens * inputs; }
  std::size_t steps_from(std::size_t k) const {
    return std::min(pass_inputs, inputs - k) / tile_depth;
  }
};

/// Rounds activations of 16 tokens to their pieces of all strips of inputs. The
/// strips of the first pass of inputs come first.
void round_tokens(const pass& p, std::size_t panel, bf16* x) {
  const auto first = std::min(p.x_TI.rows, panel * 16);
  const auto rows = p.x_TI.slice_rows(first, std::min(p.x_TI.rows, first + 16));
  for (std::size_t k = 0; k < p.inputs; k += pass_inputs) {
    const auto steps = p.steps_from(k);
    const auto last = std::min(p.x_TI.cols, k + pass_inputs);
    const auto part = rows.slice_cols(std::min(k, last), last);
    const piece_writer into{x + k * p.tokens + panel / 2 * steps * step_values
                              + panel % 2 * piece_values,
                            steps};
    if (p.rows_left())
      round_to_b(part, into);
    else
      round_to_a(part, into);
  }
}

/// The pass of inputs from k on, of outputs [first, first + p.outputs).
void unpack_weight(const pass& p, std::size_t first, std::size_t k, bf16* to) {
  const auto steps = p.steps_from(k);
  for (std::size_t o = 0; o != p.outputs; o += 16) {
    const piece_writer into{
      to + o / 32 * steps * step_values + o / 16 % 2 * piece_values, steps};
    if (p.rows_left()) {
      const auto w = p.w.halves();
      const auto row = std::min(w.rows, first + o);
      const auto col = std::min(w.cols, k + pass_inputs);
      copy_to_a(w.slice_rows(row, std::min(w.rows, row + 16))
                  .slice_cols(std::min(k, col), col),
                into);
      continue;
    }
    const auto panel = (first + o) / panel_rows;
    const auto stride = chunks_of(p.w.cols()) * chunk_bytes(p.w.type());
    if (panel < panels_of(p.w.rows()))
      unpack_to_b(p.w.type(),
                  p.w.data() + panel * stride
                    + k / chunk_cols * chunk_bytes(p.w.type()),
                  into);
    else
      for (std::size_t s = 0; s != steps; ++s)
        std::fill_n(into.to + s * into.stride, piece_values, bf16{});
  }
}

/// Cache lines in a run of the memory that unpack_weight() will read.
constexpr std::size_t run_lines = pass_inputs / tile_depth;

/// The memory of the weight that a task reads from input k on, as runs: parts
/// of rows or of panels.
class weight_runs {
public:
  weight_runs(const pass& p, std::size_t first, std::size_t k) : p_(p), k_(k) {
    if (k >= p.w.cols())
      return;
    if (p.rows_left()) {
      first_ = first;
      count_ = std::min(first + p.outputs, p.w.rows()) - first;
      return;
    }
    first_ = first / panel_rows;
    const auto last =
      std::min((first + p.outputs) / panel_rows, panels_of(p.w.rows()));
    const auto bytes = p.steps_from(k) / 2 * chunk_bytes(p.w.type());
    runs_ = (bytes + 64 * run_lines - 1) / (64 * run_lines);
    count_ = (last - first_) * runs_;
  }
  std::size_t size() const { return count_; }
  const void* operator[](std::size_t i) const {
    if (p_.rows_left())
      return p_.w.halves().row(first_ + i) + k_;
    const auto chunk = chunk_bytes(p_.w.type());
    return p_.w.data() + (first_ + i / runs_) * chunks_of(p_.w.cols()) * chunk
           + k_ / chunk_cols * chunk + i % runs_ * 64 * run_lines;
  }

private:
  const pass& p_;
  std::size_t k_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t runs_ = 1; ///< of a panel
};

/// The range of `count` things that belongs to part `part` of `parts`.
std::pair<std::size_t, std::size_t>
share(std::size_t count, std::size_t part, std::size_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

/// Copies 16 x 16 results to their place in y_TO, up to its edges.
void put(const pass& p, const float* c, std::size_t t, std::size_t o) {
  if (t >= p.y_TO.rows || o >= p.y_TO.cols)
    return;
  const auto rows = std::min<std::size_t>(16, p.y_TO.rows - t);
  const auto cols = std::min<std::size_t>(16, p.y_TO.cols - o);
  alignas(64) float part[256];
  if (p.rows_left()) {
    if (rows == 16 && cols == 16)
      return transpose_16(c, 16, p.y_TO.row(t) + o, p.y_TO.stride);
    transpose_16(c, 16, part, 16);
    c = part;
  }
  for (std::size_t r = 0; r != rows; ++r)
    if (cols == 16)
      std::memcpy(p.y_TO.row(t + r) + o, c + r * 16, 64);
    else
      std::copy_n(c + r * 16, cols, p.y_TO.row(t + r) + o);
}

/// Outputs [first, first + p.outputs) of all tokens of the pass.
void multiply(const pass& p, const bf16* x, std::size_t first,
              scratch_memory& memory) {
  constexpr std::size_t c_size = tile_side * tile_side;
  const bool turned = p.rows_left();
  const auto calls = p.token_strips() * p.output_strips();
  const auto w_size = p.outputs * std::min(pass_inputs, p.inputs);
  arena from(memory, w_size * sizeof(bf16) + 64 + calls * c_size * 4);
  auto* w = from.take<bf16>(w_size);
  auto* c = from.take<float>(calls * c_size);
  const bf16_tiles tiles(p.with);
  for (std::size_t k = 0; k < p.inputs; k += pass_inputs) {
    const weight_runs soon(p, first, k + pass_inputs);
    bf16_tile_call call;
    call.steps = p.steps_from(k);
    call.add = k != 0;
    unpack_weight(p, first, k, w);
    for (std::size_t i = 0; i != p.token_strips(); ++i)
      for (std::size_t j = 0; j != p.output_strips(); ++j) {
        const auto* w_at = w + j * call.steps * step_values;
        const auto* x_at = x + k * p.tokens + i * call.steps * step_values;
        const auto index = i * p.output_strips() + j;
        call.a = turned ? w_at : x_at;
        call.b = turned ? x_at : w_at;
        call.c = c + index * c_size;
        // Prefetch a part of the weight's next inputs, and of the next tokens.
        std::fill_n(call.prefetch, prefetch_runs, call.a);
        std::size_t asked = 0;
        const auto [low, high] = share(soon.size(), index, calls);
        for (auto run = low; run != high && asked != prefetch_runs / 2; ++run)
          call.prefetch[asked++] = soon[run];
        const auto [from, to] = share(32, j, p.output_strips());
        for (auto run = from; run != to && asked != prefetch_runs; ++run)
          call.prefetch[asked++] = x_at + (32 + run) * call.steps * 32;
        tiles(call);
      }
  }
  // 16 tokens at a time, whose rows are written from left to right: the
  // processor does not follow more streams.
  for (std::size_t t = 0; t != p.tokens; t += 16)
    for (std::size_t o = 0; o != p.outputs; o += 16) {
      const auto half_t = t / 16 % 2;
      const auto half_o = o / 16 % 2;
      const auto* block =
        c + (t / tile_side * p.output_strips() + o / tile_side) * c_size;
      put(p, block + (turned ? 2 * half_o + half_t : 2 * half_t + half_o) * 256,
          t, first + o);
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

std::byte* scratch_memory::need(std::size_t bytes) {
  // Smaller memory does not get large pages.
  constexpr std::size_t least = std::size_t{4} << 20;
  if (size_ < bytes) {
    size_ = std::max(bytes, least);
    memory_ = allocate_packed(size_);
  }
  return memory_.get();
}

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
    auto* x =
      reinterpret_cast<bf16*>(scratch.x.need(p.x_size() * sizeof(bf16)));
    team.run(p.tokens / 16,
             [&](std::size_t panel, unsigned) { round_tokens(p, panel, x); });
    const auto tasks = (w_OI.rows() + p.outputs - 1) / p.outputs;
    team.run(tasks, [&](std::size_t task, unsigned worker) {
      multiply(p, x, task * p.outputs, scratch.tasks[worker]);
    });
  }
}

void many_rows_f32(thread_team& team, many_rows_scratch& scratch,
                   matrix_view<float> y_TO, matrix_view<const float> x_TI,
                   const packed_weight& w_OI) {
  SHOAL_KERNEL_ASSERT(w_OI.type() == weight_type::q8
                      || w_OI.type() == weight_type::q4);
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
    for (auto o = first; o < last; o += panel_rows)
      unpack_panel(w_OI, o / panel_rows, w + (o - first), step);
    gemm(y, {x_TI.data, x_TI.stride}, {w, step}, K, 1, 0);
  };
  team.run((w_OI.rows() + step - 1) / step, task);
}

} // namespace shoal::kernels::cpu
