// tests/sim/shoal/training.hpp -- what is trained: tiny, and known beforehand.
//
// Every window of the text begins with letters that name it, so that whoever
// sees tokens knows which sample they are; the run uses each window once.
#pragma once

#include "runtime/core/view.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::sim {

struct training {
  /// @param kind one of `kinds`: shape of model and run
  /// @param layout what is asked of the planner
  /// @param diverges now and then a step's loss is not a number
  training(std::uint64_t kind, std::uint64_t layout, bool diverges);
  static constexpr std::uint64_t kinds = 3;

  std::uint64_t windows() const;
  /// The window that begins with these tokens, or windows().
  std::uint64_t window_of(std::span<const std::int32_t> tokens) const;

  /// Of the parameters of all units.
  std::size_t parameter_bytes() const;

  /// Whether the loss of this step is not a number, whoever computes it.
  bool is_bad(std::uint64_t step) const;

  std::uint64_t kind = 0;
  bool diverges = false;
  runtime::run_config run;
  core::job_entry entry; ///< data and submitter are still to be said
  std::vector<std::byte> text;
};

} // namespace shoal::sim
