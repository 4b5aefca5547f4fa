// actors/job/parts/job_rescue.cpp -- writes all units of the newest version
// that is here, then the checkpoint.
#include "actors/job/parts/job_rescue.hpp"

#include "actors/checkpoint/checkpointer.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "actors/checkpoint/shard_writer.hpp"
#include "runtime/context.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The state that is saved, unit after unit.
struct job_rescue::state {
  core::state_version version;
  std::vector<core::written_shard> shards;
  std::shared_ptr<void> lease;
};

void job_rescue::begin(std::shared_ptr<void> lease) {
  begun_ = true;
  save_when_still(std::move(lease));
}

void job_rescue::save_when_still(std::shared_ptr<void> lease) {
  here_.fence([this, lease = std::move(lease)] {
    using phase = core::job_core::phase;
    const phase at = here_.core->now_in();
    if (at == phase::applying || at == phase::restoring)
      return save_when_still(lease);
    save_all(lease);
  });
}

/// The newest version that all units are here at.
std::optional<core::state_version> job_rescue::newest_whole() const {
  std::map<core::state_version, std::set<std::uint32_t>> units =
    here_.core->copies();
  for (const auto& [unit, version] : here_.core->held())
    units[version].insert(unit);
  for (auto at = units.rbegin(); at != units.rend(); ++at)
    if (at->second.size() == here_.world->layout->unit_count())
      return at->first;
  return std::nullopt;
}

void job_rescue::save_all(std::shared_ptr<void> lease) {
  const auto version = newest_whole();
  if (!version || version->step <= saving_.newest_step())
    return say_lost("it does not hold all of the model's state");
  auto all = std::make_shared<state>();
  all->version = *version;
  all->lease = std::move(lease);
  here_.owner->say("[job] " + here_.entry.name + ": saving the state at step "
                   + std::to_string(version->step)
                   + " on this node, since no quorum lets it leave");
  save_next(all);
}

void job_rescue::save_next(const std::shared_ptr<state>& all) {
  const auto unit = model::unit_index(all->shards.size());
  if (unit == here_.world->layout->unit_count())
    return publish(all);
  const auto held = here_.core->held().find(unit);
  if (held == here_.core->held().end() || held->second != all->version)
    return write_next(all, here_.world->copies.at(all->version).at(unit));
  const unit_ptr from = here_.world->units.at(unit);
  const buffer copy = here_.world->state_buffers.get(state_bytes(*from));
  here_.compute(
    [from, copy](kernels::backend& device) {
      copy_state_out(device, *from, copy.as<float>());
    },
    [this, all, copy] { write_next(all, copy); });
}

void job_rescue::write_next(const std::shared_ptr<state>& all,
                            const buffer& copy) {
  auto why = std::make_shared<std::string>();
  here_.disk->submit(
    [world = here_.world, all, copy, why](kernels::backend&) {
      const auto unit = model::unit_index(all->shards.size());
      auto put = write_shard(
        *world->layout, {unit, copy.as<const float>()}, world->node->blobs(),
        [&](const core::blob_digest& d) {
          return note_shard(*world->node, world->id(), {all->version.step, d});
        });
      if (put)
        all->shards.push_back(*put);
      else
        *why = put.message();
    },
    [this, post = here_.post, all, why] {
      post([this, all, why] {
        if (why->empty())
          save_next(all);
        else
          say_lost("it cannot be saved here: " + *why);
      });
    });
}

void job_rescue::publish(const std::shared_ptr<state>& all) {
  auto put = std::make_shared<model::result<published>>(model::failure{});
  here_.disk->submit(
    [world = here_.world, all, put](kernels::backend&) {
      *put = publish_checkpoint(*world, all->version.step, all->shards);
    },
    [this, post = here_.post, all, put] {
      post([this, all, put] {
        if (!*put)
          return say_lost("it cannot be saved here: " + put->message());
        saving_.hold({all->version.step, (*put)->manifest,
                      std::max(here_.adopted_since, all->version.made)});
        const std::string step = std::to_string(all->version.step);
        remarks_.note_own(
          all->version.step,
          here_.entry.name + ": step " + step
            + " is saved on this node as a checkpoint, since it is not known "
              "whether another peer still has that state. Start this node "
              "again to go on from it, if the others come back or by `shoal "
              "recover --force`");
        // Once the log is written.
        here_.disk->submit([lease = all->lease](kernels::backend&) {}, {});
      });
    });
}

void job_rescue::say_lost(const std::string& why) {
  const std::uint64_t saved = saving_.newest_step(),
                      last = remarks_.last_step();
  if (last <= saved)
    return;
  const std::string none =
    saved == here_.entry.origin_step
      ? "its beginning"
      : "the checkpoint of step " + std::to_string(saved);
  remarks_.note_own(last,
                    here_.entry.name + ": the state at step "
                      + std::to_string(last) + " ends with this node: " + why
                      + ". Unless other peers that still run hold it, "
                        "the run goes on from "
                      + none + " on this node, or from a newer one on another");
}

} // namespace shoal::actors
