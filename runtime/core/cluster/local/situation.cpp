// runtime/core/cluster/local/situation.cpp -- questions about where we stand.
#include "runtime/core/cluster/local/situation.hpp"

namespace shoal::core::cluster {

const member* situation::entry() const {
  return find_member(current, self.id.peer);
}

bool situation::has_current_entry() const {
  const member* m = entry();
  return m != nullptr && m->instance == self.instance;
}

bool situation::has_vote() const {
  const member* m = entry();
  return seated && m != nullptr && votes(*m) && !current.dissolved_into;
}

bool situation::in_company() const {
  return phase != phase::homeless && current.members.size() > 1;
}

} // namespace shoal::core::cluster
