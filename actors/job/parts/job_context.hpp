// actors/job/parts/job_context.hpp -- the environment of a job actor's parts.
//
// One per job actor; its parts (job_text.hpp, job_evaluation.hpp, ...) refer to
// it and know nothing else of the node. A test fills in by hand what the part
// needs.
//
// Each part runs in its owner's turns: completions on other threads return by
// `post`. Each owns its state, reports to its `events`, and knows no other part
// than those that its constructor takes.
//
// Threads: the owner's.
#pragma once

#include "actors/checkpoint/blob_set.hpp"
#include "actors/training/later.hpp"
#include "actors/training/training_state.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/view.hpp"
#include "runtime/work/device_queue.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::runtime {
class job_log;
class link_hub;
class store;
class timeline;
class training_operations;
} // namespace shoal::runtime

namespace shoal::actors {

/// A fetch that goes on, with another try every second, while `wanted` returns
/// true; `then` runs in the owner's turn. Without `any_plan` it lasts only as
/// long as the sub-plan.
struct lasting_fetch {
  blob_set set;
  std::vector<core::peer_id> holders;
  bool any_plan = false;
  std::function<bool()> wanted; ///< none: always
  std::function<void()> then;
  /// Called after each failed try; returns whether to stop. None: never stops.
  std::function<bool(std::error_code)> failed = {};
  int unreadable = 0; ///< tries with an invalid manifest or index
};

/// What the parts need of the actor that owns them. Called in its turns.
class job_owner {
public:
  virtual ~job_owner() = default;
  /// Runs `run` in a turn of the owner, after a time.
  virtual void
  post_after(std::chrono::nanoseconds wait, std::function<void()> run) = 0;
  virtual void send_to(const core::peer_id& to, core::job_message message) = 0;
  virtual void say(const std::string& line) = 0; ///< in the node's own log
  virtual core::nanoseconds now() const = 0;     ///< on the steady clock
};

struct job_context {
  // What never changes.
  core::job_entry entry;
  core::island_id id{};
  core::peer_id self{}; ///< this peer
  world_ptr world;
  const core::job_core* core = nullptr; ///< what is decided
  runtime::link_hub* links = nullptr;
  runtime::device_queue* device = nullptr;
  runtime::device_queue* reductions = nullptr;
  runtime::device_queue* disk = nullptr;
  runtime::store* blobs = nullptr;
  runtime::job_log* log = nullptr;
  runtime::timeline* trace = nullptr;
  runtime::training_operations* operations = nullptr;
  job_owner* owner = nullptr;
  poster post; ///< to the owner, from any thread

  // The present, which only the owner changes.
  std::shared_ptr<const core::view> view;
  std::optional<core::island_place> place; ///< taken up by the core
  core::job_header header;                 ///< of that place
  sub_plan_ptr plan;                       ///< adopted; null: none
  core::epoch adopted_since = 0; ///< of the newest plan, also after its end
  core::step_time took;          ///< of the newest committed step

  const runtime::run_config& run() const { return world->run; }
  /// Of the adopted sub-plan; 0: none.
  std::uint64_t digest() const { return plan ? plan->digest : 0; }
  bool is_data_source() const {
    return plan && plan->where.data_source.peer == self;
  }
  /// Of the newest view.
  std::vector<core::peer_id> members() const {
    std::vector<core::peer_id> out;
    if (view)
      for (const core::member& m : view->members)
        out.push_back(m.id.peer);
    return out;
  }

  /// Device work, then `then` in the owner's turn.
  void compute(std::function<void(kernels::backend&)> work,
               std::function<void()> then) const {
    device->submit(std::move(work),
                   [post = post, world = world, then = std::move(then)] {
                     ++world->finished;
                     post(then);
                   },
                   {entry.id});
  }
  /// Runs `then` in the owner's turn after all work that was given to the
  /// device and the reductions before.
  void fence(std::function<void()> then) const {
    reductions->submit(
      {},
      [post = post, to = device, then = std::move(then), job = entry.id] {
        to->submit({}, [post, then] { post(then); }, {job});
      },
      {entry.id});
  }
};

} // namespace shoal::actors
