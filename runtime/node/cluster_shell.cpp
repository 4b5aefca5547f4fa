// runtime/node/cluster_shell.cpp -- passes events to the core and carries out
// actions.
#include "runtime/node/cluster_shell.hpp"

#include <utility>

namespace shoal::runtime {

namespace cl = core::cluster;

cluster_shell::cluster_shell(cl::config config, const cl::history& stored,
                             membership_handler& node, shell_host& host,
                             step_observer* observer)
  : node_(node), host_(host), observer_(observer), core_(std::move(config)),
    outbox_(stored) {
}

/// A record goes to the disk before the next action is processed: actions that
/// follow it in the same step need not wait if the disk has finished by then.
void cluster_shell::step(const cl::event& e, core::nanoseconds now) {
  cl::actions out;
  core_.step(e, now, out);
  if (observer_ != nullptr)
    observer_->decided(e, out);
  for (cl::action& a : out) {
    outbox_.take(std::move(a), ready_);
    write();
    carry_out();
  }
  node_.stepped(core_.phase(), core_.reachable());
}

void cluster_shell::written(bool stored) {
  outbox_.written(stored, ready_);
  paused_ = !stored;
  write();
  carry_out();
}

void cluster_shell::retry() {
  paused_ = false;
  write();
  carry_out();
}

/// Hands the next record to the disk.
void cluster_shell::write() {
  while (!paused_) {
    const auto next = outbox_.next();
    if (!next || !host_.store(*next))
      return;
    outbox_.written(true, ready_);
  }
}

void cluster_shell::carry_out() {
  for (const cl::action& a : std::exchange(ready_, {}))
    std::visit([this](const auto& what) { act(what); }, a);
}

void cluster_shell::act(const cl::send& a) {
  node_.send(a.to, a.what);
}

void cluster_shell::act(const cl::connect& a) {
  node_.connect(a.address);
}

void cluster_shell::act(const cl::disconnect& a) {
  node_.disconnect(a.peer);
}

void cluster_shell::act(const cl::new_view& a) {
  node_.adopt(a);
}

void cluster_shell::act(const cl::waiting_for& a) {
  node_.waiting(a);
}

void cluster_shell::act(const cl::left& a) {
  node_.left(a.clean);
}

void cluster_shell::act(const cl::shut_out&) {
  node_.shut_out();
}

void cluster_shell::act(const cl::dissolved& a) {
  node_.say("[cluster] this shoal joins shoal "
            + core::to_hex(a.into).substr(0, 8));
}

void cluster_shell::act(const cl::rejected& a) {
  node_.rejected(a);
}

void cluster_shell::act(const cl::use_keys& a) {
  node_.use_keys(a.keys);
}

void cluster_shell::act(const cl::need_tick_at& a) {
  host_.wake_at(a.when);
}

void cluster_shell::act(const cl::log& a) {
  node_.say("[cluster] " + a.text);
}

} // namespace shoal::runtime
