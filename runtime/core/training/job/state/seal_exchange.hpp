// runtime/core/training/job/state/seal_exchange.hpp -- the seals of the sealers,
// and those that come before the view that they belong to.
//
// J-2: of each peer and assignment the first seal is the only one.
//
// Threads: none.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"

#include <map>
#include <utility>
#include <vector>

namespace shoal::core {

class seal_exchange {
public:
  /// Seals of newer assignments that are kept; others are sent again.
  static constexpr std::size_t kept_max = 64;

  /// Another assignment is taken up.
  void halt() { seals_.clear(); }
  /// The seals that came before that assignment; drops older ones.
  [[nodiscard]] std::vector<std::pair<peer_id, seal>> take_early(const duty& d);

  /// A seal of this assignment, ours or another sealer's.
  void take(const peer_id& from, const seal& s) { seals_.try_emplace(from, s); }
  /// A seal of a newer assignment.
  void keep(const peer_id& from, const seal& s);
  /// Whether one of `peers`, ascending, has sealed for the assignment of that
  /// view or a later one.
  [[nodiscard]] bool
  is_early(const std::vector<peer_id>& peers, epoch since) const;

  [[nodiscard]] bool complete(const duty& d) const {
    return seals_.size() >= d.sealers.size();
  }
  /// The peer's seal; or null.
  [[nodiscard]] const seal* find(const peer_id& peer) const;
  [[nodiscard]] const std::map<peer_id, seal>& all() const noexcept {
    return seals_;
  }

private:
  std::map<peer_id, seal> seals_;
  std::map<peer_id, seal> early_; ///< of newer assignments
};

} // namespace shoal::core
