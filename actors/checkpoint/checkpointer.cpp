// actors/checkpoint/checkpointer.cpp -- waits for all shards, fetches them,
// publishes.
#include "actors/checkpoint/checkpointer.hpp"

#include "actors/checkpoint/blob_set.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "actors/checkpoint/shard_writer.hpp" // writers_of
#include "runtime/core/training/shards.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace shoal::actors {
namespace {

/// The fetch of the shards has ended.
struct collected {
  std::uint64_t step = 0;
  std::error_code error;
};
/// An attempt to publish has ended.
struct attempt_ended {
  std::uint64_t step = 0;
  published what;
  std::string why; ///< reason of a failure
};
/// Starts another attempt.
struct collect_again {
  std::uint64_t step = 0;
};

/// As in shard_writer.cpp.
constexpr std::chrono::seconds gather_again_after{2};
constexpr std::chrono::seconds gather_again_after_max{60};

/// Limit of the peers whose reports of a step are kept until it is begun here;
/// they repeat them.
constexpr std::size_t early_max = 1024;

/// Failed steps that are remembered, since writers still report them.
constexpr std::size_t failed_max = 16;

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::collected)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::attempt_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::collect_again)

namespace shoal::actors {
namespace {

/// One checkpoint in progress.
struct gathering {
  std::vector<core::peer_id> writers; ///< known when it has begun
  core::part_set parts;               ///< to gather
  core::shard_tally tally{{}};
  std::map<core::peer_id, core::shards_written> early; ///< reports before that
  bool begun = false;                                  ///< requested here, too
  bool last = false;
  bool collecting = false;
  std::string said; ///< failure text sent to the owner
  std::chrono::seconds wait = gather_again_after;
};

struct checkpointer_state {
  std::map<std::uint64_t, gathering> under_way; ///< by step
  std::uint64_t ended = 0;                      ///< newest published step + 1
  std::set<std::uint64_t> failed; ///< failed steps, later and earlier than the
                                  ///< newest
};
using checkpointer_actor = caf::stateful_actor<checkpointer_state>;

gathering* find(checkpointer_actor* self, std::uint64_t step) {
  const auto at = self->state.under_way.find(step);
  return at == self->state.under_way.end() ? nullptr : &at->second;
}

void say(checkpointer_actor* self, const checkpointer_config& config,
         checkpoint_written m) {
  m.digest = config.plan->digest;
  self->send(config.owner, std::move(m));
}

/// The checkpoint fails, or is tried again: tells the owner once.
void fail(checkpointer_actor* self, const checkpointer_config& config,
          std::uint64_t step, const std::string& why,
          const core::peer_id& at = {}) {
  gathering& g = *find(self, step);
  checkpoint_written m;
  m.step = step;
  m.why = why;
  m.at = at;
  m.trying = g.last;
  const bool said = std::exchange(g.said, why) == why;
  if (!g.last) {
    auto& failed = self->state.failed;
    failed.insert(step);
    if (failed.size() > failed_max)
      failed.erase(failed.begin());
    self->state.under_way.erase(step);
  }
  if (!said)
    say(self, config, std::move(m));
}

/// Records the names of what it fetches, then fetches it.
void collect(checkpointer_actor* self, const checkpointer_config& config,
             std::uint64_t step) {
  gathering& g = *find(self, step);
  g.collecting = true;
  auto set = std::make_shared<blob_set>();
  for (const core::written_shard& s : g.tally.shards())
    if (g.parts.contains(s.unit))
      for (const core::blob_digest& d : {s.model, s.optimizer}) {
        set->blobs.push_back(d);
        set->first[d] = g.writers[s.unit];
      }
  std::vector<core::peer_id> holders = config.plan->holds.participants();
  if (const core::blob_digest& from = config.world->origin;
      from != core::blob_digest{}) {
    set->texts.push_back(from);
    for (const core::member_id& keeper : config.plan->where.keepers)
      if (std::ranges::find(holders, keeper.peer) == holders.end())
        holders.push_back(keeper.peer);
  }
  std::erase(holders, config.world->node->self());
  auto done = [to = caf::actor_cast<caf::actor>(self),
               step](std::error_code error) {
    caf::anon_send(to, collected{step, error});
  };
  config.world->node->disk().submit(
    [world = config.world, set, holders, step, done](kernels::backend&) {
      for (const core::blob_digest& d : set->blobs)
        if (!world->node->blobs().contains(d))
          if (auto error = note_shard(*world->node, world->id(), {step, d})) {
            done(error);
            return;
          }
      fetch_all(*world->node, *set, holders, done);
    },
    {});
}

/// The last checkpoint waits, and is collected again.
void collect_later(checkpointer_actor* self, std::uint64_t step) {
  if (gathering* g = find(self, step)) {
    self->delayed_send(self, g->wait, collect_again{step});
    g->wait = std::min(2 * g->wait, gather_again_after_max);
  }
}

void publish(checkpointer_actor* self, const checkpointer_config& config,
             std::uint64_t step) {
  auto ended = std::make_shared<attempt_ended>();
  ended->step = step;
  config.world->node->disk().submit(
    [world = config.world, shards = find(self, step)->tally.shards(),
     ended](kernels::backend&) {
      const runtime::timeline_span span(
        world->node->trace(), runtime::timeline::queue::disk,
        "publish checkpoint", {{"step", ended->step}});
      auto put = publish_checkpoint(*world, ended->step, shards);
      if (put)
        ended->what = *put;
      else
        ended->why = put.message();
    },
    [to = caf::actor_cast<caf::actor>(self), ended] {
      caf::anon_send(to, std::move(*ended));
    });
}

void collect_if_complete(checkpointer_actor* self,
                         const checkpointer_config& config,
                         std::uint64_t step) {
  gathering* g = find(self, step);
  if (!g || !g->begun || g->collecting)
    return;
  if (g->tally.complete())
    collect(self, config, step);
  else if (const auto* f = g->tally.failed())
    fail(self, config, step, f->why, f->at);
}

gathering& of_step(checkpointer_actor* self, const checkpointer_config& config,
                   std::uint64_t step) {
  auto& all = self->state.under_way;
  auto at = all.try_emplace(step).first;
  while (all.size() > under_way_max) {
    const auto oldest = all.begin() == at ? std::next(at) : all.begin();
    const std::uint64_t given_up = oldest->first;
    if (oldest->second.begun && !oldest->second.last)
      fail(self, config, given_up, "later ones have overtaken it");
    else
      all.erase(oldest);
  }
  return at->second;
}

void on_attempt_ended(checkpointer_actor* self,
                      const checkpointer_config& config, attempt_ended& m) {
  gathering* g = find(self, m.step);
  if (!g)
    return;
  if (!m.why.empty()) {
    const bool last = g->last;
    config.world->disk_refuses = true;
    fail(self, config, m.step, m.why, config.world->node->self());
    if (last)
      collect_later(self, m.step);
    return;
  }
  checkpoint_written out;
  out.step = m.step;
  out.ok = true;
  out.what = m.what;
  out.lacks.add(
    core::part_range{0, core::part_index(config.world->layout->unit_count())});
  out.lacks.remove(g->parts);
  auto& all = self->state.under_way;
  all.erase(all.begin(), all.upper_bound(m.step)); // older ones are useless
  self->state.ended = std::max(self->state.ended, m.step + 1);
  say(self, config, std::move(out));
}

caf::behavior
checkpointer(checkpointer_actor* self, const checkpointer_config& config) {
  return {
    [=](const begin_checkpoint& m) {
      gathering& g = of_step(self, config, m.step);
      g.begun = true;
      g.last = m.last;
      g.writers =
        writers_of(config.plan->where, *config.world->layout, m.unable);
      g.tally = core::shard_tally(g.writers);
      g.parts = core::parts_gathered_by(
        config.world->node->self(), config.plan->where,
        std::uint32_t(config.world->layout->unit_count()), m.unable);
      for (const auto& [from, what] : std::exchange(g.early, {}))
        g.tally.take(from, what);
      collect_if_complete(self, config, m.step);
    },
    [=](const shards_told& m) {
      if (m.what.step < self->state.ended
          || self->state.failed.contains(m.what.step))
        return; // its outcome is known
      gathering& g = of_step(self, config, m.what.step);
      if (g.collecting)
        return;
      if (g.begun)
        g.tally.take(m.from, m.what);
      else if (g.early.size() < early_max)
        g.early[m.from] = m.what;
      collect_if_complete(self, config, m.what.step);
    },
    [=](const collected& m) {
      gathering* g = find(self, m.step);
      if (!g)
        return;
      if (!m.error) {
        publish(self, config, m.step);
        return;
      }
      const bool last = g->last;
      const bool refused = refused_by_disk(m.error);
      if (refused)
        config.world->disk_refuses = true;
      fail(self, config, m.step,
           "its shards cannot be gathered: " + m.error.message(),
           refused ? config.world->node->self() : core::peer_id{});
      if (last)
        collect_later(self, m.step);
    },
    [=](attempt_ended& m) { on_attempt_ended(self, config, m); },
    [=](const collect_again& m) {
      if (find(self, m.step))
        collect(self, config, m.step);
    },
  };
}

} // namespace

model::result<published>
publish_checkpoint(const job_world& world, std::uint64_t step,
                   std::span<const core::written_shard> shards) {
  runtime::store& blobs = world.node->blobs();
  std::vector<manifest_file> carried;
  if (world.origin != core::blob_digest{}) {
    auto origin = read_manifest(world.origin, blobs);
    if (!origin)
      return origin.why();
    const bool all = world.run.data_tokenizer != "bytes";
    std::ranges::copy_if(
      origin->files, std::back_inserter(carried), [&](const manifest_file& f) {
        return carried_on(f.name) && (all || without_tokenizer(f.name));
      });
  }
  return publish_shards(step, *world.layout, shards, blobs,
                        world.run.data_tokenizer == "bytes", carried);
}

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config) {
  return system.spawn(checkpointer, std::move(config));
}

} // namespace shoal::actors
