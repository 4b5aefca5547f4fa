// actors/job/job_leaving_alone.cpp -- saves the state that is here when the node
// ends and no quorum can agree to that.
//
// The other peers of the job are dead or out of reach, so there is no step to
// finish and no vote on a checkpoint. But what is here may be the whole state: a
// peer follows others. Then this peer writes all of it and publishes the
// checkpoint to itself. When it returns, its seal names that checkpoint.
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "actors/job/job_actor.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

namespace event = core::job_event;

/// The state that is saved, unit after unit.
struct job_actor::rescue {
  core::state_version version;
  std::vector<core::written_shard> shards;
  std::shared_ptr<void> lease;
};

void job_actor::on_leaving_alone(const runtime::leaving_alone& m) {
  using phase = core::job_core::phase;
  if (over_ || core_.held().empty())
    return;
  if (place_
      && core::holdings(*place_).participants() == std::vector{node().self()}) {
    // No other peer is needed: the run stops after its step, as in a drain.
    const phase at = core_.now_in();
    if (at != phase::gated && (at != phase::done || !reported_.finished))
      leaving_alone_ = m.lease;
    return on_drain();
  }
  deaf_ = true; // a late vote must not change what is being saved
  save_when_still(m.lease);
}

void job_actor::save_when_still(std::shared_ptr<void> lease) {
  fence([this, lease = std::move(lease)] {
    using phase = core::job_core::phase;
    const phase at = core_.now_in();
    if (at == phase::applying || at == phase::restoring)
      return save_when_still(lease);
    save_what_is_here(lease);
  });
}

/// The newest version that all units are here at.
std::optional<core::state_version> job_actor::newest_whole() const {
  std::map<core::state_version, std::set<std::uint32_t>> units = core_.copies();
  for (const auto& [unit, version] : core_.held())
    units[version].insert(unit);
  for (auto at = units.rbegin(); at != units.rend(); ++at)
    if (at->second.size() == world_->layout->unit_count())
      return at->first;
  return std::nullopt;
}

void job_actor::save_what_is_here(std::shared_ptr<void> lease) {
  const auto version = newest_whole();
  const std::uint64_t saved =
    checkpoints_.empty() ? config_.entry.origin_step : checkpoints_.back().step;
  if (!version || version->step <= saved)
    return say_lost("it does not hold all of the model's state", saved);
  auto all = std::make_shared<rescue>();
  all->version = *version;
  all->lease = std::move(lease);
  node().say("[job] " + config_.entry.name + ": saving the state at step "
             + std::to_string(version->step)
             + " on this node, since no quorum lets it leave");
  save_unit(all);
}

void job_actor::save_unit(const std::shared_ptr<rescue>& all) {
  const auto unit = model::unit_index(all->shards.size());
  if (unit == world_->layout->unit_count())
    return publish_alone(all);
  const auto held = core_.held().find(unit);
  if (held == core_.held().end() || held->second != all->version)
    return write_unit(all, world_->copies.at(all->version).at(unit));
  const unit_ptr from = world_->units.at(unit);
  const buffer copy = world_->state_buffers.get(state_bytes(*from));
  compute(
    [from, copy](kernels::backend& device) {
      copy_state_out(device, *from, copy.as<float>());
    },
    [this, all, copy] { write_unit(all, copy); });
}

void job_actor::write_unit(const std::shared_ptr<rescue>& all,
                           const buffer& copy) {
  auto why = std::make_shared<std::string>();
  node().disk().submit(
    [world = world_, all, copy, why](kernels::backend&) {
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
    [this, post = poster(), all, why] {
      post([this, all, why] {
        if (why->empty())
          save_unit(all);
        else
          say_not_saved(*why);
      });
    });
}

void job_actor::publish_alone(const std::shared_ptr<rescue>& all) {
  auto put = std::make_shared<model::result<published>>(model::failure{});
  node().disk().submit(
    [world = world_, all, put](kernels::backend&) {
      *put = publish_checkpoint(*world, all->version.step, all->shards);
    },
    [this, post = poster(), all, put] {
      post([this, all, put] {
        if (!*put)
          return say_not_saved(put->message());
        hold({all->version.step, (*put)->manifest,
              std::max(adopted_since_, all->version.made)});
        const std::string step = std::to_string(all->version.step);
        note_own(all->version.step,
                 config_.entry.name + ": step " + step
                   + " is saved on this node as a checkpoint, since it is not "
                     "known whether another peer still has that state. Start "
                     "this node again to go on from it, if the others come "
                     "back or by `shoal recover --force`");
        node().disk().submit([lease = all->lease](kernels::backend&) {}, {});
      });
    });
}

void job_actor::say_not_saved(const std::string& why) {
  say_lost("it cannot be saved here: " + why, checkpoints_.empty()
                                                ? config_.entry.origin_step
                                                : checkpoints_.back().step);
}

/// @param saved the step that this node's store can go on from
void job_actor::say_lost(const std::string& why, std::uint64_t saved) {
  if (last_step_ <= saved)
    return;
  const std::string none =
    saved == config_.entry.origin_step
      ? "its beginning"
      : "the checkpoint of step " + std::to_string(saved);
  note_own(last_step_, config_.entry.name + ": the state at step "
                         + std::to_string(last_step_)
                         + " ends with this node: " + why
                         + ". Unless other peers that still run hold it, the "
                           "run goes on from "
                         + none
                         + " on this node, or from a newer one on "
                           "another");
}

} // namespace shoal::actors
