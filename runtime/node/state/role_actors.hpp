// runtime/node/state/role_actors.hpp -- the actors of this node by name: one
// for each role of its table, and those of placed roles at their addresses.
//
// Threads: any. The node owns the actors, except placed ones, which belong to
// their supervisor, which binds and unbinds them.
#pragma once

#include "runtime/context.hpp"

#include <caf/actor.hpp>

#include <map>
#include <mutex>
#include <string>

namespace shoal::runtime {

class role_actors {
public:
  /// Makes the actor of every role; once. After end_all(): none.
  void
  start(const role_table& roles, caf::actor_system& system, context& world);
  void bind(const std::string& address, caf::actor actor); ///< null: unbinds
  /// The actor of a role or of an address; null if there is none.
  caf::actor find(const std::string& name) const;
  /// The actors of roles.
  std::map<std::string, caf::actor> all() const;
  /// Tells each of them to end, also those that start() is just making: the
  /// actor system would wait for them. No name finds an actor from now on.
  void end_all();

private:
  bool ended() const;

  mutable std::mutex mutex_; ///< guards what follows
  bool ended_ = false;
  std::map<std::string, caf::actor> actors_;
  std::map<std::string, caf::actor> bound_;
};

} // namespace shoal::runtime
