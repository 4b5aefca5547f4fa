// runtime/core/training/schedule.hpp -- the order of work of a pipeline stage.
//
// One forward, one backward (1F1B): a stage runs ahead by the number of stages
// behind it, then alternates, so that it never keeps more microbatches than
// that. The backward pass is two items: the input gradient, which the stage
// before waits for, and the weight gradient, which nobody does. Here the
// weight gradient follows at once.
//
// Invariants
// S-1: forwards, input gradients and weight gradients each run in ascending
//      order of microbatches on every stage, so a stage split changes no sum.
// S-2: of one microbatch: forward before input gradient before weight gradient.
//
// Source: D. Narayanan et al.: Memory-Efficient Pipeline-Parallel DNN
// Training, ICML 2021 (1F1B with a flush at the end of the step).
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::core {

enum class work_kind : std::uint8_t {
  forward = 1,
  input_gradient = 2,  ///< "B"
  weight_gradient = 3, ///< "W"
};

struct work_item {
  work_kind kind = work_kind::forward;
  std::uint32_t microbatch = 0; ///< of the step, not of the replica
  friend bool operator==(const work_item&, const work_item&) = default;
};

/// What stage `stage` of `stages` does for microbatches [first, last).
/// @pre stage < stages
[[nodiscard]] std::vector<work_item>
make_schedule(std::uint32_t stage, std::uint32_t stages, std::uint32_t first,
              std::uint32_t last);

/// Forward only, for evaluation and scoring.
[[nodiscard]] std::vector<work_item>
make_forward_schedule(std::uint32_t first, std::uint32_t last);

/// The most microbatches whose activations a stage keeps at one time.
[[nodiscard]] std::uint32_t
live_microbatches_max(std::uint32_t stage, std::uint32_t stages,
                      std::uint32_t microbatches);

} // namespace shoal::core
