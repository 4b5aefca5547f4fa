// runtime/node/state/role_actors.cpp -- actors by name.
#include "runtime/node/state/role_actors.hpp"

#include "runtime/work/uncaught.hpp" // name_actor

#include <caf/send.hpp>

#include <utility>

namespace shoal::runtime {

static void tell_to_end(const std::map<std::string, caf::actor>& actors) {
  for (const auto& [name, actor] : actors)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

void role_actors::start(const role_table& roles, caf::actor_system& system,
                        context& world) {
  if (ended())
    return;
  std::map<std::string, caf::actor> actors;
  for (const auto& [name, make] : roles)
    if (caf::actor actor = make(system, world)) {
      name_actor(actor.id(), name);
      actors.emplace(name, std::move(actor));
    }
  {
    std::lock_guard lock(mutex_);
    if (!ended_)
      return actors_.swap(actors);
  }
  tell_to_end(actors);
}

void role_actors::bind(const std::string& address, caf::actor actor) {
  std::lock_guard lock(mutex_);
  if (actor && !ended_)
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

void role_actors::end_all() {
  std::map<std::string, caf::actor> actors;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    bound_.clear(); // the supervisor ends them
    actors.swap(actors_);
  }
  tell_to_end(actors);
}

bool role_actors::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

} // namespace shoal::runtime
