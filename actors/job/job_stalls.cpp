// actors/job/job_stalls.cpp -- what this peer sees of a job that does not move,
// and its reaction (runtime/core/training/stall_watch.hpp). Every member of the
// view writes its flight record: the peer that finds the stall and those that
// it asks at once, all others when they hear the verdict.
#include "actors/job/job_actor.hpp"
#include "actors/job/queue_sight.hpp"
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

/// Limit of verdicts and other notices under one sub-plan: texts of others take
/// room.
constexpr std::size_t noted_max = 64;

/// If a thread of the links shows no activity for this long, it is working on
/// one piece, as a device may be, and the same budget applies. Normally it goes
/// round some hundred thousand times a second, and a round takes milliseconds
/// at most; a host may not give it a core for some time.
constexpr core::nanoseconds links_silent_min = 1'000'000'000;

/// Ticks until a flight record is written without a list of transfers.
constexpr int flight_ticks_max = 5;

} // namespace

void job_actor::record(const core::job_input& input) {
  if (std::holds_alternative<core::job_event::tick>(input))
    return;
  const char* what = inputs[input.index()];
  core::peer_id from{};
  if (const auto* r = std::get_if<core::job_event::received>(&input)) {
    what = messages[r->message.index()];
    from = r->from;
  }
  node().flight().add(what, config_.entry.id, core_.step_in_progress(),
                      std::uint64_t(core_.now_in()), header_.since, from);
}

/// The device may be working on a piece of another job: its time counts too.
void job_actor::predict_waits() {
  predicted_ = core::longest_wait(*view_, config_.entry.id, *place_);
  alone_ = true;
  const auto plan = node().plan();
  if (!plan)
    return;
  for (const core::assignment& other : plan->jobs) {
    if (other.job == config_.entry.id)
      continue; // its other islands have members of their own
    alone_ = false;
    for (const core::island_place& at : other.islands)
      predicted_ =
        std::max(predicted_, core::longest_wait(*view_, other.job, at));
  }
}

core::stall_watch::sight job_actor::sight() {
  core::stall_watch::sight s;
  s.on = header_;
  s.on.job = config_.entry.id;
  s.on.island = config_.island;
  if (place_)
    for (const core::member_id& m : place_->sealers)
      s.sealers.push_back(m.peer);
  if (looking_) // the core does not know of it yet
    if (const auto plan = node().plan())
      for (const core::assignment& a : plan->jobs)
        if (a.job == s.on.job && s.on.island < a.islands.size()) {
          const core::island_place& at = a.islands[s.on.island];
          s.on = {a.job, core::digest(id(), at), at.since, s.on.island};
          for (const core::member_id& m : at.sealers)
            s.sealers.push_back(m.peer);
        }
  const auto at = core_.now_in();
  using phase = core::job_core::phase;
  // The last checkpoint may wait for files, but not while it is being copied.
  const core::nanoseconds device =
    busy_for(node().device(), config_.entry.id, steady_now());
  s.loading = looking_ || core_.loads()
              || (loading_text_ && !text_ && actors_.is_data_source());
  s.active = core_.should_move() || s.loading
             || (at == phase::checkpointing && device > 0);
  s.halting = at == phase::halting;
  s.steady = alone_
             && (at == phase::running || at == phase::voting
                 || at == phase::applying || at == phase::evaluating);
  s.step = core_.step_in_progress();
  s.mark = core_.mark() + world_->finished;
  for (const runtime::link_hub::link_stat& l : node().links().stats())
    for (const runtime::link_hub::job_bytes& b : l.jobs)
      if (b.job == config_.entry.id)
        s.mark += b.sent + b.received;
  const core::nanoseconds silent = node().links().silent_for().count();
  if (s.active)
    s.computing = std::max(
      {device, busy_for(node().reductions(), config_.entry.id, steady_now()),
       silent < links_silent_min ? 0 : silent});
  s.predicted = s.loading && alone_ ? 0 : predicted_;
  s.committed = last_step_;
  s.sending_to = sending_to_;
  s.where = looking_ ? "looking for checkpoints" : to_text(at);
  if (s.active && silent >= links_silent_min && s.computing == silent)
    s.where = "its links stand still";
  see_disk(s);
  return s;
}

/// State of the disk's work, if others could go on without this peer.
void job_actor::see_disk(core::stall_watch::sight& s) {
  const runtime::disk_meter::reading moved = node().blobs().activity();
  if (s.loading)
    s.mark += moved.bytes + node().blob_bytes_moved();
  const bool placed = looking_ || (place_ && !place_->replicas.empty());
  if (placed && members().size() > 1)
    s.disk = busy_for(node().disk(), steady_now());
  if (s.disk > 0 && moved.moved_at > 0)
    s.disk =
      std::clamp<core::nanoseconds>(steady_now() - moved.moved_at, 1, s.disk);
  // The store knows the file that it reads or writes. A unit is written as one
  // file, or read by the device from a mapped one; the text is parsed in one
  // piece.
  std::uint64_t piece = moved.piece_bytes;
  for (model::unit_index u = 0; u < world_->layout->unit_count(); ++u)
    piece = std::max<std::uint64_t>(piece, 3 * sizeof(float)
                                             * world_->layout->unit_size(u));
  if (loading_text_)
    piece = std::max(piece, config_.entry.data_bytes);
  s.disk_predicted = core::stall_watch::piece_time(piece, moved.bytes_per_s);
  if (!s.loading) // a step may take longer than a piece
    s.disk_predicted = std::max(s.disk_predicted, took_.whole);
}

void job_actor::look_for_stalls() {
  if (!watch_.asking())
    sending_to_.clear();
  // While the job does not move: which peers are sending to which.
  if (!listing_ && header_.digest != 0
      && (watch_.asking() || !flight_why_.empty())) {
    listing_ = true;
    node().links().list_pending(
      header_.digest, [this, post = poster()](auto all) {
        post([this, all = std::move(all)] { list_transfers(all); });
      });
  }
  carry_out(watch_.tick(sight(), steady_now()));
  // The links are asked first, but they may be what hangs.
  if (!flight_why_.empty() && ++flight_ticks_ >= flight_ticks_max)
    write_flight();
}

void job_actor::list_transfers(
  const std::vector<runtime::link_hub::pending>& all) {
  listing_ = false;
  sending_to_.clear();
  under_way_.clear();
  for (const runtime::link_hub::pending& t : all) {
    if (t.sending && t.begun
        && std::ranges::find(sending_to_, t.peer) == sending_to_.end())
      sending_to_.push_back(t.peer);
    under_way_.push_back(
      std::string(t.sending ? "to " : "from ") + name_of(t.peer) + ": "
      + kind_of(t.tag) + ", link " + std::to_string(t.tag.link & 0xffff)
      + ", number " + std::to_string(t.tag.sequence) + ", "
      + std::to_string(t.bytes) + " bytes, " + (t.begun ? "begun" : "waits"));
  }
  if (!flight_why_.empty())
    write_flight();
}

void job_actor::on_report(const core::peer_id& from,
                          const core::stall_report& r) {
  if (!r.verdict.empty()) {
    note_verdict(r.verdict);
    if (flight_at_ != last_step_) // a peer that does not seal was not asked
      keep_flight("told by " + name_of(from) + ": " + r.verdict);
    return;
  }
  carry_out(watch_.received(from, r, sight(), steady_now()));
}

void job_actor::carry_out(const core::stall_watch::actions& actions) {
  using watch = core::stall_watch;
  for (const watch::action& action : actions) {
    if (const auto* a = std::get_if<watch::send>(&action)) {
      node().send(a->to, a->report);
    } else if (const auto* a = std::get_if<watch::stalled>(&action)) {
      keep_flight(a->why);
    } else if (const auto* a = std::get_if<watch::asked>(&action)) {
      keep_flight("asked by " + name_of(a->by) + ", where nothing moves");
    } else if (const auto* a = std::get_if<watch::expel>(&action)) {
      if (members().size() == 1) { // nobody could expel it, or go on
        note_verdict(name_of(a->peer) + " is slow: " + a->why);
        continue;
      }
      const bool quorum = node().in_quorum();
      tell_verdict(core::to_text(*a, name_of(a->peer), quorum));
      // Without a quorum, a later view would expel a peer that has moved again
      // meanwhile: the stall is examined anew then.
      if (quorum)
        node().propose_expulsion(a->peer, view_ ? view_->number : 0);
    } else if (const auto* a = std::get_if<watch::retry>(&action)) {
      tell_verdict(core::to_text(*a, node().in_quorum()));
      node().propose_retry(id(), a->since);
    } else if (const auto* a = std::get_if<watch::hung>(&action)) {
      if (flight_at_ != last_step_) { // no other peer has asked
        keep_flight(a->why);
        write_flight();
      }
      // The others may only see that this peer is gone.
      tell_verdict(
        core::to_text(*a, name_of(node().self()), node().in_quorum()));
      node().hung(a->why);
    }
  }
}

/// Several peers find the same, in different words: it is logged once.
void job_actor::note_verdict(const std::string& text) {
  if (noted_.size() < noted_max
      && noted_.insert(text.substr(0, text.find(':'))).second)
    note(core_.step_in_progress(), text);
}

void job_actor::tell_verdict(const std::string& text) {
  note_verdict(text);
  core::stall_report r;
  r.on = header_;
  r.on.job = config_.entry.id;
  r.on.island = config_.island;
  r.verdict = text.substr(0, core::stall_verdict_max);
  for (const core::peer_id& peer : members())
    if (peer != node().self())
      node().send(peer, r);
}

/// Writes the flight record at one of the next ticks, with the transfers of
/// that moment.
void job_actor::keep_flight(std::string why) {
  flight_why_ = std::move(why);
  flight_at_ = last_step_;
}

void job_actor::write_flight() {
  runtime::flight_record::reason r{std::exchange(flight_why_, {}),
                                   config_.entry.id, core_.step_in_progress(),
                                   node().self(), under_way_};
  flight_ticks_ = 0;
  node().disk().submit(
    [world = world_, r = std::move(r)](kernels::backend&) {
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
