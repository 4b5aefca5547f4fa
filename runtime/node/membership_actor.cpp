// runtime/node/membership_actor.cpp -- the product's shell_host.
#include "runtime/node/membership_actor.hpp"

#include "runtime/work/are_you_there.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <deque>
#include <functional>

namespace shoal::runtime {

/// The actor's own timer.
struct cluster_timer {
  core::nanoseconds at = 0;
};

/// Time of another attempt at a disk that has failed.
struct record_timer {};

/// Result of storing a record, or of another attempt at those before.
struct record_written {
  bool again = false;      ///< another attempt at earlier records
  bool erased = false;     ///< the records are no longer needed
  std::error_code nowhere; ///< error if it is not stored at all
  std::error_code disk;    ///< error if it is not on the disk
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

class thread_host final : public shell_host {
public:
  thread_host(caf::event_based_actor* self, membership_handler& node)
    : self_(self), node_(node), origin_(steady_clock::now()) {}

  void start(cluster_start& s) {
    votes_ = std::move(s.votes);
    disk_ = s.disk;
    shell_.emplace(*s.config, s.stored, node_, *this);
    if (votes_->disk_error()) // the disk has failed for the former process
      try_again();
    shell_->step(cl::start{std::move(s.stored)}, now());
    for (cl::event& e : early_)
      shell_->step(e, now());
    early_.clear();
  }

  void take(cl::event& e) {
    if (!shell_)
      early_.push_back(std::move(e));
    else
      shell_->step(e, now());
  }

  void fired(core::nanoseconds at) {
    if (at != timer_)
      return; // overtaken by an earlier one
    timer_ = 0;
    if (wish_ <= now())
      shell_->step(cl::tick{}, now());
    else
      arm();
  }

  void ended(const record_written& w) {
    report(w);
    if ((w.disk || w.nowhere) && !std::exchange(retries_, true))
      self_->delayed_send(self_, record_retry, record_timer{});
    if (!w.again)
      shell_->written(!w.nowhere);
  }

  void try_again() {
    retries_ = false;
    submit([](vote_file& votes) {
      votes.retry();
      record_written w;
      w.again = true;
      return w;
    });
    shell_->retry();
  }

  bool store(const cl::outbox::write& what) override {
    submit([what](vote_file& votes) {
      record_written w;
      if (const auto* r = std::get_if<cl::record>(&what))
        w.nowhere = votes.write(*r);
      else // a leaving node may also keep its history: it is true
        static_cast<void>(votes.erase());
      w.erased = !std::holds_alternative<cl::record>(what);
      return w;
    });
    return false;
  }

  void wake_at(core::nanoseconds when) override {
    wish_ = when;
    arm();
  }

private:
  core::nanoseconds now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now() - origin_)
      .count();
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

  /// Reports a state when it begins and when it ends.
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
    if (!w.disk && std::exchange(disk_failed_, false) && !w.erased)
      node_.say("[node] views and votes are written to " + folder + " again");
    if (w.took >= record_slow && !std::exchange(slow_, true))
      node_.say("[node] the disk of " + folder + " is slow: a record took "
                + std::to_string(w.took / std::chrono::milliseconds(1))
                + " ms");
    else if (w.took < record_slow / 2)
      slow_ = false;
  }

  /// At most one timer is pending, apart from obsolete ones.
  void arm() {
    core::nanoseconds t = now();
    if (timer_ != 0 && timer_ <= wish_)
      return; // when the pending one fires, it is set again for the rest
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
  std::optional<cluster_shell> shell_;
  std::deque<cl::event> early_; ///< came before cluster_start
  core::nanoseconds wish_ = 0;  ///< time of the next tick that the core wants
  core::nanoseconds timer_ = 0; ///< of the pending timer; 0: none
  bool retries_ = false;        ///< record_timer is pending
  bool disk_failed_ = false;    ///< as reported
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
  auto state = std::make_shared<thread_host>(self, *node);
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
    [](const are_you_there&) {},
    [self](const cluster_stop&) { self->quit(); },
  };
}

} // namespace

caf::actor spawn_membership(caf::actor_system& system, membership_handler& node,
                            std::shared_ptr<std::atomic<std::size_t>> pending) {
  // Passed as arguments: for a function without arguments CAF 0.17 uses a null
  // tuple, which sanitizers report.
  return system.spawn<caf::detached>(run_membership, &node, std::move(pending));
}

} // namespace shoal::runtime
