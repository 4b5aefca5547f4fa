// runtime/core/cluster/local/situation.hpp -- where this peer stands now: the
// input to every call of a part of membership.
//
// Ownership: refers to what membership owns; never kept beyond a call.
#pragma once

#include "runtime/core/cluster/local/contacts.hpp"
#include "runtime/core/view.hpp"

namespace shoal::core::cluster {

enum class phase : std::uint8_t {
  created = 1,  ///< before start
  waiting = 2,  ///< seated, but the quorum is not in contact
  member = 3,   ///< seated or about to be, in contact with a quorum
  homeless = 4, ///< in no shoal; asking to be admitted
  gone = 5,     ///< left
};

struct situation {
  const member& self;        ///< this process, as it wants to be in a view
  const view& current;       ///< the newest decided view
  const contacts& connected; ///< peers
  cluster::phase phase = phase::created;
  bool seated = false; ///< in the shoal of `current`
  nanoseconds now = 0;

  /// Our entry in the view, of any start of the process; or null.
  const member* entry() const;
  /// Whether the entry is of this start.
  bool has_current_entry() const;
  bool has_vote() const;
  bool in_company() const;
};

} // namespace shoal::core::cluster
