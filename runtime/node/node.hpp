// runtime/node/node.hpp -- this process as a peer: fabrics, view, roles,
// control.
//
// A node owns the actor system, the TLS fabric (and faster ones where they
// work), the membership actor, the store, the device and disk queues, and one
// actor for every role in its table. A view that takes effect is planned here
// and passed to the supervisor and the other roles as view_changed.
//
// Life: constructed -> (view agreed) ready -> leave() or stop() -> stopped.
//
// Threads: every member may be called from any thread, but not from an
//          observer's function. wait_stopped() and stop() block.
// Errors:  the constructor throws setup_error, whose text says what to do.
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/node/node_config.hpp"

#include <chrono>
#include <memory>

namespace shoal::runtime {

class node {
public:
  /// Starts everything. @pre `roles` may lack "supervisor": then job messages
  /// are dropped (a node of tests, or a witness).
  node(node_config config, role_table roles);
  ~node(); ///< As stop().

  const core::peer_id& self() const noexcept;
  const std::filesystem::path& data_dir() const noexcept;
  const std::string& address() const noexcept; ///< "host:port" where it serves
  context& world() noexcept;

  /// The newest view, or null before the first one.
  std::shared_ptr<const core::view> view() const;

  /// Starts to leave: jobs drain, the view agrees, then the node stops. After
  /// `deadline` it stops in any case. Returns at once; a second call shortens
  /// the deadline.
  void leave(std::chrono::milliseconds deadline, bool drain = true);

  /// @returns whether the node has stopped within `timeout`.
  bool wait_stopped(std::chrono::milliseconds timeout);

  /// Whether it has stopped, or is stopping, because it cannot go on.
  bool failed() const;

  /// Stops at once, as if the process had been killed: no peer is told.
  void stop();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
