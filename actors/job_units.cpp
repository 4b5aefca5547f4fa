// actors/job_units.cpp -- a unit's state: fetched, served, made, saved.
#include "actors/checkpoint_files.hpp"
#include "actors/job_actor.hpp"
#include "actors/link_names.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/job_log.hpp"
#include "runtime/links.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <set>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;
namespace fs = std::filesystem;

blob_set job_actor::job_blobs() const {
  blob_set set;
  set.blobs.push_back(config_.entry.data);
  if (config_.entry.origin != core::blob_digest{})
    set.manifests.push_back(config_.entry.origin);
  return set;
}

void job_actor::act(const fetch_unit& a) {
  unit_ptr unit = world_->units.at(a.unit);
  buffer into = world_->buffers.get(state_bytes(*unit));
  auto arrived_here = [this, unit, into, a](std::error_code error) {
    if (error || a.digest != digest_)
      return; // another sub-plan follows, or is here
    compute(
      [unit, into](kernels::backend&) {
        copy_state_in(into.as<const float>(), *unit);
      },
      [this, a] {
        feed(event::loaded{a.digest, a.unit});
      });
  };
  node().links().expect(
    a.from, make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
    into.shared(), [post = poster(), arrived_here](std::error_code error) {
      post([arrived_here, error] { arrived_here(error); });
    });
}

void job_actor::act(const serve_unit& a) {
  if (a.copy) {
    node().links().send(
      a.to, make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
      world_->copies.at(*a.copy).at(a.unit).shared(), [](std::error_code) {});
    return;
  }
  unit_ptr unit = world_->units.at(a.unit);
  buffer from = world_->buffers.get(state_bytes(*unit));
  node().device().submit(
    [unit, from](kernels::backend&) {
      copy_state_out(*unit, from.as<float>());
    },
    [links = &node().links(), a, from] {
      links->send(a.to, make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
                  from.shared(), [](std::error_code) {});
    });
}

void job_actor::act(const initialise_unit& a) {
  if (config_.entry.origin != core::blob_digest{}) {
    load_from(config_.entry.origin, members(), a.unit, a.digest);
    return;
  }
  unit_ptr unit = world_->units.at(a.unit);
  compute([unit, seed = std::uint64_t(run().seed)](
            kernels::backend&) { model::initialise(*unit, seed); },
          [this, a] {
            feed(event::loaded{a.digest, a.unit});
          });
}

void job_actor::act(const restore_unit& a) {
  load_from(a.checkpoint.manifest, a.holders, a.unit, a.digest);
}

void job_actor::load_from(const core::blob_digest& manifest,
                          std::vector<core::peer_id> holders,
                          std::uint32_t unit, std::uint64_t digest) {
  with_files(manifest, std::move(holders),
             [this, unit, digest](const fs::path& files) {
               auto at = world_->units.find(unit);
               if (digest != digest_ || at == world_->units.end())
                 return; // asked for by an earlier sub-plan: void
               auto result = std::make_shared<std::string>();
               compute(
                 [state = at->second, files, result](kernels::backend&) {
                   if (auto loaded = load_unit(files, *state); !loaded)
                     *result = loaded.message();
                 },
                 [this, unit, digest, result] {
                   if (result->empty())
                     feed(event::loaded{digest, unit});
                   else if (digest == digest_)
                     fail(*result);
                 });
             });
}

void job_actor::with_files(const core::blob_digest& manifest,
                           std::vector<core::peer_id> holders,
                           std::function<void(const fs::path&)> then) {
  if (auto at = files_.find(manifest); at != files_.end()) {
    then(at->second);
    return;
  }
  // Once for all units: a second export would write below the first's readers.
  auto& waiting = awaiting_files_[manifest];
  waiting.push_back(std::move(then));
  if (waiting.size() > 1)
    return;
  export_checkpoint(manifest, std::move(holders));
}

void job_actor::export_checkpoint(const core::blob_digest& manifest,
                                  std::vector<core::peer_id> holders) {
  struct outcome {
    std::string wrong;
    bool damaged = false; ///< the store has set something aside
  };
  char name[40];
  std::snprintf(name, sizeof name, "from-%016llx-",
                (unsigned long long)config_.entry.id);
  const fs::path where =
    node().data_dir() / "jobs" / (name + core::to_hex(manifest).substr(0, 16));
  auto exported = [this, manifest, where](const outcome& o) {
    if (o.damaged) { // others have it too
      export_checkpoint(manifest, members());
      return;
    }
    const auto ready = std::move(awaiting_files_[manifest]);
    awaiting_files_.erase(manifest);
    if (!o.wrong.empty()) {
      fail(o.wrong);
      return;
    }
    files_[manifest] = where;
    for (const auto& next : ready)
      next(where);
  };
  fetch_lasting({{}, {manifest}}, std::move(holders), true,
                [this, post = poster(), exported, manifest, where] {
                  node().disk().submit(
                    [world = config_.node, post, exported, manifest,
                     where](kernels::backend&) {
                      runtime::store& store = world->blobs();
                      auto m = read_manifest(manifest, store);
                      model::status out = m ? export_files(*m, store, where)
                                            : model::status{m.why()};
                      outcome o;
                      if (!out) {
                        o.wrong = out.message();
                        o.damaged = !complete(manifest, store);
                      }
                      post([exported, o] { exported(o); });
                    },
                    {});
                });
}

void job_actor::fetch_lasting(blob_set set, std::vector<core::peer_id> holders,
                              bool any_plan,
                              const std::function<void()>& then) {
  auto ended = [this, set, any_plan, then,
                turn = turn_](std::error_code error) {
    if (over_ || (!any_plan && turn != turn_))
      return;
    if (!error) {
      then();
      return;
    }
    note(core_.step_in_progress(), "data of the job cannot be fetched: "
                                     + error.message() + "; trying again");
    delayed_send(this, std::chrono::seconds(1),
                 job_later{[this, set, any_plan, then, turn] {
                   if (!over_ && (any_plan || turn == turn_))
                     fetch_lasting(set, members(), any_plan, then);
                 }});
  };
  fetch_all(node(), std::move(set), std::move(holders),
            [post = poster(), ended](std::error_code error) {
              post([ended, error] { ended(error); });
            });
}

void job_actor::act(const release& a) {
  for (std::uint32_t u : a.units)
    world_->units.erase(u);
}

// Checkpoints.

void job_actor::act(const run_checkpoint& a) {
  crew_.begin_checkpoint(a.step, a.last);
  const bool answers_later = crew_.is_checkpointer();
  if (crew_.in_first_replica()) {
    const core::peer_id to = crew_.plan()->where.checkpointer.peer;
    for (const stage_name& n : crew_.stages()) {
      const unit_range range =
        units_of(crew_.plan()->where, n.replica, n.stage);
      for (auto u = range.first; u < range.last; ++u) {
        unit_ptr unit = world_->units.at(u);
        buffer copy = world_->buffers.get(state_bytes(*unit));
        const auto tag = make_tag(digest_, link_kind::snapshot, 0, u, a.step);
        node().device().submit(
          [unit, copy](kernels::backend&) {
            copy_state_out(*unit, copy.as<float>());
          },
          [links = &node().links(), to, tag, copy] {
            links->send(to, tag, copy.shared(), [](std::error_code) {});
          });
      }
    }
  }
  if (answers_later)
    return;
  compute(
    [](kernels::backend&) {},
    [this, a] {
      feed(event::checkpointed{a.digest, a.step, false, {}, 0, {}, false});
    });
}

void job_actor::act(const checkpoint_known& a) {
  if (std::exchange(saving_fails_, false))
    note(a.checkpoint.step, "checkpoints are written again");
  log_checkpoint(a.checkpoint);
}

void job_actor::act(const checkpoint_failed& a) {
  const bool again = std::exchange(saving_fails_, true);
  if (again && !a.trying)
    return; // said
  const core::member* where = view_ ? core::find_member(*view_, a.at) : nullptr;
  const std::string at = where ? where->name : core::to_hex(a.at).substr(0, 8);
  note(a.step, a.trying ? "the model of step " + std::to_string(a.step)
                            + " cannot be written on " + at + ": " + a.why
                            + "; trying again until it can (or `shoal cancel`)"
                        : "the checkpoint of step " + std::to_string(a.step)
                            + " could not be written on " + at + ": " + a.why
                            + "; the run goes on");
}

/// Once for each.
void job_actor::log_checkpoint(const core::checkpoint_ref& checkpoint) {
  if (!logged_.insert(checkpoint).second)
    return;
  runtime::job_event e;
  e.kind = runtime::job_event_kind::checkpoint;
  e.step = checkpoint.step;
  e.epoch = view_ ? view_->number : 0;
  e.digest = checkpoint.manifest;
  node().log().add(config_.entry.id, e);
}

void job_actor::act(const keep_checkpoint& a) {
  fetch_lasting({{}, {a.checkpoint.manifest}}, {a.at}, false,
                [this, a] { hold(a.checkpoint); });
}

/// It is complete in the own store: only now may older ones go. It may have
/// been written under a sub-plan that is over: then nobody has told of it yet.
void job_actor::hold(const core::checkpoint_ref& checkpoint) {
  log_checkpoint(checkpoint);
  feed(event::checkpoint_held{checkpoint});
  if (std::ranges::find(checkpoints_, checkpoint) == checkpoints_.end())
    checkpoints_.push_back(checkpoint);
  drop_old_checkpoints();
}

/// Those that an earlier life of this peer has left in its store.
void job_actor::find_checkpoints() {
  for (const runtime::job_event& e : node().log().read_all(config_.entry.id))
    if (e.kind == runtime::job_event_kind::checkpoint) {
      logged_.insert({e.step, e.digest});
      if (have_all(node(), {{}, {e.digest}}))
        checkpoints_.push_back({e.step, e.digest});
    }
  std::ranges::sort(checkpoints_);
  if (!checkpoints_.empty())
    feed(event::checkpoint_held{checkpoints_.back()});
}

void job_actor::drop_old_checkpoints() {
  const auto keep = std::size_t(run().keep_latest_k);
  if (checkpoints_.size() <= keep)
    return;
  std::ranges::sort(checkpoints_);
  std::vector<core::checkpoint_ref> old(checkpoints_.begin(),
                                        checkpoints_.end() - long(keep));
  checkpoints_.erase(checkpoints_.begin(), checkpoints_.end() - long(keep));
  // Jobs may share files: one may have started from another's checkpoint.
  std::vector<core::blob_digest> origins{config_.entry.origin};
  if (view_)
    for (const core::job_entry& job : view_->jobs)
      origins.push_back(job.origin);
  node().disk().submit(
    [world = world_, old, kept = checkpoints_, origins](kernels::backend&) {
      runtime::store& store = world->node->blobs();
      std::set<core::blob_digest> needed;
      auto files_of = [&](const core::blob_digest& m) {
        std::vector<core::blob_digest> out{m};
        if (store.contains(m))
          if (auto read = read_manifest(m, store))
            for (const manifest_file& f : read->files)
              out.push_back(f.digest);
        return out;
      };
      for (const core::blob_digest& origin : origins)
        for (const core::blob_digest& d : files_of(origin))
          needed.insert(d);
      for (const core::checkpoint_ref& c : kept)
        for (const core::blob_digest& d : files_of(c.manifest))
          needed.insert(d);
      for (const core::checkpoint_ref& c : old)
        for (const core::blob_digest& d : files_of(c.manifest))
          if (!needed.contains(d) && store.contains(d))
            static_cast<void>(store.remove(d));
    },
    {});
}

void job_actor::act(const get_blobs& a) {
  fetch_lasting(job_blobs(), a.holders, false, [this] {
    feed(event::blobs_held{});
    load_text();
  });
}

} // namespace shoal::actors
