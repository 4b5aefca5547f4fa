// actors/checkpoint/shard_writer.cpp -- writes unit after unit, while the run
// goes on.
#include "actors/checkpoint/shard_writer.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "runtime/context.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/training/shards.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>

namespace shoal::actors {
namespace {

/// An attempt to write one unit has ended.
struct unit_ended {
  std::uint64_t turn = 0;
  core::written_shard shard;
  std::string why; ///< reason of a failure
};
/// A unit of the last checkpoint has been copied.
struct unit_copied {
  std::uint64_t turn = 0;
};
/// Starts another attempt, or reports again.
struct try_again {
  std::uint64_t turn = 0;
};
struct tell_again {
  std::uint64_t number = 0;
};

/// Delay of the first repeated attempt at the last checkpoint; then twice as
/// long each time, up to retry_after_max.
constexpr std::chrono::seconds retry_after{2};
constexpr std::chrono::seconds retry_after_max{60};

/// Delay of a repeated report, as a message may be lost while a link is down.
/// Twice as long each time: the loss may as well concern the publisher's
/// answer.
constexpr std::chrono::seconds tell_after{1};
constexpr std::chrono::seconds tell_after_max{30};

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_copied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::try_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::tell_again)

namespace shoal::actors {
namespace {

struct writer_state {
  std::uint64_t turn = 0; ///< counts writes begun; completions of earlier ones
                          ///< are void
  bool last = false;
  bool telling = false;
  std::uint64_t told = 0; ///< counts reports: only the newest is repeated
  std::size_t next = 0;   ///< next unit of the snapshot
  std::shared_ptr<shard_snapshot> what;
  buffer room; ///< for the copies of the last checkpoint, one unit at a time
  core::peer_id publisher{};
  core::shards_written report;
  std::chrono::seconds wait = retry_after;
  std::chrono::seconds tell_wait = tell_after;
};
using writer_actor = caf::stateful_actor<writer_state>;

void tell(writer_actor* self, const shard_writer_config& config) {
  writer_state& s = self->state;
  s.telling = true;
  core::shards_written m = s.report;
  if (!m.why.empty())
    m.shards.clear();
  config.world->node->send(s.publisher, std::move(m));
  self->delayed_send(self, s.tell_wait, tell_again{++s.told});
  s.tell_wait = std::min(2 * s.tell_wait, tell_after_max);
}

void say_written(const shard_writer_config& config,
                 const core::shards_written& m) {
  std::uint64_t bytes = 0;
  for (const core::written_shard& w : m.shards)
    bytes += w.model_bytes + w.optimizer_bytes;
  config.world->node->say("[checkpoint] step " + std::to_string(m.step)
                          + ": wrote " + std::to_string(m.shards.size())
                          + " of "
                          + std::to_string(config.world->layout->unit_count())
                          + " units, " + core::size_text(bytes));
}

buffer begin_of(const buffer& whole, std::size_t bytes) {
  const runtime::shared_bytes all = whole.shared();
  return {std::shared_ptr<std::byte>(all.keep, all.bytes.data()), bytes};
}

/// Runs on the device, after all work that changes the unit. When the sub-plan
/// is over the unit may get another state: then it is neither copied nor
/// written.
void copy_next(writer_actor* self, const shard_writer_config& config) {
  writer_state& s = self->state;
  if (!s.room) {
    std::size_t largest = 0;
    for (const shard_snapshot::part& p : s.what->units)
      largest = std::max(largest, state_bytes(*p.from));
    s.room = config.world->state_buffers.get(largest);
  }
  shard_snapshot::part& part = s.what->units[s.next];
  part.copy = begin_of(s.room, state_bytes(*part.from));
  config.world->node->device().submit(
    [part, over = config.plan->over, step = s.report.step,
     world = config.world](kernels::backend& device) {
      if (*over)
        return;
      const runtime::timeline_span span(
        world->node->trace(), runtime::timeline::queue::device,
        "copy for a checkpoint", {{"step", step}, {"unit", part.from->unit()}});
      copy_state_out(device, *part.from, part.copy.as<float>());
    },
    [to = caf::actor_cast<caf::actor>(self), m = unit_copied{s.turn}] {
      caf::anon_send(to, m);
    },
    {config.world->job});
}

void write_next(writer_actor* self, const shard_writer_config& config) {
  writer_state& s = self->state;
  if (s.next == s.what->units.size()) {
    if (!s.what->units.empty())
      config.world->disk_refuses = false;
    s.what.reset();
    s.room = {};
    say_written(config, s.report);
    s.report.why.clear();
    s.report.trying = false;
    s.tell_wait = tell_after;
    tell(self, config);
    return;
  }
  const shard_snapshot::part& part = s.what->units[s.next];
  if (!part.copy)
    return copy_next(self, config);
  auto ended = std::make_shared<unit_ended>();
  ended->turn = s.turn;
  // The work item holds the copy: it may outlive this actor.
  config.world->node->disk().submit(
    [world = config.world, part, step = s.report.step,
     ended](kernels::backend&) {
      const model::unit_index unit = part.from->unit();
      const runtime::timeline_span span(
        world->node->trace(), runtime::timeline::queue::disk,
        "write checkpoint", {{"step", step}, {"unit", unit}});
      auto put =
        write_shard(*world->layout, {unit, part.copy.as<const float>()},
                    world->node->blobs(), [&](const core::blob_digest& d) {
                      return note_shard(*world->node, world->id(), {step, d});
                    });
      if (put)
        ended->shard = *put;
      else
        ended->why = put.message();
    },
    [to = caf::actor_cast<caf::actor>(self), ended] {
      caf::anon_send(to, std::move(*ended));
    });
}

/// A checkpoint that is not the last is given up: another one follows.
void on_unit_ended(writer_actor* self, const shard_writer_config& config,
                   const unit_ended& m) {
  writer_state& s = self->state;
  if (m.turn != s.turn || !s.what)
    return;
  if (m.why.empty()) {
    s.report.shards.push_back(m.shard);
    s.what->units[s.next++] = {};
    s.wait = retry_after;
    write_next(self, config);
    return;
  }
  config.world->disk_refuses = true;
  const bool said = s.telling && s.report.why == m.why;
  s.report.why = m.why;
  s.report.trying = s.last;
  if (s.last) // units that are written need not be written again
    self->delayed_send(
      self, std::exchange(s.wait, std::min(2 * s.wait, retry_after_max)),
      try_again{s.turn});
  else
    s.what.reset();
  if (!said)
    tell(self, config);
}

caf::behavior writer(writer_actor* self, const shard_writer_config& config) {
  auto begin = [=](std::uint64_t step, const core::peer_id& publisher) {
    const std::uint64_t turn = self->state.turn + 1;
    const std::uint64_t told = self->state.told + 1;
    self->state = {};
    self->state.turn = turn;
    self->state.told = told;
    self->state.report.header = {config.world->job, config.plan->digest,
                                 config.plan->where.since,
                                 config.world->island};
    self->state.report.step = step;
    self->state.publisher = publisher;
  };
  return {
    [=](write_shards& m) {
      begin(m.step, m.publisher);
      self->state.last = m.last;
      self->state.what = std::move(m.what);
      write_next(self, config);
    },
    [=](const refuse_shards& m) {
      if (self->state.what) { // continues with what it has
        core::shards_written no = self->state.report;
        no.step = m.step;
        no.shards.clear();
        no.why = m.why;
        config.world->node->send(m.publisher, no);
        return;
      }
      begin(m.step, m.publisher);
      self->state.report.why = m.why;
      tell(self, config);
    },
    [=](const checkpoint_over& m) {
      writer_state& s = self->state;
      if (m.step < s.report.step || s.report.header.digest == 0
          || (s.last && s.what))
        return;
      begin(s.report.step, s.publisher); // stops reporting it
    },
    [=](const unit_ended& m) { on_unit_ended(self, config, m); },
    [=](const unit_copied& m) {
      if (m.turn == self->state.turn && self->state.what && !*config.plan->over)
        write_next(self, config);
    },
    [=](const try_again& m) {
      if (m.turn == self->state.turn && self->state.what)
        write_next(self, config);
    },
    [=](const tell_again& m) {
      if (m.number == self->state.told && self->state.telling)
        tell(self, config);
    },
  };
}

} // namespace

std::vector<core::peer_id>
writers_of(const core::island_place& place, const model::unit_layout& layout,
           const std::vector<core::peer_id>& unable) {
  std::vector<std::uint64_t> bytes;
  for (model::unit_index u = 0; u < layout.unit_count(); ++u)
    bytes.push_back(layout.unit_size(u) * 3 * sizeof(float));
  return core::shard_writers(place, bytes, unable);
}

caf::actor
spawn_shard_writer(caf::actor_system& system, shard_writer_config config) {
  return system.spawn(writer, std::move(config));
}

} // namespace shoal::actors
