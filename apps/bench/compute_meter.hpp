// apps/bench/compute_meter.hpp -- how fast this machine computes, and could.
//
// Each figure is a median over runs, and stands beside a limit of the machine
// that was measured between the same runs: reading memory, or the best
// multiply-add there is. The limit is the highest that was seen, by the runs
// themselves, too: where other programs were at work while it was measured, no
// figure is above 100 %.
//
// Units:  as each row says; limits in the same.
// Errors: std::bad_alloc where a shape is larger than the machine;
//         std::runtime_error that names what a directory lacks.
#pragma once

#include "kernels/packed_weight.hpp"
#include "kernels/thread_team.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

/// One figure.
struct compute_figure {
  std::string what;
  std::size_t threads = 0; ///< that computed
  double value = 0;
  std::string unit;
  double limit = 0; ///< in that unit; 0: none
  std::string limit_of;

  double percent() const { return limit > 0 ? 100 * value / limit : 0; }
};

/// A model of random weights by name.
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
  /// A Hugging Face directory that prefill and decode read as generation does,
  /// instead of random weights of that shape. No types: as they are stored.
  std::string model;
  std::vector<kernels::weight_type> types;
  int runs = 5;
  std::size_t prompt = 512; ///< tokens of prefill
  std::size_t tokens = 16;  ///< decoded in one run
  /// Hears what is measured, and how each run went: a run may take minutes.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Reads of one thread and of all; each peak of multiply-adds.
std::vector<compute_figure>
measure_memory(kernels::thread_team& team, const compute_options& o);
/// Products: square ones of floats as training has them, and those of a prompt
/// with each type.
std::vector<compute_figure>
measure_gemm(kernels::thread_team& team, const compute_options& o);
/// Tokens of a prompt per second.
std::vector<compute_figure>
measure_prefill(kernels::thread_team& team, const compute_options& o);
/// New tokens per second, one after the other.
std::vector<compute_figure>
measure_decode(kernels::thread_team& team, const compute_options& o);
/// Tokens per second of training steps of 4 sequences of 256, with factors of
/// each type that products of training take (f32, bf16).
std::vector<compute_figure>
measure_train(kernels::thread_team& team, const compute_options& o);

} // namespace shoal::apps
