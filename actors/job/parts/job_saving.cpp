// actors/job/parts/job_saving.cpp -- makes, keeps and drops checkpoints of a
// job.
#include "actors/job/parts/job_saving.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "runtime/context.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/training/shards.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

namespace {

/// Period in which the last checkpoint checks whether the one before is
/// written.
constexpr std::chrono::seconds look_after{1};

} // namespace

// Making checkpoints.

void job_saving::begin(const run_checkpoint& a) {
  saving_ = a.step;
  if (std::ranges::find(a.unable, here_.self) != a.unable.end()
      && ++left_out_ >= left_out_max_) {
    left_out_ = 0; // it may have room again
    left_out_max_ = std::min(2 * left_out_max_, left_out_most);
    here_.world->disk_refuses = false;
  }
  save(a);
}

/// Copies the units that this peer writes and gives the copy to the writer. The
/// last checkpoint needs no copy here, since no step runs meanwhile. Only one
/// is written at a time: if the former one is still being written, only the
/// last checkpoint waits for it, since no step runs meanwhile.
void job_saving::save(const run_checkpoint& a) {
  if (a.digest != here_.digest())
    return;
  const auto units = core::units_written_by(
    writers_of(here_.plan->where, *here_.world->layout, a.unable), here_.self);
  if (units.empty() || !writing())
    return copy_units(a, units);
  if (a.last) {
    here_.owner->post_after(look_after, [this, a] { save(a); });
    return;
  }
  to_.refuse(refuse_shards{a.step, "the one before is still being written",
                           a.publisher});
  copy_units(a, {});
}

void job_saving::copy_units(const run_checkpoint& a,
                            const std::vector<std::uint32_t>& units) {
  auto copy = std::make_shared<shard_snapshot>();
  for (std::uint32_t u : units) {
    auto& part = copy->units.emplace_back();
    part.from = here_.world->units.at(u);
    if (!a.last)
      part.copy = here_.world->state_buffers.get(state_bytes(*part.from));
  }
  if (!units.empty())
    snapshot_ = copy;
  here_.compute(
    [copy, step = a.step, trace = here_.trace](kernels::backend& device) {
      const runtime::timeline_span span(
        *trace, runtime::timeline::queue::device, "copy for a checkpoint",
        {{"step", step}});
      for (const shard_snapshot::part& part : copy->units)
        if (part.copy)
          copy_state_out(device, *part.from, part.copy.as<float>());
    },
    [this, a, copy] {
      if (a.digest == here_.digest() && !copy->units.empty())
        to_.write(write_shards{a.step, a.last, copy, a.publisher});
      to_.saving_changed(event::snapshot_taken{a.digest, a.step});
    });
}

void job_saving::tick() {
  if (!here_.world->disk_refuses || handed_over_ == here_.header.since
      || !here_.core->should_hand_over())
    return;
  handed_over_ = here_.header.since;
  to_.hand_over(handed_over_);
}

void job_saving::known(const checkpoint_known& a) {
  // While this peer tries again, it is not among those that are unable.
  std::erase_if(refusing_, [&](const core::peer_id& p) {
    return p != here_.self && std::ranges::find(a.unable, p) == a.unable.end();
  });
  if (std::exchange(fails_, false)) {
    remarks_.wait_over();
    std::vector<std::string> without;
    for (const core::peer_id& p : a.unable)
      without.push_back(remarks_.name_of(p));
    remarks_.note(
      a.checkpoint.step,
      "checkpoints are written again"
        + (without.empty() ? "" : ", not on " + core::listed(without)));
  }
  log_checkpoint(a.checkpoint);
  to_.end(checkpoint_over{a.checkpoint.step});
  drop_old();
}

void job_saving::failed(const checkpoint_failed& a) {
  if (!a.trying) {
    to_.end(checkpoint_over{a.step});
    not_saved_.insert(a.step);
    drop_old(); // others need the room
  }
  const bool news = refusing_.insert(a.at).second;
  if ((!a.trying || a.others) && (!news || fails_))
    return; // already reported
  fails_ = true;
  const std::string at = "the disk of peer " + remarks_.name_of(a.at);
  const std::string step = std::to_string(a.step);
  if (!a.trying)
    remarks_.note(a.step, "the checkpoint of step " + step
                            + " could not be written to " + at + ": " + a.why
                            + "; the run goes on");
  else if (a.others)
    remarks_.note(a.step, "the model of step " + step + " cannot be written to "
                            + at + ": " + a.why + "; others write it");
  else
    remarks_.note_wait(a.step, "the model of step " + step
                                 + " cannot be written to " + at + ": " + a.why
                                 + "; trying again until it can, or until the "
                                   "job is cancelled");
}

void job_saving::slow(const checkpoints_slow& a) {
  remarks_.note(
    a.step,
    "checkpoints take longer than "
      + std::to_string(here_.run().checkpoint_interval)
      + " steps (checkpoint.interval) allow: if all peers died at once, more"
        " would be run again; the run does not wait for them, and while they"
        " take that long, each begins as soon as the one before is done");
}

/// Logs each checkpoint once.
void job_saving::log_checkpoint(const core::checkpoint_ref& checkpoint) {
  if (!logged_.insert(checkpoint).second)
    return;
  publish(checkpoint);
  not_saved_.erase(checkpoint.step);
  remarks_.log_checkpoint(checkpoint);
}

/// When lost steps are run again, their earlier checkpoints are void, also if
/// this peer hears of them late.
void job_saving::publish(const core::checkpoint_ref& checkpoint) {
  if (checkpoint.since < published_since_)
    return;
  published_since_ = checkpoint.since;
  published_.erase(published_.upper_bound(checkpoint.step), published_.end());
  published_.insert(checkpoint.step);
}

// Keeping checkpoints.

/// Fetches each file directly from its writer, if that peer still has it. Also
/// fetches if a newer checkpoint exists: otherwise a keeper that is slower than
/// the checkpoints would never have any. Ends when a newer one is here, or when
/// the newer ones are enough that the files may be gone everywhere.
void job_saving::keep(const keep_checkpoint& a) {
  core::part_set& asked = keeping_[a.checkpoint];
  if (asked.includes(a.parts))
    return;
  asked.add(a.parts);
  say_needed();
  lasting_fetch f;
  if (a.parts == all_parts())
    f.set.manifests.push_back(a.checkpoint.manifest);
  else
    f.set.shares.push_back(
      {a.checkpoint.manifest, here_.world->layout->unit_count(), a.parts});
  if (here_.plan && !here_.plan->where.replicas.empty()) {
    const auto writers = writers_of(here_.plan->where, *here_.world->layout);
    for (std::size_t u = 0; u < writers.size(); ++u)
      for (const char* kind : {model_files, optimizer_files})
        f.set.first_by_name[model::shard_name(kind, u, writers.size())] =
          writers[u];
  }
  f.holders.push_back(a.at);
  for (const core::peer_id& p : here_.members())
    if (p != a.at)
      f.holders.push_back(p);
  std::erase(f.holders, here_.self);
  f.wanted = [this, c = a.checkpoint] {
    const bool newer_held =
      std::ranges::any_of(checkpoints_, [&](const auto& held) {
        return held.first > c && (shares() || held.second.empty());
      });
    const bool wanted = !newer_held
                        && (published_.empty() || published_.contains(c.step)
                            || *published_.rbegin() < c.step);
    if (!wanted)
      keeping_.erase(c);
    return wanted;
  };
  f.failed = [this, c = a.checkpoint](std::error_code error) {
    if (refused_by_disk(error))
      keep_refused(c, error);
    return false;
  };
  f.then = [this, a] {
    keeping_.erase(a.checkpoint);
    refusing_.erase(here_.self);
    const auto at = checkpoints_.find(a.checkpoint);
    core::part_set lacks = at == checkpoints_.end() ? all_parts() : at->second;
    lacks.remove(a.parts);
    hold(a.checkpoint, lacks);
  };
  to_.fetch(std::move(f));
}

/// Another peer keeps it. Here it is tried again, since the disk may have room
/// later.
void job_saving::keep_refused(const core::checkpoint_ref& checkpoint,
                              std::error_code error) {
  here_.world->disk_refuses = true;
  if (refusing_.insert(here_.self).second)
    remarks_.note_own(checkpoint.step, "checkpoints cannot be kept on "
                                         + remarks_.name_of(here_.self) + ": "
                                         + error.message()
                                         + "; others keep them");
  to_.saving_changed(event::keep_refused{checkpoint});
}

void job_saving::give_up(const checkpoint_given_up& a) {
  remarks_.note(a.checkpoint.step,
                "the checkpoint of step " + std::to_string(a.checkpoint.step)
                  + " is given up: no peer that is here has it whole");
  std::erase_if(checkpoints_, [&](const auto& held) {
    return held.first.manifest == a.checkpoint.manifest
           && held.first.since <= a.checkpoint.since;
  });
  published_.erase(a.checkpoint.step);
  drop_old({a.checkpoint});
}

void job_saving::hold(const core::checkpoint_ref& checkpoint,
                      const core::part_set& lacks) {
  log_checkpoint(checkpoint);
  to_.saving_changed(event::checkpoint_held{checkpoint, lacks});
  checkpoints_[checkpoint] = lacks;
  drop_old();
}

core::part_set job_saving::all_parts() const {
  return core::part_set(
    core::part_range{0, core::part_index(here_.world->layout->unit_count())});
}

bool job_saving::shares() const {
  return here_.plan && !here_.plan->where.part_keepers.empty();
}

/// The newest is hashed before any peer is told of it: damaged bytes must not
/// be chosen to go on from.
void job_saving::look() {
  struct outcome {
    std::map<core::checkpoint_ref, core::part_set> held;
    std::vector<std::string> notes;
  };
  std::set<core::checkpoint_ref> known;
  for (const runtime::job_event& e : here_.log->read_all(here_.entry.id))
    if (e.kind == runtime::job_event_kind::checkpoint
        && e.island == here_.id.index)
      known.insert({e.step, e.digest, e.epoch});
  for (const core::checkpoint_ref& c : known) // oldest first
    publish(c);
  logged_ = known;
  looking_ = !known.empty();
  say_needed();
  if (!looking_)
    return;
  auto found = std::make_shared<outcome>();
  here_.disk->submit(
    [world = here_.world, known, found](kernels::backend&) {
      runtime::store& store = world->node->blobs();
      const std::size_t units = world->layout->unit_count();
      bool whole = false; // one of them is
      for (auto at = known.rbegin(); at != known.rend(); ++at) {
        std::vector<std::string> damaged;
        if (!whole) // down to the newest that is, and shares of newer ones
          damaged = verify_checkpoint(at->manifest, store);
        for (const std::string& file : damaged)
          found->notes.push_back(
            file + " of the checkpoint of step " + std::to_string(at->step)
            + " is damaged here: it was set aside. A peer that has this "
              "checkpoint is asked for it; else an older one is used");
        mend_small_files(at->manifest, *world->layout,
                         world->run.data_tokenizer == "bytes", store);
        if (auto lacks = parts_lacking(at->manifest, units, store))
          if (lacks->size() < units) {
            found->held[*at] = *lacks;
            whole = whole || lacks->empty();
          }
      }
    },
    [this, post = here_.post, found] {
      post([this, found] {
        looking_ = false;
        for (const std::string& text : found->notes)
          remarks_.note(remarks_.last_step(), text);
        checkpoints_ = found->held;
        std::vector<core::job_input> first;
        for (auto c = logged_.rbegin(); c != logged_.rend(); ++c)
          first.push_back(event::checkpoint_heard{*c});
        for (const auto& [c, lacks] : checkpoints_)
          first.push_back(event::checkpoint_held{c, lacks});
        to_.found(std::move(first));
        drop_old();
      });
    });
}

void job_saving::restoring(const core::checkpoint_ref& checkpoint) {
  restored_ = checkpoint;
  say_needed();
}

std::uint64_t job_saving::newest_step() const {
  const auto whole =
    std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                 [](const auto& c) { return c.second.empty(); });
  return whole != checkpoints_.rend() ? whole->first.step
                                      : here_.entry.origin_step;
}

/// After a run went back, an earlier entry may have the same step.
std::optional<core::checkpoint_ref>
job_saving::logged(std::uint64_t step) const {
  std::optional<core::checkpoint_ref> out;
  for (const core::checkpoint_ref& c : logged_)
    if (c.step == step)
      out = c;
  return out;
}

// Dropping checkpoints.

/// What this island needs, for the others.
void job_saving::say_needed() {
  std::set<core::blob_digest> all{restored_.manifest};
  if (looking_) // any of them may be here
    for (const core::checkpoint_ref& c : logged_)
      all.insert(c.manifest);
  for (const auto& [c, lacks] : checkpoints_)
    all.insert(c.manifest);
  for (const auto& [c, parts] : keeping_)
    all.insert(c.manifest);
  all.erase(core::blob_digest{});
  needed_->say(here_.id, std::move(all));
}

/// Whether a job of the view serves it.
bool job_saving::is_served(const core::blob_digest& manifest) const {
  return here_.view
         && std::ranges::any_of(here_.view->jobs, [&](const auto& job) {
              const auto all = core::served_versions(job);
              return job.state == core::job_state::running
                     && job.kind == core::job_kind::serve
                     && std::ranges::find(all, manifest,
                                          &core::model_version::manifest)
                          != all.end();
            });
}

/// Adds the checkpoints whose files stayed when they were dropped here, since a
/// job served them, and does not any more.
void job_saving::drop_what_was_served(std::vector<core::checkpoint_ref>& old) {
  std::erase_if(dropped_, [&](const core::checkpoint_ref& c) {
    if (is_served(c.manifest))
      return false;
    if (c.manifest != restored_.manifest && !keeping_.contains(c))
      old.push_back(c);
    return true;
  });
}

/// Keeps all local files of the newest keep_latest_k checkpoints and of those
/// being written. Removes the files of others, also those of `old`, except
/// files that something else needs.
void job_saving::drop_old(std::vector<core::checkpoint_ref> old) {
  const auto keep =
    std::max(std::size_t(here_.run().keep_latest_k), shares() ? shared_min : 0);
  // Where they are not shared, one of which parts are lacking replaces none.
  std::size_t counted = std::ranges::count_if(
    checkpoints_, [&](const auto& c) { return shares() || c.second.empty(); });
  while (counted > keep) {
    const auto oldest = checkpoints_.begin();
    to_.saving_changed(event::checkpoint_dropped{oldest->first});
    old.push_back(oldest->first);
    if (is_served(oldest->first.manifest))
      dropped_.push_back(oldest->first);
    counted -= shares() || oldest->second.empty() ? 1 : 0;
    checkpoints_.erase(oldest);
  }
  drop_what_was_served(old);
  while (published_.size() > keep)
    published_.erase(published_.begin()); // the log has them
  const std::uint64_t newest = published_.empty() ? 0 : *published_.rbegin();
  std::erase_if(not_saved_, [&](std::uint64_t s) { return s < newest; });
  say_needed();
  if (!here_.view)
    return; // what others need is unknown; it is about to come
  // Jobs may share files: one may have started from another's checkpoint.
  std::vector<core::blob_digest> origins{here_.entry.origin};
  for (const core::job_entry& job : here_.view->jobs)
    origins.push_back(job.origin);
  auto wanted = [published = published_, failed = not_saved_, newest,
                 saving = saving_](std::uint64_t step) {
    return published.contains(step)
           || ((step > newest || step == saving) && step <= saving
               && !failed.contains(step));
  };
  here_.disk->submit(
    [world = here_.world, old, kept = checkpoints_, origins, wanted,
     view = here_.view, others = needed_](kernels::backend&) {
      runtime::store& store = world->node->blobs();
      std::set<core::blob_digest> needed =
        others->of_others(*world->node, *view, world->id());
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
      for (const auto& [c, lacks] : kept)
        for (const core::blob_digest& d : files_of(c.manifest))
          needed.insert(d);
      for (const core::checkpoint_ref& c : old)
        for (const core::blob_digest& d : files_of(c.manifest))
          if (!needed.contains(d) && store.contains(d))
            static_cast<void>(store.remove(d));
      drop_shards(*world->node, world->id(), wanted, needed);
    },
    {});
}

} // namespace shoal::actors
