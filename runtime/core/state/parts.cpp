// runtime/core/state/parts.cpp -- sizes of parts.
#include "runtime/core/state/parts.hpp"

#include "runtime/core/job_entry.hpp"
#include "runtime/core/saturating.hpp"

#include <algorithm>

namespace shoal::core {
namespace {

/// The parameters, the gradients and each of the two moments are as large.
constexpr std::uint64_t state_arrays = 4;

} // namespace

part_table::block_range
part_table::blocks_of(const part_range& r) const noexcept {
  const std::uint32_t first = std::max(r.first, 1u) - 1;
  const std::uint32_t last = std::min(std::max(r.last, 1u) - 1, blocks_);
  return {std::min(first, last), last};
}

part_range parts_of_stage(const stage_place& s, bool is_first, bool is_last) {
  return {is_first ? 0 : s.first_block + 1, s.last_block + (is_last ? 2 : 1)};
}

std::uint64_t state_bytes(const job_entry& job, const part_range& r) {
  if (r.empty())
    return 0;
  const part_table parts(job.blocks);
  const auto blocks = parts.blocks_of(r);
  return std::min(
    (r.contains(parts.embedding()) ? job.embed_state_bytes : 0)
      + (r.contains(parts.head()) ? job.head_state_bytes : 0)
      + saturating_mul(blocks.last - blocks.first, job.block_state_bytes),
    cost_never);
}

std::uint64_t gradient_bytes(const job_entry& job, const part_range& r) {
  return state_bytes(job, r) / state_arrays;
}

std::uint64_t copied_bytes(const job_entry& job, const part_range& r) {
  return state_bytes(job, r) / state_arrays * (state_arrays - 1);
}

} // namespace shoal::core
