// runtime/node/state/role_actors.cpp -- actors by name.
#include "runtime/node/state/role_actors.hpp"

#include "runtime/work/uncaught.hpp" // name_actor

#include <utility>

namespace shoal::runtime {

void role_actors::start(const role_table& roles, caf::actor_system& system,
                        context& world) {
  std::map<std::string, caf::actor> actors;
  for (const auto& [name, make] : roles)
    if (caf::actor actor = make(system, world)) {
      name_actor(actor.id(), name);
      actors.emplace(name, std::move(actor));
    }
  std::lock_guard lock(mutex_);
  actors_ = std::move(actors);
}

void role_actors::bind(const std::string& address, caf::actor actor) {
  std::lock_guard lock(mutex_);
  if (actor)
    bound_[address] = std::move(actor);
  else
    bound_.erase(address);
}

caf::actor role_actors::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  if (auto role = actors_.find(name); role != actors_.end())
    return role->second;
  auto placed = bound_.find(name);
  return placed == bound_.end() ? caf::actor{} : placed->second;
}

std::map<std::string, caf::actor> role_actors::all() const {
  std::lock_guard lock(mutex_);
  return actors_;
}

std::map<std::string, caf::actor> role_actors::take_all() {
  std::lock_guard lock(mutex_);
  bound_.clear(); // the supervisor ends them
  return std::exchange(actors_, {});
}

} // namespace shoal::runtime
