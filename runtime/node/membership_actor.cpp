// runtime/node/membership_actor.cpp -- events in, actions out.
#include "runtime/node/membership_actor.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <deque>

namespace shoal::runtime {

/// The actor's own timer.
struct cluster_timer {
  core::nanoseconds at = 0;
};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_timer)

namespace shoal::runtime {

namespace cl = core::cluster;
using std::chrono::steady_clock;

namespace {

class shell {
public:
  shell(caf::event_based_actor* self, membership_hooks hooks)
    : self_(self), hooks_(std::move(hooks)), origin_(steady_clock::now()),
      votes_({}) {}

  void start(cluster_start& s) {
    votes_ = vote_file(s.folder);
    core_.emplace(*s.config);
    step(cl::start{std::move(s.stored)});
    for (cl::event& e : early_)
      step(e);
    early_.clear();
  }

  void take(cl::event& e) {
    if (!core_)
      early_.push_back(std::move(e));
    else
      step(e);
  }

  void fired(core::nanoseconds at) {
    if (at != timer_)
      return; // overtaken by an earlier one
    timer_ = 0;
    if (wish_ <= now())
      step(cl::tick{});
    else
      arm();
  }

private:
  core::nanoseconds now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now() - origin_)
      .count();
  }

  void step(const cl::event& e) {
    if (failed_)
      return;
    actions_.clear();
    core_->step(e, now(), actions_);
    for (const cl::action& a : actions_) {
      std::visit([this](const auto& what) { act(what); }, a);
      if (failed_)
        return;
    }
    hooks_.stepped(core_->phase(), core_->reachable());
  }

  void act(const cl::send& a) { hooks_.send(a.to, a.what); }
  void act(const cl::persist& a) { keep(votes_.write(a.what)); }
  void act(const cl::erase_history&) { keep(votes_.erase()); }
  void act(const cl::connect& a) { hooks_.connect(a.address); }
  void act(const cl::new_view& a) { hooks_.new_view(a); }
  void act(const cl::waiting_for& a) { hooks_.waiting(a); }
  void act(const cl::left& a) { hooks_.left(a.clean); }
  void act(const cl::dissolved& a) {
    hooks_.say("[cluster] this shoal joins shoal "
               + core::to_hex(a.into).substr(0, 8));
  }
  void act(const cl::use_keys& a) { hooks_.use_keys(a.keys); }
  void act(const cl::rejected& a) { hooks_.rejected(a); }
  void act(const cl::log& a) { hooks_.say("[cluster] " + a.text); }

  void act(const cl::need_tick_at& a) {
    wish_ = a.when;
    arm();
  }

  /// One timer is under way at most but for those that were overtaken.
  void arm() {
    core::nanoseconds t = now();
    if (timer_ != 0 && timer_ <= wish_)
      return; // when it fires, it is set again for the rest
    timer_ = std::max(wish_, t + shortest_wait);
    self_->delayed_send(self_, std::chrono::nanoseconds(timer_ - t),
                        cluster_timer{timer_});
  }

  void keep(std::error_code error) {
    if (!error)
      return;
    failed_ = true;
    hooks_.failed("cannot write the vote file: " + error.message());
  }

  static constexpr core::nanoseconds shortest_wait = 1'000'000;

  caf::event_based_actor* self_;
  membership_hooks hooks_;
  steady_clock::time_point origin_;
  vote_file votes_;
  std::optional<cl::membership> core_;
  std::deque<cl::event> early_; ///< came before cluster_start
  cl::actions actions_;
  core::nanoseconds wish_ = 0;  ///< when the core wants its next tick
  core::nanoseconds timer_ = 0; ///< of the timer under way; 0: none
  bool failed_ = false;
};

caf::behavior
run_membership(caf::event_based_actor* self, const membership_hooks& hooks,
               const std::shared_ptr<std::atomic<std::size_t>>& pending) {
  auto state = std::make_shared<shell>(self, hooks);
  return {
    [state](cluster_start& s) { state->start(s); },
    [state, pending](cluster_event& e) {
      if (std::holds_alternative<cl::received>(e.what))
        --*pending;
      state->take(e.what);
    },
    [state](const cluster_timer& t) { state->fired(t.at); },
    [self](const cluster_stop&) { self->quit(); },
  };
}

} // namespace

caf::actor spawn_membership(caf::actor_system& system, membership_hooks hooks,
                            std::shared_ptr<std::atomic<std::size_t>> pending) {
  // Handed over as arguments: for a function without any, CAF 0.17 refers to
  // a null tuple, which sanitizers report.
  return system.spawn<caf::detached>(run_membership, std::move(hooks),
                                     std::move(pending));
}

} // namespace shoal::runtime
