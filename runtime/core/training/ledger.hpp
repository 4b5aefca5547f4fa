// runtime/core/training/ledger.hpp -- which samples a run has used, and proof.
//
// The peer that computes the loss of a microbatch takes a digest of the targets
// that it was computed from. The digests travel with the losses, so a committed
// step's record names the data that went into it, even if peers were killed or
// work was moved or run again meanwhile: equal steps of equal runs have equal
// digests.
//
// An auditor with the text computes the same digests from (seed, step), and
// checks whether each committed step used its own samples. The order
// (data_order.hpp) visits each window once in each data epoch, and each step is
// committed once; so if all steps check, no sample was left out or used twice.
//
// Digests have 64 bits: they detect mistakes, not attacks.
#pragma once

#include "runtime/core/training/data_order.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shoal::core {

/// The digest of a microbatch's targets, in order. Cost: some 1 ns a token.
[[nodiscard]] std::uint64_t
digest_of_sample(std::span<const std::int32_t> targets) noexcept;

/// The digest of all microbatches of a step, in order; never 0.
[[nodiscard]] std::uint64_t
digest_of_step(std::span<const std::uint64_t> samples) noexcept;

/// A job log's entry about a step: the newest entry counts.
struct used_data {
  std::uint64_t step = 0;
  std::uint64_t data = 0; ///< 0: unknown
};

/// Steps, lines or windows with an error: the first ones, and the total number.
struct findings {
  /// More are of no use to a reader, and a log that names steps 1 and 10^12
  /// lacks all steps between.
  static constexpr std::size_t listed_max = 1000;

  std::vector<std::uint64_t> listed;
  std::uint64_t count = 0;

  void add(std::uint64_t number) { add(number, number + 1); }
  /// Adds [first, last).
  void add(std::uint64_t first, std::uint64_t last);
};

/// The result of an audit.
struct audit {
  std::uint64_t steps = 0;   ///< committed, first to last
  std::uint64_t samples = 0; ///< windows that they have used
  std::uint64_t epochs = 0;  ///< complete data epochs
  findings missing;          ///< steps that the log lacks
  findings other;            ///< steps that used other samples
  findings unknown;          ///< steps without a digest
  findings repeated;         ///< windows twice in a data epoch
  [[nodiscard]] bool proven() const {
    return steps > 0 && missing.count == 0 && other.count == 0
           && unknown.count == 0 && repeated.count == 0;
  }
};

/// @param order         of the run
/// @param microbatches  of a step; samples_per_step is a multiple of it
/// @pre                 1 <= step < 2^63 / samples_per_step, in all of the log
/// @param log           in any order; of a step the last entry counts
/// @param targets       fills the targets of the window, seq_len of them
/// Cost: all tokens of the steps once; a bit for each window.
[[nodiscard]] audit
audit_run(const data_order& order, std::uint32_t microbatches,
          std::size_t seq_len, const std::vector<used_data>& log,
          const std::function<void(std::uint64_t window,
                                   std::span<std::int32_t> targets)>& targets);

} // namespace shoal::core
