// runtime/node/membership_actor.cpp -- events in, actions out.
#include "runtime/node/membership_actor.hpp"

#include "runtime/core/cluster/outbox.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <deque>
#include <functional>

namespace shoal::runtime {

/// The actor's own timer.
struct cluster_timer {
  core::nanoseconds at = 0;
};

/// Time to try a disk again that has failed.
struct record_timer {};

/// What has become of a record, or of another attempt at those before.
struct record_written {
  bool again = false;      ///< the latter
  std::error_code nowhere; ///< it is not stored
  std::error_code disk;    ///< it is not on the disk
  std::filesystem::path spare;
  std::chrono::nanoseconds took{};
};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_timer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::record_timer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::record_written)

namespace shoal::runtime {

namespace cl = core::cluster;
using std::chrono::steady_clock;

namespace {

class shell {
public:
  shell(caf::event_based_actor* self, membership_handler& node)
    : self_(self), node_(node), origin_(steady_clock::now()) {}

  void start(cluster_start& s) {
    votes_ = std::move(s.votes);
    disk_ = s.disk;
    core_.emplace(*s.config);
    outbox_.emplace(s.stored);
    if (votes_->disk_error()) // the process before had a disk that failed
      try_again();
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

  void ended(const record_written& w) {
    report(w);
    if (!w.again) {
      outbox_->written(!w.nowhere, ready_);
      carry_out();
    }
    paused_ = bool(w.nowhere);
    if ((w.disk || w.nowhere) && !std::exchange(retries_, true))
      self_->delayed_send(self_, record_retry, record_timer{});
    write();
  }

  void try_again() {
    retries_ = paused_ = false;
    submit([](vote_file& votes) {
      votes.retry();
      record_written w;
      w.again = true;
      return w;
    });
    write();
  }

private:
  core::nanoseconds now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now() - origin_)
      .count();
  }

  void step(const cl::event& e) {
    actions_.clear();
    core_->step(e, now(), actions_);
    for (cl::action& a : actions_)
      outbox_->take(std::move(a), ready_);
    carry_out();
    write();
    node_.stepped(core_->phase(), core_->reachable());
  }

  void carry_out() {
    for (const cl::action& a : ready_)
      std::visit([this](const auto& what) { act(what); }, a);
    ready_.clear();
  }

  /// Hands the next record to the disk.
  void write() {
    if (paused_)
      return;
    auto next = outbox_->next();
    if (!next)
      return;
    submit([what = std::move(*next)](vote_file& votes) {
      record_written w;
      if (const auto* r = std::get_if<cl::record>(&what))
        w.nowhere = votes.write(*r);
      else // who leaves may also keep its history: it is true
        static_cast<void>(votes.erase());
      return w;
    });
  }

  void submit(std::function<record_written(vote_file&)> work) {
    auto result = std::make_shared<record_written>();
    disk_->submit(
      [result, work = std::move(work), votes = votes_](kernels::backend&) {
        const auto begin = steady_clock::now();
        *result = work(*votes);
        result->took = steady_clock::now() - begin;
        result->disk = votes->disk_error();
        result->spare = votes->spare_in_use();
      },
      [result, to = caf::actor_cast<caf::actor>(self_)] {
        caf::anon_send(to, std::move(*result));
      });
  }

  /// A state is said when it begins and when it ends.
  void report(const record_written& w) {
    const std::string folder = votes_->folder().string();
    if (w.disk && !std::exchange(disk_failed_, true))
      node_.say("[node] cannot write views and votes to " + folder + ": "
                + w.disk.message()
                + (w.nowhere ? "" : "; keeping them in " + w.spare.string())
                + " until it can be written again");
    if (w.nowhere && !std::exchange(withholds_, true))
      node_.say("[node] views and votes can be stored nowhere ("
                + w.nowhere.message()
                + "): this peer votes for nothing until they can");
    if (!w.again && !w.nowhere)
      withholds_ = false;
    if (!w.disk && std::exchange(disk_failed_, false))
      node_.say("[node] views and votes are written to " + folder + " again");
    if (w.took >= record_slow && !std::exchange(slow_, true))
      node_.say("[node] the disk of " + folder + " is slow: a record took "
                + std::to_string(w.took / std::chrono::milliseconds(1))
                + " ms");
    else if (w.took < record_slow / 2)
      slow_ = false;
  }

  void act(const cl::send& a) { node_.send(a.to, a.what); }
  void act(const cl::persist&) {} // the outbox has it
  void act(const cl::erase_history&) {}
  void act(const cl::connect& a) { node_.connect(a.address); }
  void act(const cl::disconnect& a) { node_.disconnect(a.peer); }
  void act(const cl::new_view& a) { node_.adopt(a); }
  void act(const cl::waiting_for& a) { node_.waiting(a); }
  void act(const cl::left& a) { node_.left(a.clean); }
  void act(const cl::shut_out&) { node_.shut_out(); }
  void act(const cl::dissolved& a) {
    node_.say("[cluster] this shoal joins shoal "
              + core::to_hex(a.into).substr(0, 8));
  }
  void act(const cl::use_keys& a) { node_.use_keys(a.keys); }
  void act(const cl::rejected& a) { node_.rejected(a); }
  void act(const cl::log& a) { node_.say("[cluster] " + a.text); }

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

  static constexpr core::nanoseconds shortest_wait = 1'000'000;

  caf::event_based_actor* self_;
  membership_handler& node_;
  steady_clock::time_point origin_;
  std::shared_ptr<vote_file> votes_;
  device_queue* disk_ = nullptr;
  std::optional<cl::membership> core_;
  std::optional<cl::outbox> outbox_;
  std::deque<cl::event> early_; ///< came before cluster_start
  cl::actions actions_;
  cl::actions ready_;           ///< to be carried out
  core::nanoseconds wish_ = 0;  ///< when the core wants its next tick
  core::nanoseconds timer_ = 0; ///< of the timer under way; 0: none
  bool paused_ = false;         ///< the next record waits for record_timer
  bool retries_ = false;        ///< record_timer is under way
  bool disk_failed_ = false;    ///< as was said
  bool withholds_ = false;
  bool slow_ = false;
};

struct membership_name {
  const char* name = "membership";
};

caf::behavior
run_membership(caf::stateful_actor<membership_name>* self,
               membership_handler* node,
               const std::shared_ptr<std::atomic<std::size_t>>& pending) {
  auto state = std::make_shared<shell>(self, *node);
  return {
    [state](cluster_start& s) { state->start(s); },
    [state, pending](cluster_event& e) {
      if (std::holds_alternative<cl::received>(e.what))
        --*pending;
      state->take(e.what);
    },
    [state](const cluster_timer& t) { state->fired(t.at); },
    [state](const record_written& w) { state->ended(w); },
    [state](const record_timer&) { state->try_again(); },
    [self](const cluster_stop&) { self->quit(); },
  };
}

} // namespace

caf::actor spawn_membership(caf::actor_system& system, membership_handler& node,
                            std::shared_ptr<std::atomic<std::size_t>> pending) {
  // Handed over as arguments: for a function without any, CAF 0.17 refers to
  // a null tuple, which sanitizers report.
  return system.spawn<caf::detached>(run_membership, &node, std::move(pending));
}

} // namespace shoal::runtime
