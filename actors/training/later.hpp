// actors/training/later.hpp -- completions on other threads, brought back to
// their actor.
//
// Device work and transfers end on other threads. The actor's reaction is
// posted to it as a function, and runs as one of its messages.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/send.hpp>

#include <functional>
#include <utility>

namespace shoal::actors {

/// A message to an actor, which calls run().
struct later {
  std::function<void()> run;
};

/// Makes a function run in a turn of an actor; callable from any thread. It
/// does nothing once the actor has ended.
using poster = std::function<void(std::function<void()>)>;

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::later)

namespace shoal::actors {

/// A poster that does not keep the actor alive: the actor's own members may
/// hold it.
inline poster post_to(caf::actor_addr owner) {
  return [owner = std::move(owner)](std::function<void()> run) {
    if (const auto to = caf::actor_cast<caf::actor>(owner))
      caf::anon_send(to, later{std::move(run)});
  };
}

} // namespace shoal::actors
