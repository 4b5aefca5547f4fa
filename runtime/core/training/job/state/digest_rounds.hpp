// runtime/core/training/job/state/digest_rounds.hpp -- which units are hashed at which
// step, and whether two holders differ.
//
// Digests reveal corrupted bytes and wrong arithmetic. Each peer that holds a
// unit which others hold too hashes it every `every` steps, all at the same
// steps, and reports the hash in its vote. Where two hashes differ, all begin
// anew, and seals contain the newest hashes. The hash that most holders report
// counts as right; in a tie, the one from the lowest peer id. The other holders
// get the unit from these (resume.hpp).
//
// Threads: none. Cost: due() takes the units of a peer.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace shoal::core {

class digest_rounds {
public:
  /// @param every steps from one hash of a unit to the next; 0: never
  explicit digest_rounds(std::uint64_t every) : every_(every) {}

  /// Another assignment: finds the units that several peers hold. Of a unit
  /// with a single holder there is nothing to compare.
  /// @pre d.place
  void begin(const duty& d);
  /// The units to hash as of the state at `step`: the same steps on all holders
  /// of a unit; different steps for different units, so that no step takes
  /// long.
  [[nodiscard]] std::vector<std::uint32_t>
  due(const duty& d, std::uint64_t step) const;

private:
  std::uint64_t every_;
  std::set<std::uint32_t> compared_;
};

/// Whether two votes of a step have different digests of a unit.
[[nodiscard]] bool digests_differ(const std::vector<const vote*>& votes);

} // namespace shoal::core
