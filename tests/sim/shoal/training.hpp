// tests/sim/shoal/training.hpp -- the training run: tiny, and with known
// results.
//
// Every window of the text begins with letters that identify it, so that tokens
// show which sample they are; the run uses each window once.
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
  /// @param layout the wishes for the planner
  /// @param diverges now and then a step's loss is not a number
  training(std::uint64_t kind, std::uint64_t layout, bool diverges);
  static constexpr std::uint64_t kinds = 3;

  std::uint64_t windows() const;
  /// The window that begins with these tokens, or windows().
  std::uint64_t window_of(std::span<const std::int32_t> tokens) const;

  /// For all units.
  std::size_t parameter_bytes() const;

  /// Whether the loss of this step is not a number, on any peer.
  bool is_bad(std::uint64_t step) const;

  std::uint64_t kind = 0;
  bool diverges = false;
  runtime::run_config run;
  core::job_entry entry; ///< data and submitter have to be added
  std::vector<std::byte> text;
};

} // namespace shoal::sim
