// runtime/node/cluster_shell.hpp -- the cluster core, its records and actions.
//
//   event --> core --> observer --> outbox --> membership_handler   (the node)
//                                    |  ^
//                            store() v  | written(), retry()
//                                  shell_host        (disk, timer)
//
// The only place that carries out the core's actions, in the product
// (membership_actor.hpp) and in the simulation (tests/sim/shoal): the two
// differ only in their disk and their clock.
//
// S-1: an action that may reveal a record is carried out after the record, or a
//      newer one of its kind, is stored (core/cluster/outbox.hpp).
// S-2: one record is being stored at a time. After one that could not be
//      stored, none is stored until retry().
//
// Threads:   one at a time. No member waits.
// Ownership: node, host and observer outlive the shell.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/cluster/outbox.hpp"

#include <string>
#include <vector>

namespace shoal::runtime {

/// Effects of the core's actions on the node. Must not wait, nor call the
/// shell.
class membership_handler {
public:
  virtual ~membership_handler() = default;
  virtual void send(const std::vector<core::peer_id>& to,
                    const core::cluster::message& what) = 0;
  virtual void connect(const std::string& address) = 0;
  virtual void disconnect(const core::peer_id& peer) = 0;
  virtual void adopt(const core::cluster::new_view& v) = 0;
  virtual void waiting(const core::cluster::waiting_for& w) = 0;
  virtual void left(bool clean) = 0;
  virtual void shut_out() = 0;
  virtual void rejected(const core::cluster::rejected& r) = 0;
  virtual void use_keys(const core::cluster::key_record& keys) = 0;
  /// After every step, for status.
  virtual void
  stepped(core::cluster::phase p, std::vector<core::peer_id> reachable) = 0;
  virtual void say(const std::string& line) = 0;
};

/// The disk and the timer of a shell. Must not call the shell.
class shell_host {
public:
  virtual ~shell_host() = default;
  /// Stores a record, or drops all records, or begins to.
  /// @returns whether that is complete; otherwise written() follows
  [[nodiscard]] virtual bool store(const core::cluster::outbox::write& w) = 0;
  /// The core wants a tick at `when`, or soon after; this replaces any time
  /// that it has requested before.
  virtual void wake_at(core::nanoseconds when) = 0;
};

/// Sees every step of a core before any of its actions is carried out.
class step_observer {
public:
  virtual ~step_observer() = default;
  /// May remove actions from the end, like the death of the process in the
  /// middle of a step.
  virtual void
  decided(const core::cluster::event& e, core::cluster::actions& out) = 0;
};

class cluster_shell {
public:
  /// @param stored the records with which the core is started
  cluster_shell(core::cluster::config config,
                const core::cluster::history& stored, membership_handler& node,
                shell_host& host, step_observer* observer = nullptr);

  /// One step of the core. @pre the first event is start
  void step(const core::cluster::event& e, core::nanoseconds now);

  /// The result of the write that store() began.
  void written(bool stored);

  /// The pause after a failed write is over.
  void retry();

  const core::cluster::membership& core() const noexcept { return core_; }

private:
  void write();
  void carry_out();
  void act(const core::cluster::send& a);
  void act(const core::cluster::persist&) {} // done by the outbox
  void act(const core::cluster::erase_history&) {}
  void act(const core::cluster::connect& a);
  void act(const core::cluster::disconnect& a);
  void act(const core::cluster::new_view& a);
  void act(const core::cluster::waiting_for& a);
  void act(const core::cluster::left& a);
  void act(const core::cluster::shut_out& a);
  void act(const core::cluster::dissolved& a);
  void act(const core::cluster::rejected& a);
  void act(const core::cluster::use_keys& a);
  void act(const core::cluster::need_tick_at& a);
  void act(const core::cluster::log& a);

  membership_handler& node_;
  shell_host& host_;
  step_observer* observer_;
  core::cluster::membership core_;
  core::cluster::outbox outbox_;
  core::cluster::actions ready_; ///< to be carried out
  bool paused_ = false;          ///< a write has failed
};

} // namespace shoal::runtime
