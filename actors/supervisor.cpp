// actors/supervisor.cpp -- an actor for each island of each job of the view.
#include "actors/supervisor.hpp"

#include "actors/job/job_cleaner.hpp"
#include "actors/job_kinds.hpp"
#include "actors/placed_roles.hpp"
#include "actors/serving/offered_room.hpp"
#include "actors/training/training_state.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/work/are_you_there.hpp"
#include "runtime/work/device_queue.hpp"
#include "runtime/work/leaving_alone.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <variant>
#include <vector>

namespace shoal::actors {
namespace {

/// Limit of the messages, in total, of jobs that the view does not list yet.
constexpr std::size_t early_messages_max = 1024;

/// Blobs that were too young to be removed are old enough now.
struct clean_again {};
/// After the end of a job, what its actor was fetching then has come by now.
constexpr std::chrono::seconds clean_soon{2};

/// Period in which, while a model is served that was uploaded, the room on the disk for
/// its files is measured; and after its end, files that came late are removed.
struct look_at_disk {};
constexpr std::chrono::seconds look_at_disk_every{15};
constexpr int late_passes = 8;

/// Checks whether all job actors still run.
struct look_at_jobs {};
constexpr std::chrono::seconds look_every{10};
/// A job actor that has not run for this long, in silent_looks_max checks in a
/// row, will never run again.
constexpr std::chrono::seconds silent_max{30};
constexpr int silent_looks_max = 3;

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::clean_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::look_at_jobs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::look_at_disk)

namespace shoal::actors {
namespace {

class supervisor_actor : public caf::event_based_actor {
public:
  supervisor_actor(caf::actor_config& cfg, runtime::context& node)
    : caf::event_based_actor(cfg), node_(node), placed_(node),
      cleaner_(std::make_shared<job_cleaner>(node)) {}

  const char* name() const override { return "supervisor"; }

  caf::behavior make_behavior() override {
    set_exit_handler([this](const caf::exit_msg& m) {
      for (const auto& [id, job] : jobs_) // no other actor ends them
        send_exit(job.actor, m.reason);
      // Those that have left the view may wait for queues that are closed now.
      for (const caf::actor_addr& job : leaving_)
        if (const auto actor = caf::actor_cast<caf::actor>(job))
          send_exit(actor, m.reason);
      placed_.end_all();
      jobs_.clear(); // a job holds its supervisor: neither would be freed
      quit(m.reason);
    });
    return {
      [this](const runtime::view_changed& m) { on_view(m); },
      [this](const runtime::job_message_in& m) { on_message(m); },
      [this](const runtime::serve_message_in& m) { on_message(m); },
      [this](const runtime::drain_job& m) { tell_islands(m); },
      [this](const runtime::stop_waiting_job& m) { tell_islands(m); },
      [this](const runtime::checkpoint_offered& m) { tell_islands(m); },
      [this](const runtime::blobs_left_behind& m) { on_left_behind(m); },
      [this](const job_holds& m) {
        if (auto at = jobs_.find(m.id); at != jobs_.end())
          at->second.holds = m;
        release_if_idle();
      },
      [this](const runtime::node_stopping& m) { on_stopping(m.drain); },
      [this](const runtime::leaving_alone& m) {
        if (drain_)
          tell_all(m);
      },
      [this](const clean_again&) {
        if (view_)
          clean();
      },
      [this](const look_at_jobs&) { look(); },
      [this](const look_at_disk&) { look_at_the_disk(); },
      [](const runtime::are_you_there&) {},
    };
  }

private:
  struct running_job {
    caf::actor actor;
    job_holds holds;
    bool drained = false;
    std::shared_ptr<std::atomic<core::nanoseconds>> alive;
    int silent_looks = 0;
  };

  /// Passes a message about a job to all its islands.
  template <class Message>
  void tell_islands(const Message& m) {
    for (auto at = jobs_.lower_bound({m.job, 0});
         at != jobs_.end() && at->first.job == m.job; ++at)
      send(at->second.actor, m);
  }

  template <class Message>
  void tell_all(const Message& m) {
    for (const auto& [id, job] : jobs_)
      send(job.actor, m);
  }

  /// A job actor that does not run stalls its job on all peers, and another
  /// thread cannot end it.
  void look() {
    looking_ = !jobs_.empty();
    if (looking_)
      delayed_send(this, look_every, look_at_jobs{});
    const core::nanoseconds now = steady_now();
    for (auto& [id, job] : jobs_) {
      if (now - *job.alive < std::chrono::nanoseconds(silent_max).count())
        job.silent_looks = 0;
      else if (++job.silent_looks == silent_looks_max)
        node_.hung("the actor of job " + core::job_text(id.job)
                   + " has not run for half a minute");
    }
  }

  void on_view(const runtime::view_changed& m) {
    view_ = m.view;
    for (const core::job_entry& entry : m.view->jobs)
      if (entry.state == core::job_state::running)
        keep_running(entry, m);
      else
        log_end(entry);
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      const core::job_entry* entry = core::find_job(*m.view, at->first.job);
      if (entry && entry->state == core::job_state::running
          && at->first.index < core::islands_of(*entry)) {
        ++at;
        continue;
      }
      send(at->second.actor, job_view{m.view, std::nullopt});
      std::erase_if(leaving_, [](const caf::actor_addr& job) {
        return !caf::actor_cast<caf::actor>(job);
      });
      leaving_.push_back(at->second.actor.address());
      at = jobs_.erase(at);
    }
    placed_.on_view(m);
    clean_if_ended();
    if (serves_uploads())
      look_at_the_disk_later();
    deliver_early();
    if (stopping_)
      drain_if_last();
    release_if_idle();
  }

  void
  keep_running(const core::job_entry& entry, const runtime::view_changed& m) {
    const auto place =
      std::ranges::find(m.plan->jobs, entry.id, &core::assignment::job);
    for (std::uint32_t i = 0; i < core::islands_of(entry); ++i) {
      auto at = jobs_.find({entry.id, i});
      if (at == jobs_.end())
        at = start(entry, i);
      if (at == jobs_.end())
        return;
      if (place != m.plan->jobs.end())
        send(at->second.actor, job_view{m.view, *place});
    }
  }

  using job_map = std::map<core::island_id, running_job>;

  /// @returns the end of jobs_ if the job cannot run
  job_map::iterator start(const core::job_entry& entry, std::uint32_t island) {
    auto alive = std::make_shared<std::atomic<core::nanoseconds>>(steady_now());
    std::string why;
    auto actor = starter_of(entry.kind)(system(),
                                        {&node_, entry, island,
                                         caf::actor_cast<caf::actor>(this),
                                         alive, needed_},
                                        why);
    const core::island_id id{entry.id, island};
    if (!actor) {
      node_.say("[job] refused: " + why);
      node_.propose_end(id, core::job_state::failed, 0, 0, why);
      return jobs_.end();
    }
    const auto at =
      jobs_.emplace(id, running_job{*actor, {}, false, alive, 0}).first;
    if (!looking_)
      look();
    if (island == 0)
      node_.disk().submit(
        [node = &node_, entry](kernels::backend&) {
          remember_blobs(*node, entry);
        },
        {});
    return at;
  }

  /// Jobs have ended since the last pass, or this is the first one.
  void clean_if_ended() {
    std::set<core::job_id> ended;
    for (const core::job_entry& entry : view_->jobs)
      if (entry.state != core::job_state::running)
        ended.insert(entry.id);
    if (looked_ && ended == ended_)
      return;
    const bool models_ended =
      std::ranges::any_of(view_->jobs, [&](const core::job_entry& e) {
        return was_uploaded(e) && ended.contains(e.id)
               && !ended_.contains(e.id);
      });
    ended_ = std::move(ended);
    clean();
    delayed_send(this, 2 * blob_age_min, clean_again{});
    if (!models_ended)
      return;
    late_passes_ = late_passes;
    delayed_send(this, clean_soon, clean_again{});
    look_at_the_disk_later();
  }

  void on_left_behind(const runtime::blobs_left_behind& m) {
    node_.disk().submit([cleaner = cleaner_, blobs = m.blobs](
                          kernels::backend&) { cleaner->left_behind(blobs); },
                        {});
    if (view_)
      clean();
    delayed_send(this, 2 * blob_age_min, clean_again{}); // of what was claimed
  }

  void look_at_the_disk_later() {
    if (!std::exchange(looks_at_disk_, true))
      delayed_send(this, look_at_disk_every, look_at_disk{});
  }

  [[nodiscard]] bool serves_uploads() const {
    return std::ranges::any_of(view_->jobs, [](const core::job_entry& e) {
      return e.state == core::job_state::running && was_uploaded(e);
    });
  }

  void clean() {
    looked_ = true;
    node_.disk().submit(
      [cleaner = cleaner_, view = view_, node = &node_](kernels::backend&) {
        cleaner->clean_up(*view);
        offer_room(*node, *view, false);
      },
      {});
  }

  void look_at_the_disk() {
    looks_at_disk_ = false;
    const bool late = late_passes_ > 0;
    if (late || serves_uploads())
      look_at_the_disk_later();
    if (late) {
      --late_passes_;
      return clean();
    }
    node_.disk().submit(
      [view = view_, node = &node_](kernels::backend&) {
        offer_room(*node, *view, false);
      },
      {});
  }

  void log_end(const core::job_entry& entry) {
    runtime::job_event e;
    e.kind = runtime::job_event_kind::done;
    e.step = entry.done_step;
    e.epoch = view_->number;
    e.text = core::to_text(entry.state);
    e.cause = entry.cause;
    e.unix_ms = unix_ms();
    node_.log().add(entry.id, e);
  }

  /// A message of peers about a job: of its protocol, or of a served model.
  template <class Message>
  void on_message(const Message& m) {
    const core::island_id island = core::header(*m.message).id();
    if (!view_ || core::find_member(*view_, m.from) == nullptr) {
      keep_for_later(m); // a view that admits the sender may be in transit
      return;
    }
    if (auto at = jobs_.find(island); at != jobs_.end()) {
      send(at->second.actor, m);
      return;
    }
    if (view_ && core::find_job(*view_, island.job))
      return; // the job has ended
    keep_for_later(m);
  }

  using early_message =
    std::variant<runtime::job_message_in, runtime::serve_message_in>;

  void keep_for_later(early_message m) {
    early_.push_back(std::move(m));
    if (early_.size() > early_messages_max)
      early_.pop_front();
  }

  void deliver_early() {
    std::deque<early_message> waiting;
    waiting.swap(early_);
    for (const early_message& any : waiting)
      std::visit([this](const auto& m) { on_message(m); }, any);
  }

  void on_stopping(bool drain) {
    stopping_ = true;
    drain_ = drain;
    drain_if_last();
    release_if_idle();
  }

  /// No other node could go on with the jobs: they end here, in order.
  void drain_if_last() {
    if (!view_)
      return;
    for (const core::member& m : view_->members)
      if (m.id.peer != node_.self() && !m.witness
          && m.state == core::member_state::active)
        return;
    last_ = true;
    for (auto& [id, job] : jobs_) {
      if (job.drained || !drain_)
        continue;
      job.drained = true;
      send(job.actor, runtime::drain_job{id.job});
    }
  }

  void release_if_idle() {
    if (!stopping_ || released_)
      return;
    if (last_ && !jobs_.empty() && drain_)
      return; // until the view shows that they have ended
    if (!last_) {
      const core::member* me =
        view_ ? core::find_member(*view_, node_.self()) : nullptr;
      if (me && me->state != core::member_state::leaving)
        return; // not agreed yet
      for (const auto& [id, job] : jobs_)
        if (job.holds.units > 0)
          return;
    }
    released_ = true;
    node_.released();
  }

  runtime::context& node_;
  placed_roles placed_;
  std::shared_ptr<const core::view> view_;
  job_map jobs_;
  std::vector<caf::actor_addr> leaving_; ///< jobs that end by themselves
  std::deque<early_message> early_;
  std::set<core::job_id> ended_; ///< as of the last pass over the disk
  bool looked_ = false;
  bool looks_at_disk_ = false;
  int late_passes_ = 0;  ///< over the disk, that are still to be made
  bool looking_ = false; ///< running jobs are being checked
  std::shared_ptr<job_cleaner> cleaner_; ///< used only by disk work
  std::shared_ptr<needed_checkpoints> needed_ =
    std::make_shared<needed_checkpoints>();
  bool stopping_ = false;
  bool drain_ = true;
  bool last_ = false;
  bool released_ = false;
};

} // namespace

caf::actor spawn_supervisor(caf::actor_system& system, runtime::context& node) {
  return system.spawn<supervisor_actor>(node);
}

void add_builtin(runtime::role_table& roles) {
  roles["supervisor"] = [](caf::actor_system& system, runtime::context& node) {
    return spawn_supervisor(system, node);
  };
}

} // namespace shoal::actors
