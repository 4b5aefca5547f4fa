// apps/bench/compute_meter.hpp -- computing speed compared to the machine's
// limits.
//
// Each figure is a median over runs, shown with a limit of the machine that was
// measured between the same runs: the speed of reading memory, or of the
// fastest multiply-add. The limit is the highest value seen, including that of
// the runs themselves, so even if other programs were running while it was
// measured no figure is above 100 %.
//
// Units:  stated in each row; limits in the same.
// Errors: std::bad_alloc if a shape is too large for the machine;
//         std::runtime_error that names what a directory lacks.
#pragma once

#include "kernels/common/thread_team.hpp"
#include "kernels/inference/packed_weight.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

/// One figure.
struct compute_figure {
  std::string what;
  std::size_t threads = 0; ///< used for the computation
  double value = 0;
  std::string unit;
  double limit = 0; ///< in the same unit; 0: none
  std::string limit_of;

  double percent() const { return limit > 0 ? 100 * value / limit : 0; }
};

/// A model with random weights, by name.
struct model_shape {
  std::string_view name;
  std::size_t layers, width, heads, kv_heads, hidden, vocabulary;
  bool tied;
  std::string_view family = "llama"; ///< a model_type
};

/// tiny1b, gpt2-124m, llama-30m.
const std::vector<model_shape>& model_shapes();

struct compute_options {
  std::string shape = "tiny1b";
  /// A Hugging Face directory for prefill and decode, read as in generation,
  /// instead of random weights of that shape. No types: as stored.
  std::string model;
  std::vector<kernels::weight_type> types;
  int runs = 5;
  std::size_t prompt = 512; ///< tokens, for prefill
  std::size_t tokens = 16;  ///< decoded in one run
  /// Gets texts about each measurement and its runs: a run may take minutes.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Reads by one thread and by all; each kind of multiply-add.
std::vector<compute_figure>
measure_memory(kernels::thread_team& team, const compute_options& o);
/// Products: square ones of floats as in training, and those of a prompt with
/// each type.
std::vector<compute_figure>
measure_gemm(kernels::thread_team& team, const compute_options& o);
/// Tokens of a prompt per second.
std::vector<compute_figure>
measure_prefill(kernels::thread_team& team, const compute_options& o);
/// New tokens per second, one at a time.
std::vector<compute_figure>
measure_decode(kernels::thread_team& team, const compute_options& o);
/// Tokens per second in training steps of 4 sequences of 256, with factors of
/// each type that products of training support (f32, bf16).
std::vector<compute_figure>
measure_train(kernels::thread_team& team, const compute_options& o);

} // namespace shoal::apps
