// runtime/node/state/role_actors.hpp -- the actors of this node, by name: one
// for each role of its table, and those of placed roles at their addresses.
//
// Threads: any. The actors are the node's until take_all(); placed ones are
// their supervisor's, which binds and unbinds them.
#pragma once

#include "runtime/context.hpp"

#include <caf/actor.hpp>

#include <map>
#include <mutex>
#include <string>

namespace shoal::runtime {

class role_actors {
public:
  /// Makes the actor of every role; once.
  void
  start(const role_table& roles, caf::actor_system& system, context& world);
  void bind(const std::string& address, caf::actor actor); ///< null: unbinds
  /// The actor of a role or of an address; null if there is none.
  caf::actor find(const std::string& name) const;
  /// Those of roles.
  std::map<std::string, caf::actor> all() const;
  /// The same, and forgets all.
  std::map<std::string, caf::actor> take_all();

private:
  mutable std::mutex mutex_; ///< guards what follows
  std::map<std::string, caf::actor> actors_;
  std::map<std::string, caf::actor> bound_;
};

} // namespace shoal::runtime
