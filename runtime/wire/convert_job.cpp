// runtime/wire/convert_job.cpp -- what the peers of one job tell each other.
#include "runtime/core/cluster/membership.hpp" // members_max
#include "runtime/wire/convert.hpp"

namespace shoal::runtime::codec {

static void put(wire::JobHeader& to, const core::job_header& from) {
  to.set_job(from.job);
  to.set_digest(from.digest);
  to.set_since(from.since);
}

static void get(const wire::JobHeader& from, core::job_header& to, checks& c) {
  to.job = from.job();
  to.digest = from.digest();
  to.since = c.at_most(from.since(), epoch_max);
}

static void put(wire::StateVersion& to, const core::state_version& from) {
  to.set_step(from.step);
  to.set_made(from.made);
}

static void
get(const wire::StateVersion& from, core::state_version& to, checks& c) {
  to.step = c.at_most(from.step(), epoch_max);
  to.made = c.at_most(from.made(), epoch_max);
}

static void put(wire::Vote& to, const core::vote& from) {
  put(*to.mutable_on(), from.on);
  to.set_step(from.step);
  for (const core::unit_sums& u : from.units) {
    wire::UnitSums& unit = *to.add_units();
    unit.set_unit(u.unit);
    for (double sum : u.sums)
      unit.add_sums(sum);
  }
  for (double loss : from.losses)
    to.add_losses(loss);
  to.set_drain(from.drain);
  to.set_again(from.again);
  to.set_busy(std::uint64_t(from.busy));
  to.set_elapsed(std::uint64_t(from.elapsed));
  to.set_copied(from.copied);
  for (const std::uint64_t sample : from.samples)
    to.add_samples(sample);
  to.set_writing(from.writing);
  to.set_unable(from.unable);
  to.set_checkpoint_lag(from.checkpoint_lag);
  for (const core::unit_digest& d : from.digests) {
    wire::UnitDigest& digest = *to.add_digests();
    digest.set_unit(d.unit);
    digest.set_digest(d.digest);
  }
}

static void get(const wire::Vote& from, core::vote& to, checks& c) {
  get(from.on(), to.on, c);
  to.step = c.at_most(from.step(), epoch_max);
  if (!c.list(from.units_size(), core::job_units_max)
      || !c.list(from.losses_size(), core::job_microbatches_max)
      || !c.list(from.samples_size(), core::job_microbatches_max)
      || !c.list(from.digests_size(), core::job_units_max))
    return;
  std::size_t tensors = 0;
  for (const wire::UnitSums& u : from.units()) {
    tensors += static_cast<std::size_t>(u.sums_size());
    if (tensors > core::job_tensors_max
        || !c.list(u.sums_size(), core::job_tensors_per_unit_max))
      return c.fail(errc::too_large);
    core::unit_sums& unit = to.units.emplace_back();
    unit.unit = c.at_most(u.unit(), core::job_units_max - 1);
    unit.sums.assign(u.sums().begin(), u.sums().end());
  }
  to.losses.assign(from.losses().begin(), from.losses().end());
  to.drain = from.drain();
  to.again = from.again();
  to.busy = core::nanoseconds(c.at_most(from.busy(), epoch_max));
  to.elapsed = core::nanoseconds(c.at_most(from.elapsed(), epoch_max));
  to.copied = c.at_most(from.copied(), epoch_max);
  to.samples.assign(from.samples().begin(), from.samples().end());
  to.writing = from.writing();
  to.unable = from.unable();
  to.checkpoint_lag = c.at_most(from.checkpoint_lag(), epoch_max);
  for (const wire::UnitDigest& d : from.digests())
    to.digests.push_back(
      {c.at_most(d.unit(), core::job_units_max - 1), d.digest()});
}

static void put(wire::StepRecord& to, const core::step_record& from) {
  put(*to.mutable_version(), from.version);
  to.set_loss(from.loss);
  to.set_grad_norm(from.grad_norm);
  to.set_replicas(from.replicas);
  to.set_stages(from.stages);
  to.set_data(from.data);
  to.set_bad(from.bad);
}

static void
get(const wire::StepRecord& from, core::step_record& to, checks& c) {
  get(from.version(), to.version, c);
  to.loss = from.loss();
  to.grad_norm = from.grad_norm();
  to.replicas = c.at_most(from.replicas(), replicas_max);
  to.stages = c.at_most(from.stages(), stages_max);
  to.data = from.data();
  to.bad = c.at_most(from.bad(), core::bad_steps_max);
}

static void put(wire::CheckpointRef& to, const core::checkpoint_ref& from) {
  to.set_step(from.step);
  to.set_manifest(raw(from.manifest));
  to.set_since(from.since);
}

static void
get(const wire::CheckpointRef& from, core::checkpoint_ref& to, checks& c) {
  to.step = c.at_most(from.step(), epoch_max);
  c.id(from.manifest(), to.manifest);
  to.since = c.at_most(from.since(), epoch_max);
}

static void put(wire::JobMessage& out, const core::vote& from) {
  put(*out.mutable_vote(), from);
}

static void put(wire::JobMessage& out, const core::seal& from) {
  wire::Seal& to = *out.mutable_seal();
  put(*to.mutable_on(), from.on);
  for (const core::held_unit& u : from.units) {
    wire::HeldUnit& unit = *to.add_units();
    unit.set_unit(u.unit);
    put(*unit.mutable_applied(), u.applied);
    unit.set_prepared(u.prepared);
    put(*unit.mutable_hashed(), u.hashed);
    unit.set_digest(u.digest);
  }
  for (const core::unit_copy& u : from.copies) {
    wire::HeldUnit& unit = *to.add_copies();
    unit.set_unit(u.unit);
    put(*unit.mutable_applied(), u.version);
  }
  put(*to.mutable_prepared(), from.prepared);
  put(*to.mutable_prepared_vote(), from.prepared_vote);
  put(*to.mutable_last(), from.last);
  to.set_stop_step(from.stop_step);
  to.set_evaluated(from.evaluated);
  put(*to.mutable_checkpoint(), from.checkpoint);
  for (const core::checkpoint_ref& c : from.older)
    put(*to.add_older(), c);
  for (const core::checkpoint_ref& c : from.given_up)
    put(*to.add_given_up(), c);
  for (const core::checkpoint_ref& c : from.heard)
    put(*to.add_heard(), c);
  put(*to.mutable_known(), from.known);
  to.set_top(from.top);
  to.set_unable(from.unable);
  to.set_has_blobs(from.has_blobs);
  to.set_checkpoint_lag(from.checkpoint_lag);
  to.set_again(from.again);
}

static void get(const wire::Seal& from, core::seal& to, checks& c) {
  get(from.on(), to.on, c);
  if (!c.list(from.units_size(), core::job_units_max))
    return;
  for (const wire::HeldUnit& u : from.units()) {
    core::held_unit& unit = to.units.emplace_back();
    unit.unit = c.at_most(u.unit(), core::job_units_max - 1);
    get(u.applied(), unit.applied, c);
    unit.prepared = u.prepared();
    get(u.hashed(), unit.hashed, c);
    unit.digest = u.digest();
  }
  for (std::size_t i = 1; i < to.units.size(); ++i)
    c.require(to.units[i - 1].unit < to.units[i].unit);
  if (!c.list(from.copies_size(), core::job_copies_max))
    return;
  for (const wire::HeldUnit& u : from.copies()) {
    core::unit_copy& copy = to.copies.emplace_back();
    copy.unit = c.at_most(u.unit(), core::job_units_max - 1);
    get(u.applied(), copy.version, c);
  }
  get(from.prepared(), to.prepared, c);
  get(from.prepared_vote(), to.prepared_vote, c);
  get(from.last(), to.last, c);
  to.stop_step = c.at_most(from.stop_step(), epoch_max);
  to.evaluated = c.at_most(from.evaluated(), epoch_max);
  get(from.checkpoint(), to.checkpoint, c);
  if (c.list(from.older_size(), core::checkpoints_told_max))
    for (const wire::CheckpointRef& r : from.older())
      get(r, to.older.emplace_back(), c);
  if (c.list(from.given_up_size(), core::checkpoints_told_max))
    for (const wire::CheckpointRef& r : from.given_up())
      get(r, to.given_up.emplace_back(), c);
  if (c.list(from.heard_size(), core::checkpoints_told_max))
    for (const wire::CheckpointRef& r : from.heard())
      get(r, to.heard.emplace_back(), c);
  get(from.known(), to.known, c);
  to.top = c.at_most(from.top(), epoch_max);
  to.unable = from.unable();
  to.has_blobs = from.has_blobs();
  to.checkpoint_lag = c.at_most(from.checkpoint_lag(), epoch_max);
  to.again = from.again();
}

static void put(wire::JobMessage& out, const core::have_blobs& from) {
  put(*out.mutable_have_blobs()->mutable_on(), from.on);
}

static void put(wire::JobMessage& out, const core::progress& from) {
  wire::Progress& to = *out.mutable_progress();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_record(), from.record);
  to.set_lr(from.lr);
  to.set_tokens(from.tokens);
  to.set_took(from.took.whole);
  to.set_computing(from.took.computing);
  to.set_reducing(from.took.reducing);
  to.set_bubble_permille(from.bubble_permille);
}

static void get(const wire::Progress& from, core::progress& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.record(), to.record, c);
  to.lr = from.lr();
  to.tokens = c.at_most(from.tokens(), bytes_max);
  c.require(from.took() >= 0 && from.computing() >= 0 && from.reducing() >= 0);
  to.took = {from.took(), from.computing(), from.reducing()};
  to.bubble_permille = c.at_most(from.bubble_permille(), 1000);
}

static void put(wire::JobMessage& out, const core::eval_result& from) {
  wire::EvalResult& to = *out.mutable_eval_result();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_version(), from.version);
  to.set_loss(from.loss);
  to.set_tokens(from.tokens);
}

static void
get(const wire::EvalResult& from, core::eval_result& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.version(), to.version, c);
  to.loss = from.loss();
  to.tokens = c.at_most(from.tokens(), bytes_max);
}

static void put(wire::JobMessage& out, const core::checkpoint_published& from) {
  wire::CheckpointPublished& to = *out.mutable_checkpoint_published();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_checkpoint(), from.checkpoint);
  to.set_bytes(from.bytes);
  to.set_why(core::shown(from.why, text_bytes_max));
  to.set_trying(from.trying);
  to.set_refused(raw(from.refused));
  for (const core::peer_id& p : from.unable)
    to.add_unable(raw(p));
}

static void get(const wire::CheckpointPublished& from,
                core::checkpoint_published& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.checkpoint(), to.checkpoint, c);
  to.bytes = c.at_most(from.bytes(), bytes_max);
  c.text(from.why(), text_bytes_max, to.why);
  to.trying = from.trying();
  c.id(from.refused(), to.refused);
  if (c.list(from.unable_size(), core::cluster::members_max))
    for (const std::string& p : from.unable())
      c.id(p, to.unable.emplace_back());
}

static void put(wire::JobMessage& out, const core::have_checkpoint& from) {
  wire::HaveCheckpoint& to = *out.mutable_have_checkpoint();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_checkpoint(), from.checkpoint);
  to.set_refused(from.refused);
}

static void
get(const wire::HaveCheckpoint& from, core::have_checkpoint& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.checkpoint(), to.checkpoint, c);
  to.refused = from.refused();
}

static void put(wire::JobMessage& out, const core::shards_written& from) {
  wire::ShardsWritten& to = *out.mutable_shards_written();
  put(*to.mutable_on(), from.on);
  to.set_step(from.step);
  for (const core::written_shard& s : from.shards) {
    wire::WrittenShard& shard = *to.add_shards();
    shard.set_unit(s.unit);
    shard.set_model(raw(s.model));
    shard.set_model_bytes(s.model_bytes);
    shard.set_optimizer(raw(s.optimizer));
    shard.set_optimizer_bytes(s.optimizer_bytes);
  }
  to.set_why(core::shown(from.why, text_bytes_max));
  to.set_trying(from.trying);
}

static void
get(const wire::ShardsWritten& from, core::shards_written& to, checks& c) {
  get(from.on(), to.on, c);
  to.step = c.at_most(from.step(), epoch_max);
  if (!c.list(from.shards_size(), core::job_units_max))
    return;
  for (const wire::WrittenShard& s : from.shards()) {
    core::written_shard& shard = to.shards.emplace_back();
    shard.unit = c.at_most(s.unit(), core::job_units_max - 1);
    c.id(s.model(), shard.model);
    shard.model_bytes = c.at_most(s.model_bytes(), bytes_max);
    c.id(s.optimizer(), shard.optimizer);
    shard.optimizer_bytes = c.at_most(s.optimizer_bytes(), bytes_max);
  }
  for (std::size_t i = 1; i < to.shards.size(); ++i)
    c.require(to.shards[i - 1].unit < to.shards[i].unit);
  c.text(from.why(), text_bytes_max, to.why);
  to.trying = from.trying();
}

static void put(wire::JobMessage& out, const core::stall_report& from) {
  wire::StallReport& to = *out.mutable_stall_report();
  put(*to.mutable_on(), from.on);
  to.set_step(from.step);
  to.set_asks(from.asks);
  to.set_active(from.active);
  to.set_halting(from.halting);
  to.set_loading(from.loading);
  to.set_idle_ns(std::uint64_t(from.idle));
  to.set_budget_ns(std::uint64_t(from.budget));
  to.set_computing_ns(std::uint64_t(from.computing));
  for (const core::peer_id& p : from.sending_to)
    to.add_sending_to(raw(p));
  to.set_where(core::shown(from.where, core::stall_where_max));
  to.set_verdict(core::shown(from.verdict, core::stall_verdict_max));
}

static void
get(const wire::StallReport& from, core::stall_report& to, checks& c) {
  get(from.on(), to.on, c);
  to.step = c.at_most(from.step(), epoch_max);
  to.asks = from.asks();
  to.active = from.active();
  to.halting = from.halting();
  to.loading = from.loading();
  to.idle = core::nanoseconds(c.at_most(from.idle_ns(), epoch_max));
  to.budget = core::nanoseconds(c.at_most(from.budget_ns(), epoch_max));
  to.computing = core::nanoseconds(c.at_most(from.computing_ns(), epoch_max));
  if (c.list(from.sending_to_size(), core::stall_peers_max))
    for (const std::string& p : from.sending_to())
      c.id(p, to.sending_to.emplace_back());
  c.text(from.where(), core::stall_where_max, to.where);
  c.text(from.verdict(), core::stall_verdict_max, to.verdict);
}

static void put(wire::JobMessage& out, const core::drain_request& from) {
  put(*out.mutable_drain_request()->mutable_on(), from.on);
}

static void put(wire::JobMessage& out, const core::arrival_wanted& from) {
  wire::ArrivalWanted& to = *out.mutable_arrival_wanted();
  put(*to.mutable_on(), from.on);
  to.set_unit(from.unit);
  to.set_attempt(from.attempt);
  to.set_after(from.after);
}

static void
get(const wire::ArrivalWanted& from, core::arrival_wanted& to, checks& c) {
  get(from.on(), to.on, c);
  to.unit = c.at_most(from.unit(), core::job_units_max - 1);
  to.attempt = c.at_most(from.attempt(), core::arrival_tries_max);
  to.after = c.at_most(from.after(), epoch_max);
}

static void put(wire::JobMessage& out, const core::arrival_begun& from) {
  wire::ArrivalBegun& to = *out.mutable_arrival_begun();
  put(*to.mutable_on(), from.on);
  to.set_unit(from.unit);
  to.set_attempt(from.attempt);
  put(*to.mutable_version(), from.version);
}

static void
get(const wire::ArrivalBegun& from, core::arrival_begun& to, checks& c) {
  get(from.on(), to.on, c);
  to.unit = c.at_most(from.unit(), core::job_units_max - 1);
  to.attempt = c.at_most(from.attempt(), core::arrival_tries_max);
  get(from.version(), to.version, c);
}

static void put(wire::JobMessage& out, const core::arrival_complete& from) {
  wire::ArrivalComplete& to = *out.mutable_arrival_complete();
  put(*to.mutable_on(), from.on);
  to.set_step(from.step);
}

static void
get(const wire::ArrivalComplete& from, core::arrival_complete& to, checks& c) {
  get(from.on(), to.on, c);
  to.step = c.at_most(from.step(), epoch_max);
}

static void put(wire::JobMessage& out, const core::records_wanted& from) {
  wire::RecordsWanted& to = *out.mutable_records_wanted();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_after(), from.after);
}

static void
get(const wire::RecordsWanted& from, core::records_wanted& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.after(), to.after, c);
}

static void put(wire::JobMessage& out, const core::restorable& from) {
  wire::Restorable& to = *out.mutable_restorable();
  put(*to.mutable_on(), from.on);
  put(*to.mutable_checkpoint(), from.checkpoint);
  to.set_again(from.again);
}

static void get(const wire::Restorable& from, core::restorable& to, checks& c) {
  get(from.on(), to.on, c);
  get(from.checkpoint(), to.checkpoint, c);
  to.again = from.again();
}

static void put(wire::JobMessage& out, const core::remark& from) {
  wire::Remark& to = *out.mutable_remark();
  put(*to.mutable_on(), from.on);
  to.set_step(from.step);
  to.set_text(core::shown(from.text, core::remark_bytes_max));
  to.set_wanted(raw(from.wanted));
  to.set_waits(from.waits);
}

static void get(const wire::Remark& from, core::remark& to, checks& c) {
  get(from.on(), to.on, c);
  to.step = c.at_most(from.step(), epoch_max);
  c.text(from.text(), core::remark_bytes_max, to.text);
  c.id(from.wanted(), to.wanted);
  to.waits = from.waits();
}

static void put(wire::JobMessage& out, const core::stop_waiting& from) {
  put(*out.mutable_stop_waiting()->mutable_on(), from.on);
}

void put(wire::JobMessage& to, const core::job_message& from) {
  std::visit([&](const auto& what) { put(to, what); }, from);
}

void get(const wire::JobMessage& from, core::job_message& to, checks& c) {
  switch (from.body_case()) {
  case wire::JobMessage::kVote:
    return get(from.vote(), to.emplace<core::vote>(), c);
  case wire::JobMessage::kSeal:
    return get(from.seal(), to.emplace<core::seal>(), c);
  case wire::JobMessage::kHaveBlobs:
    return get(from.have_blobs().on(), to.emplace<core::have_blobs>().on, c);
  case wire::JobMessage::kProgress:
    return get(from.progress(), to.emplace<core::progress>(), c);
  case wire::JobMessage::kEvalResult:
    return get(from.eval_result(), to.emplace<core::eval_result>(), c);
  case wire::JobMessage::kCheckpointPublished:
    return get(from.checkpoint_published(),
               to.emplace<core::checkpoint_published>(), c);
  case wire::JobMessage::kDrainRequest:
    return get(from.drain_request().on(), to.emplace<core::drain_request>().on,
               c);
  case wire::JobMessage::kHaveCheckpoint:
    return get(from.have_checkpoint(), to.emplace<core::have_checkpoint>(), c);
  case wire::JobMessage::kShardsWritten:
    return get(from.shards_written(), to.emplace<core::shards_written>(), c);
  case wire::JobMessage::kStallReport:
    return get(from.stall_report(), to.emplace<core::stall_report>(), c);
  case wire::JobMessage::kArrivalWanted:
    return get(from.arrival_wanted(), to.emplace<core::arrival_wanted>(), c);
  case wire::JobMessage::kArrivalBegun:
    return get(from.arrival_begun(), to.emplace<core::arrival_begun>(), c);
  case wire::JobMessage::kArrivalComplete:
    return get(from.arrival_complete(), to.emplace<core::arrival_complete>(),
               c);
  case wire::JobMessage::kRecordsWanted:
    return get(from.records_wanted(), to.emplace<core::records_wanted>(), c);
  case wire::JobMessage::kRestorable:
    return get(from.restorable(), to.emplace<core::restorable>(), c);
  case wire::JobMessage::kRemark:
    return get(from.remark(), to.emplace<core::remark>(), c);
  case wire::JobMessage::kStopWaiting:
    return get(from.stop_waiting().on(), to.emplace<core::stop_waiting>().on,
               c);
  case wire::JobMessage::BODY_NOT_SET:
    break;
  }
  c.fail(errc::unknown);
}

} // namespace shoal::runtime::codec
