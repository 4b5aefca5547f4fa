// runtime/core/training/job/state/held_units.hpp -- the state that is here: which
// units, at which versions, with which digests, and which are being loaded.
//
// A unit is held, or being loaded (then what was held of it is void), or
// neither. Digests are of what is held and are forgotten with it.
//
// J-5: take_spare() is the only way in which a unit goes that nothing replaces;
//      job_core calls it once a step has been committed.
//
// Threads: none. Cost: a call takes the logarithm of the units held.
#pragma once

#include "runtime/core/state/part_set.hpp"
#include "runtime/core/training/job_messages.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shoal::core {

class held_units {
public:
  [[nodiscard]] const std::map<std::uint32_t, state_version>&
  versions() const noexcept {
    return held_;
  }
  /// @pre it is held
  [[nodiscard]] const state_version& at(std::uint32_t unit) const {
    return held_.at(unit);
  }
  [[nodiscard]] bool is_at(std::uint32_t unit, const state_version& v) const;
  /// The unit was brought to the version.
  void set(std::uint32_t unit, const state_version& v) { held_[unit] = v; }
  /// What is held of the unit is void.
  void forget(std::uint32_t unit);
  /// Forgets the other units, also those whose load a halt broke off.
  /// @returns them, ascending
  std::vector<std::uint32_t> take_spare(const part_set& needed);

  // Loads.
  /// The loads that follow are made under this assignment.
  void begin_loads(std::uint64_t digest) { loading_under_ = digest; }
  /// The unit will be at the version; what was held of it is void.
  void load(std::uint32_t unit, const state_version& v);
  [[nodiscard]] bool loads(std::uint32_t unit) const {
    return loading_.contains(unit);
  }
  /// A load is complete. @returns whether it was awaited
  bool loaded(std::uint64_t digest, std::uint32_t unit);
  /// Units that are being loaded.
  [[nodiscard]] std::size_t loading() const noexcept { return loading_.size(); }
  /// A halt has ended all loads.
  void break_off();

  // Digests.
  /// Notes the digests of what is held now; those of other units do not count.
  void hashed(const std::vector<unit_digest>& digests);

  /// What is held, for a seal. @param prepared units of which the gradients of
  /// the next step are here; ascending
  [[nodiscard]] std::vector<held_unit>
  sealed(const std::vector<std::uint32_t>& prepared) const;

private:
  struct hashed_unit {
    state_version version;
    std::uint64_t digest = 0;
  };

  std::map<std::uint32_t, state_version> held_;
  std::map<std::uint32_t, hashed_unit> digests_; ///< the newest of each unit
  std::map<std::uint32_t, state_version> loading_;
  std::uint64_t loading_under_ = 0;
  std::set<std::uint32_t> broken_off_;
};

} // namespace shoal::core
