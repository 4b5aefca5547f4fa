// runtime/core/cluster/views.cpp -- adopting decided views, proposing others.
#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

using impl = membership::impl;

std::vector<peer_id> impl::reachable() const {
  std::vector<peer_id> out;
  for (const member& m : view_.members) {
    const contact* c = contacts_.find(m.id.peer);
    const bool heard =
      c != nullptr && c->shoal == view_.shoal && !detector_.suspects(m.id.peer);
    if (heard || (m.id.peer == config_.self.id.peer && seated_))
      out.push_back(m.id.peer);
  }
  return out;
}

/// Whether this process may be a copy of the one that has the seat: it has come
/// back with records of a seat, and the records may have been copied. While
/// that is possible it decides nothing. A peer with no other member in contact
/// may decide alone only when all peers that could know have been asked.
bool impl::may_be_a_copy() const {
  if (here().has_current_entry())
    return false;
  if (now_ < doubted_until_)
    return true;
  return now_ < started_at_ + config_.suspect_floor && reachable().size() == 1
         && std::ranges::any_of(view_.members, [this](const member& m) {
              return m.id.peer != config_.self.id.peer
                     && !contacts_.contains(m.id.peer)
                     && std::ranges::any_of(m.addresses, [this](const auto& a) {
                          return dialer_.is_open(a, here());
                        });
            });
}

void impl::update_phase() {
  cluster::phase was = phase_;
  if (phase_ == phase::gone)
    return;
  if (!seated_)
    phase_ = phase::homeless;
  else if (is_quorum(view_, reachable()) && !may_be_a_copy())
    phase_ = phase::member;
  else
    phase_ = phase::waiting;
  if (phase_ == was)
    return;
  contacts_.greet_all();
  if (phase_ == phase::homeless)
    homeless_since_ = now_;
}

/// Takes a view that was decided by any peers. Does nothing if it is old or
/// does not concern us.
void impl::adopt(view v) {
  if (v.number <= view_.number)
    return; // C-2
  const member* m = find_member(v, config_.self.id.peer);
  bool admitted = m != nullptr && m->instance == config_.self.instance;
  if (v.shoal == view_.shoal) {
    bool keeps = (seated_ && m != nullptr) || admitted;
    install(std::move(v), keeps);
  } else if (!seated_ && admitted && !v.dissolved_into) {
    install(std::move(v), true); // C-4: only from outside of every shoal
  }
}

/// The connected peers that `next` no longer contains. A peer counts as
/// expelled if it was removed or lost; one that leaves by itself must still
/// hear that we know.
impl::parting impl::who_parts(const view& next, bool seated_next) const {
  parting out;
  // Peers missing from a view of another shoal have not come yet. A peer that
  // is out itself, or on its way, judges no other.
  const bool judges = next.shoal == view_.shoal && seated_next
                      && !next.dissolved_into && !departure_.has_begun();
  for (const member& m : view_.members) {
    const peer_id& id = m.id.peer;
    const contact* c = contacts_.find(id);
    if (c == nullptr || find_member(next, id) != nullptr)
      continue;
    const bool leaves =
      m.state == member_state::leaving && !detector_.suspects(id);
    // Another process of the same peer may have come since. A revoked peer is
    // cut off by its key.
    const bool sent_away =
      judges && !leaves && c->instance == m.instance && !is_revoked(next, id);
    (sent_away ? out.expelled : out.others).push_back(id);
  }
  return out;
}

view_record impl::record() const {
  view_record out{view_, seated_, former_.views()};
  if (view_.dissolved_into) {
    out.given_up = given_up_;
    out.given_up_removed = given_up_removed_;
  }
  return out;
}

void impl::install(view v, bool seated_now) {
  bool was_seated = seated_;
  bool ends = v.dissolved_into.has_value();
  std::vector<peer_id> added;
  for (const member& m : v.members)
    if (find_member(view_, m.id.peer) == nullptr)
      added.push_back(m.id.peer);
  parting parted = who_parts(v, seated_now);
  const view before = std::exchange(view_, std::move(v));
  seated_ = seated_now && !ends;
  if (view_.shoal != before.shoal)
    former_.joined_another(now_);
  if (ends) { // this view has no jobs, and `before` may have some
    given_up_ = before.jobs;
    given_up_removed_ = before.removed;
  }
  hold_joins(before);
  if (view_.shoal != before.shoal)
    stalled_.forget();
  for (const peer_id& id : stalled_.follow(view_, now_))
    wishes_.joins.erase(id); // an earlier request
  dialer_.trust_all();
  if (ends)
    former_.remember(view_);
  else if (view_.shoal != before.shoal && !before.dissolved_into
           && !before.members.empty()
           && find_member(before, config_.self.id.peer) == nullptr)
    former_.remember(before); // it removed us: perhaps only we know that view
  if (!config_.embedded)
    out_->push_back(persist{record()}); // C-3
  agreement_.follow(view_, seated_, nullptr);
  detector_.follow(view_, now_);
  if (!parted.others.empty()) // they wait to hear that we know
    out_->push_back(
      send{std::move(parted.others), heartbeat{view_.shoal, view_.number, 0}});
  if (!parted.expelled.empty()) // an expelled peer that is awake may learn it
                                // from this
    out_->push_back(send{parted.expelled, decided{view_}});
  follow_key();
  out_->push_back(new_view{view_, !ends && here().has_current_entry()});
  for (const peer_id& id : parted.expelled)
    out_->push_back(disconnect{id});
  if (ends) {
    out_->push_back(dissolved{*view_.dissolved_into});
    connect_to(dialer_.dial_once(view_.dissolved_addresses, here()));
  }
  for (const peer_id& id : added)
    if (contacts_.contains(id))
      detector_.link_up(id, now_, *out_);
  contacts_.greet_all();
  if (was_seated && !seated_ && !ends && !departure_.is_at_once()
      && view_.number > before.number)
    say("expelled from the shoal at epoch " + std::to_string(view_.number)
        + "; asking to be admitted again");
  wishes_.merge.reset();
  if (view_.shoal != before.shoal)
    drop_ends();
  drop_outdated();
  if (view_.shoal != before.shoal && seated_)
    bring_jobs(before);
  departure_.follow(here().entry() == nullptr && !ends && was_seated);
  retry_at_ = 0;
  detector_.beat_now();
  update_phase();
}

/// Drops wishes that a job ends: it may go on in the shoal that was joined, which
/// nobody has asked.
void impl::drop_ends() {
  std::erase_if(wishes_.changes, [this](const cluster::wish& w) {
    const bool drains = w.what.kind == change_kind::drain_job;
    const job_entry* job = find_job(view_, w.what.id);
    if (drains && job != nullptr && job->state == job_state::running)
      say("job " + job->name
          + " was to end in the shoal that this peer has left; "
            "in the one that it has joined it goes on: `shoal cancel` ends it "
            "there");
    return drains || w.what.kind == change_kind::end_job;
  });
}

/// Drops wishes of ours for places that islands no longer have: no view would
/// grant them.
void impl::drop_outdated() {
  auto of_island = [](const cluster::wish& w) {
    return speaks_of_island(w.what);
  };
  if (config_.plan_jobs == nullptr
      || std::ranges::none_of(wishes_.changes, of_island))
    return;
  const auto planned = config_.plan_jobs(view_);
  std::erase_if(wishes_.changes, [&](const cluster::wish& w) {
    return outdated(w.what, planned);
  });
}

/// After a loss, if jobs go on without the lost members.
void impl::hold_joins(const view& before) {
  const bool lost =
    before.shoal == view_.shoal
    && std::ranges::any_of(before.members, [this](const member& m) {
         return m.state == member_state::active
                && find_member(view_, m.id.peer) == nullptr;
       });
  if (!lost || !seated_ || running_jobs(view_) == 0
      || config_.plan_jobs == nullptr)
    return;
  join_not_before_ = jobs_wait(config_.plan_jobs(view_)) ? 0 : now_ + join_hold;
}

void impl::found_alone(std::vector<job_entry> jobs,
                       std::vector<assignment> previous,
                       std::vector<superseded_shoal> superseded) {
  install(alone(std::move(jobs), std::move(previous), std::move(superseded)),
          true);
}

/// The first view of a shoal of this peer alone.
view impl::alone(std::vector<job_entry> jobs, std::vector<assignment> previous,
                 std::vector<superseded_shoal> superseded) {
  view v;
  const epoch step = superseded.empty() ? 1 : force_skip;
  v.number = std::min(view_.number + step, epoch_max);
  v.cluster = config_.cluster;
  v.jobs = std::move(jobs);
  // A view that dissolves lists as removed what was only given up.
  v.removed = view_.dissolved_into ? given_up_removed_ : view_.removed;
  v.key = key_exchange_.keys().to_found_with(view_);
  v.revoked = view_.revoked;
  v.lapsed = view_.lapsed;
  v.previous = std::move(previous);
  v.superseded = std::move(superseded);
  member self = config_.self;
  self.id.incarnation = v.number;
  self.voter = true; // a shoal needs a voter
  self.state = member_state::active;
  v.members.push_back(std::move(self));
  remember_lapsed(view_, v); // they may follow, whatever became of the key
  v.shoal = config_.name_shoal(v, random_.next());
  return v;
}

/// Follows our own decision and sends it to all peers that it concerns.
void impl::take_decision() {
  std::optional<view> v = agreement_.take_decided();
  if (!v)
    return;
  std::vector<peer_id> to;
  for (const auto& [id, c] : contacts_)
    if (find_member(view_, id) != nullptr || find_member(*v, id) != nullptr)
      to.push_back(id);
  adopt(*v);
  SHOAL_ASSERT(view_.number == v->number);
  if (!to.empty())
    out_->push_back(send{std::move(to), decided{std::move(*v)}});
}

void impl::wish(change c) {
  for (const auto& w : wishes_.changes)
    if (w.what == c)
      return;
  wishes_.changes.push_back({std::move(c), true, now_, time_max});
}

void impl::refresh_wishes() {
  refresh_losses();
  refresh_seats();
  refresh_cuts();
  const member* self = here().entry();
  if (seated_ && self != nullptr && !here().has_current_entry()) {
    auto [at, fresh] = wishes_.joins.try_emplace(self->id.peer);
    at->second.request = make_request(view_.shoal);
    at->second.until = time_max;
    if (fresh)
      at->second.since = now_;
  }
  if (seated_ && here().has_current_entry()) {
    change c;
    c.kind = change_kind::update;
    c.subject = self->id;
    c.device = config_.self.device;
    c.addresses = config_.self.addresses;
    c.networks = config_.self.networks;
    c.voter = config_.self.voter && !config_.embedded;
    if (!settled(c, view_))
      wish(std::move(c));
  }
  drop_settled();
  choose_merge();
}

void impl::refresh_losses() {
  std::map<member_id, nanoseconds> losses;
  if (seated_)
    for (const member_id& id : detector_.confirmed()) {
      auto old = wishes_.losses.find(id);
      losses[id] = old == wishes_.losses.end() ? now_ : old->second;
    }
  wishes_.losses = std::move(losses);
}

/// Updates our wishes about cuts between us and others.
void impl::refresh_cuts() {
  std::vector<change> now;
  auto about = [&](change_kind kind, const member_id& other) {
    change c;
    c.kind = kind;
    c.subject = here().entry()->id;
    c.other = other;
    now.push_back(std::move(c));
  };
  if (seated_ && here().has_current_entry() && phase_ == phase::member) {
    for (const member_id& id : detector_.cut_off(now_))
      about(change_kind::cut, id);
    const peer_id& self = config_.self.id.peer;
    for (const cut_pair& c : view_.cuts)
      if (c.low.peer == self || c.high.peer == self) {
        const member_id& other = c.low.peer == self ? c.high : c.low;
        if (detector_.well(other.peer, now_))
          about(change_kind::mend, other);
      }
  }
  std::erase_if(wishes_.changes, [&](const cluster::wish& w) {
    bool cut =
      w.what.kind == change_kind::cut || w.what.kind == change_kind::mend;
    return w.own && cut && std::ranges::find(now, w.what) == now.end();
  });
  for (change& c : now)
    if (!settled(c, view_))
      wish(std::move(c));
}

void impl::refresh_seats() {
  std::map<member_id, nanoseconds> seats;
  for (const member& m : view_.members) {
    if (m.state != member_state::joining)
      continue;
    const contact* c = contacts_.find(m.id.peer);
    if (c == nullptr || c->instance != m.instance || c->shoal != view_.shoal
        || c->number < m.id.incarnation)
      continue;
    auto old = wishes_.seats.find(m.id);
    seats[m.id] = old == wishes_.seats.end() ? now_ : old->second;
  }
  wishes_.seats = std::move(seats);
}

void impl::drop_settled() {
  std::erase_if(wishes_.changes, [&](const cluster::wish& w) {
    if (settled(w.what, view_)) {
      if (w.own)
        key_exchange_.settled(w.what, view_, *out_);
      return true;
    }
    if (now_ >= w.until)
      return true;
    if (w.what.kind != change_kind::submit_job
        || w.what.job.state != job_state::running)
      return false;
    std::string why;
    if (running_jobs(view_) >= jobs_running_max)
      why =
        "the shoal already runs " + std::to_string(jobs_running_max) + " jobs";
    else if (!has_room(view_, bytes_bound(w.what.job)))
      why = no_room;
    if (w.own && !why.empty())
      out_->push_back(rejected{why, w.what.job.id});
    return !why.empty();
  });
  std::erase_if(wishes_.joins, [&](const auto& j) {
    const member* m = find_member(view_, j.first);
    return now_ >= j.second.until || j.second.request.shoal != view_.shoal
           || (m != nullptr && m->instance == j.second.request.draft.instance);
  });
}

/// How many voters in contact come before us. Every view has another order, so
/// that no member is always the first.
std::size_t impl::rank() const {
  std::uint64_t own = turn_of(view_.number, config_.self.id.peer);
  std::size_t before = 0;
  for (const peer_id& id : reachable())
    before += turn_of(view_.number, id) < own && votes(*find_member(view_, id));
  return before;
}

/// When the earliest wish is due: after a window that gathers others and, for
/// changes that all peers learn at the same time, after the turns before ours.
nanoseconds impl::wishes_due() const {
  nanoseconds due = time_max;
  if (!here().has_vote() || phase_ != phase::member)
    return due;
  bool in_turn = !wishes_.losses.empty() || !wishes_.seats.empty()
                 || !wishes_.joins.empty() || wishes_.merge;
  nanoseconds turn = in_turn ? nanoseconds(rank()) * config_.rank_delay : 0;
  nanoseconds window = config_.batch_window;
  nanoseconds others = detector_.unstable() ? unstable_patience : 0;
  for (const auto& [id, since] : wishes_.losses)
    due = std::min(due, since + config_.loss_window + turn + others);
  for (const auto& [id, since] : wishes_.seats)
    due = std::min(due, since + window + turn);
  for (const auto& [id, j] : wishes_.joins) {
    const nanoseconds ripe = j.since + window + (j.request.seated ? turn : 0);
    const bool held = find_member(view_, id) == nullptr;
    due = std::min(due, held ? std::max(ripe, join_not_before_) : ripe);
  }
  if (view_.members.size() == 1)
    window = 0; // there is no other voter to wait for
  for (const auto& w : wishes_.changes)
    due = std::min(due, w.since + window);
  if (wishes_.merge)
    due = std::min(due, wishes_.merge->since + window
                          + (view_.members.size() == 1 ? 0 : turn));
  return due;
}

/// A process with an entry of its own has been there since that entry's view:
/// the shoal was not gone in any view from there on. One that still uses the
/// entry of the process before knows of no other that stayed.
void impl::note_outage(view& next) const {
  const member* self = here().entry();
  if (here().has_current_entry())
    std::erase_if(next.outages,
                  [&](epoch e) { return e >= self->id.incarnation; });
  else
    next.outages.push_back(view_.number);
  if (next.outages.size() > outages_max)
    next.outages.erase(next.outages.begin());
}

void impl::propose() {
  if (!here().has_vote() || phase_ != phase::member
      || !agreement_.may_propose(now_) || view_.number >= epoch_max)
    return;
  bool ripe = wishes_due() <= now_;
  if (!ripe && !agreement_.unfinished())
    return;
  std::optional<view> next = next_view(view_, wishes_, config_.plan_jobs);
  if (!next && agreement_.unfinished()) {
    next = view_; // never chosen: the accepted value takes its place
    ++next->number;
  }
  if (!next)
    return;
  note_outage(*next);
  agreement_.propose(std::move(*next), now_, *out_);
}

/// Sends the wishes of a peer without a vote to a voter, to propose them.
void impl::forward_changes() {
  if (here().has_vote() || !seated_ || now_ < retry_at_)
    return;
  std::vector<peer_id> to;
  for (const peer_id& id : reachable())
    if (id != config_.self.id.peer && votes(*find_member(view_, id)))
      to.push_back(id);
  if (to.empty())
    return;
  bool sent = false;
  for (const auto& w : wishes_.changes)
    if (w.own) {
      send_to(to[attempts_ % to.size()], change_request{view_.shoal, w.what});
      sent = true;
    }
  if (sent) {
    ++attempts_;
    retry_at_ = now_ + retry_interval;
  }
}

} // namespace shoal::core::cluster
