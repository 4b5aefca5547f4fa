// actors/checkpointer.cpp -- all units in, files out.
#include "actors/checkpointer.hpp"

#include "actors/link_names.hpp"
#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>
#include <map>

namespace shoal::actors {
namespace {

using units_map = std::map<model::unit_index, buffer>;

/// An attempt at writing has ended.
struct attempt_ended {
  std::shared_ptr<units_map> units;
  checkpoint_written result;
};
/// Time for another one.
struct try_again {
  std::shared_ptr<units_map> units;
};

/// Until the first other attempt at the last checkpoint; then twice as long
/// each time, up to retry_after_max.
constexpr std::chrono::seconds retry_after{2};
constexpr std::chrono::seconds retry_after_max{60};

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::attempt_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::try_again)

namespace shoal::actors {
namespace {

struct checkpointer_state {
  std::uint64_t step = 0;
  bool last = false;
  std::string told; ///< of a failure, already
  std::chrono::seconds wait = retry_after;
  units_map units;
};

void expect_all(caf::stateful_actor<checkpointer_state>* self,
                const checkpointer_config& config) {
  job_world& world = *config.world;
  for (model::unit_index u = 0; u < world.layout->unit_count(); ++u) {
    buffer into =
      world.buffers.get(3 * world.layout->unit_size(u) * sizeof(float));
    world.node->links().expect(
      holder_of(config.plan->where, 0, u),
      make_tag(config.plan->digest, link_kind::snapshot, 0, u,
               self->state.step),
      into.shared(),
      [to = caf::actor_cast<caf::actor>(self), step = self->state.step, u,
       into](std::error_code error) {
        caf::anon_send(to, arrived{link_kind::snapshot, step, u, into, error});
      });
  }
}

void write(caf::stateful_actor<checkpointer_state>* self,
           const checkpointer_config& config,
           const std::shared_ptr<units_map>& units) {
  auto ended = std::make_shared<attempt_ended>();
  ended->units = units;
  ended->result.digest = config.plan->digest;
  ended->result.step = self->state.step;
  world_ptr world = config.world;
  world->node->disk().submit(
    [world, ended](kernels::backend&) {
      checkpoint_written& result = ended->result;
      std::vector<unit_snapshot> snapshots;
      for (const auto& [unit, state] : *ended->units)
        snapshots.push_back({unit, state.as<const float>()});
      const auto scratch = world->node->data_dir() / "jobs"
                           / ("writing-" + std::to_string(world->job) + "-"
                              + std::to_string(result.step));
      auto put = publish_checkpoint(result.step, *world->layout, snapshots,
                                    scratch, world->node->blobs());
      result.good = bool(put);
      if (put)
        result.what = *put;
      else
        result.why = put.message();
    },
    [to = caf::actor_cast<caf::actor>(self), ended] {
      caf::anon_send(to, std::move(*ended));
    });
}

/// What is not the last is given up: another one follows.
void on_ended(caf::stateful_actor<checkpointer_state>* self,
              const checkpointer_config& config, attempt_ended& m) {
  if (m.result.step != self->state.step)
    return;
  m.result.trying = !m.result.good && self->state.last;
  if (m.result.trying)
    self->delayed_send(
      self,
      std::exchange(self->state.wait,
                    std::min(2 * self->state.wait, retry_after_max)),
      try_again{m.units});
  if (m.result.trying && self->state.told == m.result.why)
    return;
  self->state.told = m.result.why;
  self->send(config.owner, std::move(m.result));
}

caf::behavior checkpointer(caf::stateful_actor<checkpointer_state>* self,
                           const checkpointer_config& config) {
  return {
    [=](const begin_checkpoint& m) {
      self->state = {m.step, m.last, {}, retry_after, {}};
      expect_all(self, config);
    },
    [=](const arrived& m) {
      if (m.error || m.run != self->state.step)
        return; // a peer is lost: another sub-plan follows
      self->state.units[m.microbatch] = m.what;
      if (self->state.units.size() == config.world->layout->unit_count())
        write(self, config,
              std::make_shared<units_map>(
                std::exchange(self->state.units, units_map{})));
    },
    [=](attempt_ended& m) { on_ended(self, config, m); },
    [=](const try_again& m) { write(self, config, m.units); },
  };
}

} // namespace

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config) {
  return system.spawn(checkpointer, std::move(config));
}

} // namespace shoal::actors
