// actors/checkpointer.cpp -- all units in, files out.
#include "actors/checkpointer.hpp"

#include "actors/link_names.hpp"
#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"

#include <caf/all.hpp>

#include <map>

namespace shoal::actors {
namespace {

struct checkpointer_state {
  std::uint64_t step = 0;
  std::map<model::unit_index, buffer> units;
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
           const checkpointer_config& config) {
  auto units = std::make_shared<std::map<model::unit_index, buffer>>(
    std::move(self->state.units));
  self->state.units.clear();
  auto result = std::make_shared<checkpoint_written>();
  result->digest = config.plan->digest;
  result->step = self->state.step;
  world_ptr world = config.world;
  world->node->disk().submit(
    [world, units, result](kernels::backend&) {
      std::vector<unit_snapshot> snapshots;
      for (const auto& [unit, state] : *units)
        snapshots.push_back({unit, state.as<const float>()});
      const auto scratch = world->node->data_dir() / "jobs"
                           / ("writing-" + std::to_string(world->job) + "-"
                              + std::to_string(result->step));
      auto put = publish_checkpoint(result->step, *world->layout, snapshots,
                                    scratch, world->node->blobs());
      result->good = bool(put);
      if (put)
        result->what = *put;
      else
        world->node->say("[checkpoint] step " + std::to_string(result->step)
                         + " not saved: " + put.message()
                         + "; the run goes on");
    },
    [owner = config.owner, result] { caf::anon_send(owner, *result); });
}

caf::behavior checkpointer(caf::stateful_actor<checkpointer_state>* self,
                           const checkpointer_config& config) {
  return {
    [=](const begin_checkpoint& m) {
      self->state = {m.step, {}};
      expect_all(self, config);
    },
    [=](const arrived& m) {
      if (m.error || m.run != self->state.step)
        return; // a peer is lost: another sub-plan follows
      self->state.units[m.microbatch] = m.what;
      if (self->state.units.size() == config.world->layout->unit_count())
        write(self, config);
    },
  };
}

} // namespace

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config) {
  return system.spawn(checkpointer, std::move(config));
}

} // namespace shoal::actors
