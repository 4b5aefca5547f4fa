// actors/job/parts/job_stalls.cpp -- shows core::stall_watch what moves, and
// carries out its decisions.
#include "actors/job/parts/job_stalls.hpp"

#include "actors/job/parts/queue_sight.hpp"
#include "actors/training/link_names.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <array>

namespace shoal::actors {
namespace {

/// In the order of core::job_input.
constexpr std::array inputs{"view_changed",
                            "halted",
                            "prepared",
                            "applied",
                            "loaded",
                            "copied",
                            "arrival_copied",
                            "arrival_reduced",
                            "arrival_applied",
                            "evaluated",
                            "snapshot_taken",
                            "checkpointed",
                            "checkpoint_held",
                            "checkpoint_dropped",
                            "keep_refused",
                            "checkpoint_heard",
                            "checkpoint_fetched",
                            "checkpoint_missing",
                            "stop_waiting",
                            "blobs_held",
                            "drain",
                            "received",
                            "tick"};
static_assert(inputs.size() == std::variant_size_v<core::job_input>);

/// In the order of core::job_message.
constexpr std::array messages{"vote received",
                              "seal received",
                              "have_blobs received",
                              "progress received",
                              "eval_result received",
                              "checkpoint_published received",
                              "have_checkpoint received",
                              "shards_written received",
                              "stall_report received",
                              "arrival_wanted received",
                              "arrival_begun received",
                              "arrival_complete received",
                              "records_wanted received",
                              "restorable received",
                              "stop_waiting received",
                              "remark received"};
static_assert(messages.size() == std::variant_size_v<core::job_message>);

constexpr std::array kinds{"?",
                           "tokens",
                           "targets",
                           "activations",
                           "gradients",
                           "a part of a sum",
                           "a sum",
                           "a tied gradient",
                           "state",
                           "a snapshot",
                           "tokens to evaluate",
                           "targets to evaluate",
                           "activations to evaluate",
                           "losses of an evaluation",
                           "losses",
                           "merged losses",
                           "a copy of gradients",
                           "a copy of state",
                           "state that arrives",
                           "gradients of what arrives"};

const char* kind_of(const transport::bulk_tag& tag) {
  const std::size_t kind = tag.link >> 26;
  return kinds[kind < kinds.size() ? kind : 0];
}

/// Ticks until a flight record is written without a list of transfers.
constexpr int flight_ticks_max = 5;

} // namespace

void job_stalls::record(const core::job_input& input) {
  if (std::holds_alternative<core::job_event::tick>(input))
    return;
  const char* what = inputs[input.index()];
  core::peer_id from{};
  if (const auto* r = std::get_if<core::job_event::received>(&input)) {
    what = messages[r->message.index()];
    from = r->from;
  }
  node_.flight().add(what, here_.entry.id, here_.core->step_in_progress(),
                     std::uint64_t(here_.core->now_in()), here_.header.since,
                     from);
}

/// The device may be working on a piece of another job: its time counts too.
void job_stalls::predict() {
  predicted_ = core::longest_wait(*here_.view, here_.entry.id, *here_.place);
  alone_ = true;
  const auto plan = node_.plan();
  if (!plan)
    return;
  for (const core::assignment& other : plan->jobs) {
    if (other.job == here_.entry.id)
      continue; // its other islands have members of their own
    alone_ = false;
    for (const core::island_place& at : other.islands)
      predicted_ =
        std::max(predicted_, core::longest_wait(*here_.view, other.job, at));
  }
}

core::stall_watch::sight job_stalls::sight(bool looking) {
  core::stall_watch::sight s;
  s.header = here_.header;
  s.header.job = here_.entry.id;
  s.header.island = here_.id.index;
  if (here_.place)
    for (const core::member_id& m : here_.place->sealers)
      s.sealers.push_back(m.peer);
  if (looking) // the core does not know of it yet
    if (const auto plan = node_.plan())
      for (const core::assignment& a : plan->jobs)
        if (a.job == s.header.job && s.header.island < a.islands.size()) {
          const core::island_place& at = a.islands[s.header.island];
          s.header = {a.job, core::digest(here_.id, at), at.since,
                      s.header.island};
          for (const core::member_id& m : at.sealers)
            s.sealers.push_back(m.peer);
        }
  const auto at = here_.core->now_in();
  using phase = core::job_core::phase;
  // Only this job watches pieces of its own work, for which other jobs wait on
  // the same device. It has some in any phase: its last checkpoint is copied
  // when the run is done, and units arrive at a peer that runs no steps yet.
  const core::nanoseconds now = here_.owner->now();
  const core::nanoseconds device =
    std::max(busy_for(*here_.device, here_.entry.id, now),
             busy_for(*here_.reductions, here_.entry.id, now));
  s.loading = looking || here_.core->loads() || text_.awaited();
  s.active = here_.core->should_move() || s.loading || device > 1;
  s.halting = at == phase::halting;
  s.steady = alone_
             && (at == phase::running || at == phase::voting
                 || at == phase::applying || at == phase::evaluating);
  s.step = here_.core->step_in_progress();
  s.mark = here_.core->mark() + here_.world->finished;
  for (const runtime::link_hub::link_stat& l : here_.links->stats())
    for (const runtime::link_hub::job_bytes& b : l.jobs)
      if (b.job == here_.entry.id)
        s.mark += b.sent + b.received;
  const core::nanoseconds silent = here_.links->silent_for().count();
  if (s.active)
    s.computing = std::max(device, silent < links_silent_min ? 0 : silent);
  s.predicted = s.loading && alone_ ? 0 : predicted_;
  s.committed = remarks_.last_step();
  s.sending_to = sending_to_;
  s.where = looking ? "looking for checkpoints" : to_text(at);
  if (s.active && silent >= links_silent_min && s.computing == silent)
    s.where = "its links stand still";
  see_disk(s, looking);
  return s;
}

/// State of the disk's work, if others could go on without this peer.
void job_stalls::see_disk(core::stall_watch::sight& s, bool looking) {
  const runtime::disk_meter::reading moved = here_.blobs->activity();
  if (s.loading)
    s.mark += moved.bytes + node_.blob_bytes_moved();
  const bool placed =
    looking || (here_.place && !here_.place->replicas.empty());
  if (placed && here_.members().size() > 1)
    s.disk = busy_for(*here_.disk, here_.owner->now());
  if (s.disk > 0 && moved.moved_at > 0)
    s.disk = std::clamp<core::nanoseconds>(here_.owner->now() - moved.moved_at,
                                           1, s.disk);
  // The store knows the file that it reads or writes. A unit is written as one
  // file, or read by the device from a mapped one; the text is parsed in one
  // piece.
  std::uint64_t piece = moved.piece_bytes;
  for (model::unit_index u = 0; u < here_.world->layout->unit_count(); ++u)
    piece = std::max<std::uint64_t>(
      piece, 3 * sizeof(float) * here_.world->layout->unit_size(u));
  if (text_.loading())
    piece = std::max(piece, here_.entry.data_bytes);
  s.disk_predicted = core::stall_watch::piece_time(piece, moved.bytes_per_s);
  if (!s.loading) // a step may take longer than a piece
    s.disk_predicted = std::max(s.disk_predicted, here_.took.whole);
}

void job_stalls::tick(bool looking) {
  if (!watch_.asking())
    sending_to_.clear();
  // While the job does not move: which peers are sending to which.
  if (!listing_ && here_.header.digest != 0
      && (watch_.asking() || !flight_why_.empty())) {
    listing_ = true;
    here_.links->list_pending(
      here_.header.digest, [this, post = here_.post](auto all) {
        post([this, all = std::move(all)] { list_transfers(all); });
      });
  }
  carry_out(watch_.tick(sight(looking), here_.owner->now()));
  // The links are asked first, but they may be what hangs.
  if (!flight_why_.empty() && ++flight_ticks_ >= flight_ticks_max)
    write_flight();
}

void job_stalls::list_transfers(
  const std::vector<runtime::link_hub::pending>& all) {
  listing_ = false;
  sending_to_.clear();
  under_way_.clear();
  for (const runtime::link_hub::pending& t : all) {
    if (t.sending && t.begun
        && std::ranges::find(sending_to_, t.peer) == sending_to_.end())
      sending_to_.push_back(t.peer);
    under_way_.push_back(
      std::string(t.sending ? "to " : "from ") + remarks_.name_of(t.peer) + ": "
      + kind_of(t.tag) + ", link " + std::to_string(t.tag.link & 0xffff)
      + ", number " + std::to_string(t.tag.sequence) + ", "
      + std::to_string(t.bytes) + " bytes, " + (t.begun ? "begun" : "waits"));
  }
  if (!flight_why_.empty())
    write_flight();
}

void job_stalls::received(const core::peer_id& from,
                          const core::stall_report& r, bool looking) {
  if (!r.verdict.empty()) {
    remarks_.note_verdict(r.verdict);
    if (flight_at_
        != remarks_.last_step()) // a peer that does not seal was not asked
      keep_flight("told by " + remarks_.name_of(from) + ": " + r.verdict);
    return;
  }
  carry_out(watch_.received(from, r, sight(looking), here_.owner->now()));
}

void job_stalls::carry_out(const core::stall_watch::actions& actions) {
  using watch = core::stall_watch;
  for (const watch::action& action : actions) {
    if (const auto* a = std::get_if<watch::send>(&action)) {
      here_.owner->send_to(a->to, a->report);
    } else if (const auto* a = std::get_if<watch::stalled>(&action)) {
      keep_flight(a->why);
    } else if (const auto* a = std::get_if<watch::asked>(&action)) {
      keep_flight("asked by " + remarks_.name_of(a->by)
                  + ", where nothing moves");
    } else if (const auto* a = std::get_if<watch::expel>(&action)) {
      if (here_.members().size() == 1) { // nobody could expel it, or go on
        remarks_.note_verdict(remarks_.name_of(a->peer)
                              + " is slow: " + a->why);
        continue;
      }
      const bool quorum = node_.in_quorum();
      tell_verdict(core::to_text(*a, remarks_.name_of(a->peer), quorum));
      // Without a quorum, a later view would expel a peer that has moved again
      // meanwhile: the stall is examined anew then.
      if (quorum)
        node_.propose_expulsion(a->peer, here_.view ? here_.view->number : 0);
    } else if (const auto* a = std::get_if<watch::retry>(&action)) {
      tell_verdict(core::to_text(*a, node_.in_quorum()));
      node_.propose_retry(here_.id, a->since);
    } else if (const auto* a = std::get_if<watch::hung>(&action)) {
      if (flight_at_ != remarks_.last_step()) { // no other peer has asked
        keep_flight(a->why);
        write_flight();
      }
      // The others may only see that this peer is gone.
      tell_verdict(
        core::to_text(*a, remarks_.name_of(here_.self), node_.in_quorum()));
      node_.hung(a->why);
    }
  }
}

void job_stalls::tell_verdict(const std::string& text) {
  remarks_.note_verdict(text);
  core::stall_report r;
  r.header = here_.header;
  r.header.job = here_.entry.id;
  r.header.island = here_.id.index;
  r.verdict = text.substr(0, core::stall_verdict_max);
  for (const core::peer_id& peer : here_.members())
    if (peer != here_.self)
      here_.owner->send_to(peer, r);
}

/// Writes the flight record at one of the next ticks, with the transfers of
/// that moment.
void job_stalls::keep_flight(std::string why) {
  flight_why_ = std::move(why);
  flight_at_ = remarks_.last_step();
}

void job_stalls::write_flight() {
  runtime::flight_record::reason r{
    std::exchange(flight_why_, {}), here_.entry.id,
    here_.core->step_in_progress(), here_.self, under_way_};
  flight_ticks_ = 0;
  here_.disk->submit(
    [world = here_.world, r = std::move(r)](kernels::backend&) {
      runtime::context& node = *world->node;
      std::error_code error;
      const auto path =
        node.flight().write(node.data_dir() / "flight", r, error);
      node.say(
        "[job] step " + std::to_string(r.step) + ": " + r.text
        + (error ? "; its flight record cannot be written: " + error.message()
                 : "; flight record: " + path.string()));
    },
    {});
}

} // namespace shoal::actors
