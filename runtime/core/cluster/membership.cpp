// runtime/core/cluster/membership.cpp -- events in, time, actions out.
#include "runtime/core/cluster/membership.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/credible.hpp"
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/cluster/membership_impl.hpp"
#include "runtime/core/text/shown.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

membership::membership(config c) : impl_(std::make_unique<impl>(std::move(c))) {
}
membership::~membership() = default;
membership::membership(membership&&) noexcept = default;

void membership::step(const event& e, nanoseconds now, actions& out) {
  impl_->step(e, now, out);
}
const view& membership::current() const {
  return impl_->view_;
}
cluster::phase membership::phase() const {
  return impl_->phase_;
}
bool membership::seated() const {
  return impl_->seated_;
}
std::vector<peer_id> membership::reachable() const {
  return impl_->reachable();
}

membership::impl::impl(config c)
  : config_(std::move(c)), random_(config_.seed),
    agreement_({config_.self.id.peer, random_.next(), !config_.embedded,
                config_.ballot_timeout}),
    detector_({config_.self.id.peer, config_.heartbeat_interval,
               config_.suspect_floor}),
    former_(config_.self.id.peer),
    stalled_(
      {config_.stall_pause, config_.stall_pause_max, config_.stall_memory},
      config_.plan_jobs),
    dialer_({config_.seeds, config_.embedded, config_.shut_out_patience}),
    key_exchange_({config_.embedded, config_.offer_patience, config_.offer_max},
                  key_ring(config_.key, config_.digest_key)),
    departure_(config_.leave_patience, config_.alone_patience) {
  SHOAL_ASSERT(config_.name_shoal != nullptr);
}

void membership::impl::step(const event& e, nanoseconds now, actions& out) {
  if (phase_ == phase::gone)
    return;
  SHOAL_ASSERT((phase_ == phase::created) == std::holds_alternative<start>(e));
  now_ = now;
  out_ = &out;
  bool nothing_new = quiet(e);
  std::visit([this](const auto& x) { on(x); }, e);
  if (nothing_new)
    ; // its effect matters only at the next tick
  else if (may_wait(e))
    ask_for_tick_at(settled_at_ + pace());
  else
    settle();
  out_ = nullptr;
}

nanoseconds membership::impl::pace() const {
  return config_.settle_pace * nanoseconds(view_.members.size());
}

/// Whether `e` is a heartbeat, or its answer, between members whose views it
/// does not change: nearly all events in a large shoal.
bool membership::impl::quiet(const event& e) const {
  const auto* r = std::get_if<received>(&e);
  if (r == nullptr || now_ >= tick_asked_ || detector_.suspects(r->from))
    return false;
  auto known = [&](const shoal_id& shoal, epoch number) {
    const contact* c = contacts_.find(r->from);
    return shoal == view_.shoal && number == view_.number && c != nullptr
           && c->shoal == shoal && c->number == number;
  };
  if (const auto* m = std::get_if<heartbeat>(&r->what))
    return known(m->shoal, m->number);
  if (const auto* m = std::get_if<heartbeat_ack>(&r->what))
    return known(m->shoal, m->number);
  return false;
}

/// Whether the evaluation of `e` can wait, since one has just been done: then
/// many events at once cost little more than one.
bool membership::impl::may_wait(const event& e) const {
  bool of_network = std::holds_alternative<received>(e)
                    || std::holds_alternative<peer_up>(e)
                    || std::holds_alternative<peer_down>(e)
                    || std::holds_alternative<connect_failed>(e)
                    || std::holds_alternative<turned_away>(e)
                    || std::holds_alternative<doubted>(e)
                    || std::holds_alternative<discovered>(e)
                    || std::holds_alternative<reached>(e);
  return of_network && now_ < settled_at_ + pace() && !agreement_.has_decided();
}

/// Evaluates what follows from the state alone, whatever the event was.
void membership::impl::settle() {
  settled_at_ = now_;
  take_decision();
  agreement_.expect_round_trip(detector_.round_trip());
  agreement_.on_tick(now_, *out_);
  detector_.on_tick(now_, *out_);
  update_phase();
  follow_superseding();
  refresh_leaving();
  if (phase_ != phase::gone)
    end_if_shut_out();
  if (phase_ == phase::gone)
    return;
  follow_key();
  refresh_offer();
  refresh_wishes();
  propose();
  // A shoal of one decides at once and may then decide more, but not for ever:
  // every decision grants a wish.
  take_decision();
  update_phase();
  ask_for_entry();
  forward_changes();
  say_hellos();
  connect_to(dialer_.dial_due(here(), random_));
  say_waiting();
  linger();
  hand_on_if_due();
  if (phase_ != phase::gone)
    ask_for_tick();
}

void membership::impl::on(const start& e) {
  started_at_ = now_;
  if (e.stored.keys)
    key_exchange_.keys().restore(*e.stored.keys);
  if (!e.stored.view) {
    found_alone();
    return;
  }
  view_ = e.stored.view->current;
  if (view_.number > believed_max(view_.number))
    say("the stored view has number " + std::to_string(view_.number)
        + ", which a lying peer has made up: nothing can be decided after it. "
          "Move the data directories of this shoal away");
  seated_ = e.stored.view->seated;
  former_.restore(e.stored.view->former);
  given_up_ = e.stored.view->given_up;
  given_up_removed_ = e.stored.view->given_up_removed;
  agreement_.follow(view_, seated_, e.stored.vote ? &*e.stored.vote : nullptr);
  detector_.follow(view_, now_);
  detector_.be_patient_until(now_ + config_.suspect_floor);
  stalled_.follow(view_, now_);
  phase_ = seated_ ? phase::waiting : phase::homeless;
  homeless_since_ = now_;
  former_.joined_another(now_);
  say_waiting_at_ = now_ + config_.suspect_floor;
  out_->push_back(new_view{view_, false});
  connect_to(dialer_.dial_once(view_.dissolved_addresses, here()));
}

void membership::impl::on(const peer_up& e) {
  if (e.peer == config_.self.id.peer)
    return;
  if (contacts_.contains(e.peer))
    on(peer_down{e.peer});
  if (contacts_.add(e.peer, e.instance))
    detector_.link_up(e.peer, now_, *out_);
}

void membership::impl::on(const peer_down& e) {
  if (!contacts_.contains(e.peer))
    return;
  std::vector<std::string> addresses = contacts_.remove(e.peer);
  detector_.link_down(e.peer);
  if (e.peer != config_.self.id.peer)
    wishes_.joins.erase(e.peer);
  const member* m = find_member(view_, e.peer);
  if (m != nullptr)
    addresses = m->addresses;
  connect_to(dialer_.redial(addresses, m == nullptr, here()));
}

void membership::impl::on(const connect_failed& e) {
  dialer_.failed(e.address, now_);
  for (const member& m : view_.members)
    if (!contacts_.contains(m.id.peer)
        && std::ranges::find(m.addresses, e.address) != m.addresses.end())
      detector_.refused(m, e.address, now_, *out_);
}

void membership::impl::on(const received& e) {
  if (!contacts_.contains(e.from))
    return;
  if (credible(e.what, view_.number))
    return std::visit([&](const auto& m) { on(e.from, m); }, e.what);
  if (!std::exchange(warned_far_, true))
    say("peer " + short_name(e.from) + " names views far above ours (number "
        + std::to_string(view_.number)
        + "), which no honest peer does: such messages are ignored");
}

void membership::impl::on(const submit_job& e) {
  auto refuse = [&](std::string why) {
    out_->push_back(rejected{std::move(why), e.job.id});
  };
  if (e.job.run_json.size() > run_json_bytes_max)
    return refuse("the job's configuration is longer than "
                  + std::to_string(run_json_bytes_max) + " bytes");
  change c;
  c.kind = change_kind::submit_job;
  c.job = e.job;
  c.job.state = job_state::running;
  if (settled(c, view_))
    return refuse("there is or was a job of this id");
  if (running_jobs(view_) >= jobs_running_max)
    return refuse("the shoal already runs " + std::to_string(jobs_running_max)
                  + " jobs");
  if (!has_room(view_, bytes_bound(e.job)))
    return refuse(no_room);
  if (wishes_.changes.size() >= wishes_max)
    return refuse("too many changes wait for agreement");
  wish(std::move(c));
}

void membership::impl::on(const withdraw_job& e) {
  std::erase_if(wishes_.changes, [&](const cluster::wish& w) {
    return w.own && w.what.kind == change_kind::submit_job
           && w.what.job.id == e.job;
  });
}

void membership::impl::on(const set_job_state& e) {
  const job_entry* j = find_job(view_, e.id);
  if (j == nullptr) {
    out_->push_back(rejected{"no such job in the agreed view", e.id});
    return;
  }
  if (j->state != job_state::running || e.state == job_state::running)
    return;
  change c;
  c.kind = change_kind::end_job;
  c.id = e.id;
  c.state = e.state;
  c.done_step = e.done_step;
  c.cause = shown(e.cause, limits::job_cause_bytes_max);
  c.island = e.island;
  c.since = e.since;
  if (speaks_of_island(c) && config_.plan_jobs != nullptr
      && outdated(c, config_.plan_jobs(view_)))
    return;
  wish(std::move(c));
}

void membership::impl::on(const remove_job& e) {
  const job_entry* j = find_job(view_, e.id);
  if (j == nullptr || j->state == job_state::running) {
    out_->push_back(rejected{j == nullptr ? "no such job in the agreed view"
                                          : "the job has not ended",
                             e.id});
    return;
  }
  change c;
  c.kind = change_kind::remove_job;
  c.id = e.id;
  wish(std::move(c));
}

void membership::impl::on(const drain_job& e) {
  change c;
  c.kind = change_kind::drain_job;
  c.id = e.id;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const scale_job& e) {
  change c;
  c.kind = change_kind::scale_job;
  c.id = e.id;
  c.islands = e.islands;
  c.since = e.since;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const retry_job& e) {
  change c;
  c.kind = change_kind::retry;
  c.id = e.id.job;
  c.island = e.id.index;
  c.since = e.since;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const expel_member& e) {
  const member* m = find_member(view_, e.peer);
  if (m == nullptr)
    return;
  change c;
  c.kind = change_kind::expel;
  c.subject = m->id;
  c.since = e.number;
  c.afresh = stalled_.was_well(e.peer, now_);
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const serve_version& e) {
  change c;
  c.kind = change_kind::version;
  c.id = e.id;
  c.version = e.version;
  c.keeps = e.keeps;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const job_arrived& e) {
  change c;
  c.kind = change_kind::arrived;
  c.id = e.id.job;
  c.island = e.id.index;
  c.since = e.since;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const update_profile& e) {
  config_.self.device = e.device;
  if (!e.addresses.empty())
    config_.self.addresses = e.addresses;
  config_.self.networks = e.networks;
}

void membership::impl::on(const update_addresses& e) {
  config_.self.addresses = e.addresses;
}

void membership::impl::on(const revoke_peer& e) {
  key_exchange_.revoke(e, here(), *out_);
}

void membership::impl::on(const add_invite& e) {
  if (wishes_.changes.size() >= wishes_max)
    return;
  change c;
  c.kind = change_kind::invite;
  c.invite = e.invite;
  wish(std::move(c));
}

void membership::impl::on(const redeem_invite& e) {
  if (wishes_.changes.size() >= wishes_max)
    return;
  change c;
  c.kind = change_kind::redeem;
  c.invite.key = e.token;
  c.subject.peer = e.peer;
  if (!settled(c, view_))
    wish(std::move(c));
}

void membership::impl::on(const withdraw_invite& e) {
  std::erase_if(wishes_.changes, [&](const cluster::wish& w) {
    return w.own && w.what.kind == change_kind::invite
           && w.what.invite.key == e.token;
  });
}

void membership::impl::follow_key() {
  if (key_exchange_.follow(here(), *out_))
    key_exchange_.request(here(), reachable(), *out_);
}

void membership::impl::refresh_offer() {
  if (!key_exchange_.is_offering())
    return;
  if (auto revocation = key_exchange_.go_on(here(), reachable(), *out_))
    wish(std::move(*revocation));
}

void membership::impl::say_waiting() {
  // While our identity is in doubt we do not wait for a quorum, and `recover
  // --force` is refused.
  if (phase_ != phase::waiting || now_ < doubted_until_) {
    say_waiting_at_ = time_max;
    return;
  }
  if (say_waiting_at_ == time_max)
    say_waiting_at_ = now_ + config_.suspect_floor;
  if (now_ < say_waiting_at_)
    return;
  say_waiting_at_ = now_ + config_.waiting_period;
  waiting_for w;
  w.number = view_.number;
  std::vector<peer_id> here = reachable();
  for (const member& m : view_.members)
    if (votes(m) && std::ranges::find(here, m.id.peer) == here.end())
      w.missing.push_back(m);
  out_->push_back(std::move(w));
}

void membership::impl::ask_for_tick() {
  nanoseconds at = std::min(detector_.deadline(), agreement_.deadline());
  auto soon = [&](nanoseconds t) {
    if (t > now_)
      at = std::min(at, t);
  };
  soon(wishes_due());
  soon(agreement_.quiet_until());
  soon(say_waiting_at_);
  if (seated_ && !here().has_current_entry()) {
    soon(doubted_until_);
    soon(started_at_ + config_.suspect_floor);
  }
  soon(departure_.deadline(now_));
  if (phase_ == phase::homeless)
    soon(homeless_since_ + config_.homeless_patience);
  soon(retry_at_);
  soon(former_.due());
  soon(key_exchange_.deadline(now_));
  soon(contacts_.greeting_due(now_));
  soon(dialer_.deadline(here()));
  at = std::max(at, now_ + milliseconds);
  if (at == time_max || (at == tick_asked_ && tick_asked_ > now_))
    return;
  tick_asked_ = at;
  out_->push_back(need_tick_at{at});
}

/// Requests a tick not later than `at`.
void membership::impl::ask_for_tick_at(nanoseconds at) {
  at = std::max(at, now_ + 1);
  if (tick_asked_ > now_ && tick_asked_ <= at)
    return;
  tick_asked_ = at;
  out_->push_back(need_tick_at{at});
}

} // namespace shoal::core::cluster
