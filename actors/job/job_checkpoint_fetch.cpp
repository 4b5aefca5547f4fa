// actors/job/job_checkpoint_fetch.cpp -- fetches a checkpoint before it is
// restored: gets the files that this peer needs from the members that have them
// and verifies them, again and again until the core gives the checkpoint up.
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/job/job_actor.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <chrono>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

namespace {

/// Pause between two rounds in which all members are asked. Higher: a peer that
/// returns is asked later, but the others get fewer requests.
constexpr std::chrono::seconds ask_again_after{1};

std::string minutes(core::nanoseconds t) {
  const auto s = t / 1'000'000'000;
  return s % 60 == 0 ? std::to_string(s / 60) + " min"
                     : std::to_string(s) + " s";
}

} // namespace

void job_actor::act(const fetch_checkpoint& a) {
  saving_.restoring(a.checkpoint);
  lasting_fetch f;
  f.holders = a.holders.empty() ? members() : a.holders;
  for (const std::uint32_t u : a.units)
    f.set.parts.push_back(
      {a.checkpoint.manifest, tensors_of(*world_->layout, u)});
  // Any error except a refusal by the own disk means: the members do not have
  // the complete checkpoint. The own disk is tried again, and users are told
  // (fetch).
  f.failed = [this, a](std::error_code error) {
    if (refused_by_disk(error))
      return false;
    fetch_again(a);
    return true;
  };
  f.then = [this, a] { verify_fetched(a); };
  fetch(std::move(f));
}

/// The round failed: tries again later.
void job_actor::fetch_again(const fetch_checkpoint& a) {
  feed(event::checkpoint_missing{a.digest, a.checkpoint});
  delayed_send(this, ask_again_after, later{[this, a, turn = turn_] {
                 if (over_ || turn != turn_)
                   return;
                 fetch_checkpoint all = a;
                 all.holders.clear();
                 act(all);
               }});
}

/// Files that have been hashed here are not hashed again when units are loaded.
void job_actor::verify_fetched(const fetch_checkpoint& a) {
  struct outcome {
    std::vector<std::string> damaged;
    std::string wrong;
  };
  auto out = std::make_shared<outcome>();
  node().disk().submit(
    [world = world_, a, out, verified = verified_](kernels::backend&) {
      runtime::store& store = world->node->blobs();
      const auto manifest = read_manifest(a.checkpoint.manifest, store);
      if (manifest && manifest->step != a.checkpoint.step)
        out->wrong = "it is of step " + std::to_string(manifest->step);
      for (const std::uint32_t u : a.units) {
        auto files =
          read_unit_files(a.checkpoint.manifest, *world->layout, u,
                          model::purpose::training, store, *verified);
        if (!files)
          out->wrong = files.message();
        else
          out->damaged.insert(out->damaged.end(), files->damaged.begin(),
                              files->damaged.end());
      }
    },
    [this, post = here_.post, a, out, turn = turn_] {
      post([this, a, out, turn] {
        if (over_ || turn != turn_)
          return;
        for (const std::string& name : out->damaged)
          remarks_.note_once(
            name
            + " is damaged here: it was set aside, and is fetched "
              "from a peer that has it");
        if (!out->wrong.empty())
          remarks_.note_once("the checkpoint of step "
                             + std::to_string(a.checkpoint.step)
                             + " cannot be used: " + out->wrong);
        if (out->damaged.empty() && out->wrong.empty())
          feed(event::checkpoint_fetched{a.digest, a.checkpoint});
        else
          fetch_again(a);
      });
    });
}

/// The offer counts if the log has a checkpoint of that step, and all its files
/// are those of the manifest.
void job_actor::on_offer(const runtime::checkpoint_offered& m) {
  std::optional<core::checkpoint_ref> offered = saving_.logged(m.step);
  if (!offered) {
    remarks_.note_once(
      "a checkpoint of step " + std::to_string(m.step)
      + " was offered, of which this job has published none: it is not "
        "used");
    return;
  }
  offered->manifest = m.manifest;
  auto whole = std::make_shared<bool>(false);
  node().disk().submit(
    [world = world_, c = *offered, whole](kernels::backend&) {
      runtime::store& store = world->node->blobs();
      const auto manifest = read_manifest(c.manifest, store);
      *whole = manifest && manifest->step == c.step
               && verify_checkpoint(c.manifest, store).empty()
               && complete(c.manifest, store);
    },
    [this, post = here_.post, c = *offered, whole] {
      post([this, c, whole] {
        if (*whole)
          saving_.hold(c);
        else
          remarks_.note_once("the checkpoint of step " + std::to_string(c.step)
                             + " was offered, but is not whole");
      });
    });
}

void job_actor::act(const checkpoint_awaited& a) {
  std::string who;
  for (const core::peer_id& p : a.holders) {
    who += who.empty() ? "" : ", ";
    who += remarks_.name_of(p) + " (" + core::short_name(p) + ")";
  }
  remarks_.note_wait(
    a.last,
    "waiting for the checkpoint of step " + std::to_string(a.checkpoint.step)
      + ": " + (who.empty() ? "no peer that is here has it" : "held by " + who)
      + ". Without it the run goes back from step " + std::to_string(a.last)
      + " to " + std::to_string(a.otherwise) + "; it does so after "
      + minutes(a.patience)
      + " (checkpoint.patience_seconds), or on `shoal recover "
      + core::job_text(config_.entry.id) + "`",
    a.checkpoint.manifest);
}

} // namespace shoal::actors
