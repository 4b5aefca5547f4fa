// runtime/core/state/parts.hpp -- the parts into which a job's state is cut.
//
// A part is what is held, sent, summed, sealed and saved as one: parameters,
// gradients and moments of some tensors of the model. Part 0 is the embedding,
// parts 1 to `blocks` are the blocks, the last one is the final norm and the
// head: part p is unit p of the model (model/units.hpp), and often called so.
//
// P-1: parts depend on the job alone, never on where it runs.
//
// Units: bytes. Threads: plain data and pure functions.
#pragma once

#include "runtime/core/state/part_set.hpp"

#include <cstdint>

namespace shoal::core {

struct job_entry;
struct stage_place;

class part_table {
public:
  constexpr explicit part_table(std::uint32_t blocks) noexcept
    : blocks_(blocks) {}

  [[nodiscard]] constexpr std::uint32_t count() const noexcept {
    return blocks_ + 2;
  }
  [[nodiscard]] constexpr part_index embedding() const noexcept { return 0; }
  [[nodiscard]] constexpr part_index head() const noexcept {
    return blocks_ + 1;
  }
  [[nodiscard]] constexpr part_range all() const noexcept {
    return {0, count()};
  }
  /// The blocks [first, last) in a range of parts: block b is part b + 1.
  struct block_range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  [[nodiscard]] block_range blocks_of(const part_range& r) const noexcept;

private:
  std::uint32_t blocks_;
};

/// The parts of a stage: those of its blocks, the embedding in the first stage
/// of a pipeline, the head in the last.
[[nodiscard]] part_range
parts_of_stage(const stage_place& s, bool is_first, bool is_last);

/// All of their state: parameters, gradients and two moments.
[[nodiscard]] std::uint64_t
state_bytes(const job_entry& job, const part_range& r);
/// Their gradients alone.
[[nodiscard]] std::uint64_t
gradient_bytes(const job_entry& job, const part_range& r);
/// What a copy of their state has: parameters and moments.
[[nodiscard]] std::uint64_t
copied_bytes(const job_entry& job, const part_range& r);

} // namespace shoal::core
