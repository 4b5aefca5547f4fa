// runtime/core/cluster/wishes.cpp -- builds a view's successor.
#include "runtime/core/cluster/wishes.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/credible.hpp"
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/cluster/membership.hpp" // the limits

#include <algorithm>
#include <map>
#include <utility>

namespace shoal::core::cluster {

bool speaks_of_island(const change& c) {
  return c.kind == change_kind::end_job && c.since != 0;
}

namespace {

member* find(view& v, const peer_id& id) {
  return const_cast<member*>(find_member(v, id));
}

std::size_t count(const view& v, bool running) {
  return std::size_t(std::ranges::count_if(v.jobs, [&](const job_entry& j) {
    return (j.state == job_state::running) == running;
  }));
}

/// Whether some other member votes, too.
bool may_stop_voting(const view& v, const member& m) {
  return std::ranges::any_of(v.members, [&](const member& x) {
    return votes(x) && x.id.peer != m.id.peer;
  });
}

void grant_join(view& v, const join_request& r) {
  if (is_revoked(v, r.draft.id.peer))
    return;
  member* old = find(v, r.draft.id.peer);
  if (old != nullptr && old->instance == r.draft.instance)
    return;
  member entry = r.draft;
  entry.id.incarnation = v.number;
  // A peer that has its votes is not going elsewhere. Any other peer might, so
  // it takes its seat only when it has been heard in this shoal.
  bool keeps_seat =
    r.seated && old != nullptr && old->state != member_state::joining;
  entry.state = keeps_seat ? member_state::active : member_state::joining;
  if (old != nullptr && !may_stop_voting(v, *old))
    entry.voter = true; // a shoal needs a voter
  if (old != nullptr) {
    *old = std::move(entry);
  } else if (v.members.size() < members_max
             && has_room(v, bytes_bound(entry))) {
    auto at = std::ranges::lower_bound(
      v.members, entry.id.peer, {}, [](const member& m) { return m.id.peer; });
    v.members.insert(at, std::move(entry)); // V-1
  }
}

cut_pair pair_of(const change& c) {
  auto [low, high] = std::minmax(c.subject, c.other);
  return {low, high};
}

bool holds(const view& v, const member_id& id) {
  const member* m = find_member(v, id.peer);
  return m != nullptr && m->id == id;
}

bool can_be_cut(const view& v, const cut_pair& p) {
  return p.low.peer != p.high.peer && holds(v, p.low) && holds(v, p.high);
}

void grant_cut(view& v, const change& c) {
  cut_pair p = pair_of(c);
  auto at = std::ranges::lower_bound(v.cuts, p);
  bool listed = at != v.cuts.end() && *at == p;
  if (c.kind == change_kind::mend && listed)
    v.cuts.erase(at);
  else if (c.kind == change_kind::cut && !listed && can_be_cut(v, p)
           && v.cuts.size() < cuts_max)
    v.cuts.insert(at, p); // V-4
}

/// Appends the new entry and forgets the oldest.
void remember(std::vector<peer_id>& list, const peer_id& id, std::size_t max) {
  std::erase(list, id);
  list.push_back(id);
  if (list.size() > max)
    list.erase(list.begin());
}

void grant_revoke(view& v, const change& c) {
  if (v.key != c.old_key)
    return; // a peer that was revoked meanwhile may know this key
  std::erase_if(v.members,
                [&](const member& m) { return m.id.peer == c.subject.peer; });
  remember(v.revoked, c.subject.peer, revoked_max);
  v.key = c.key;
  v.invites.clear(); // the revoked peer knows them
}

void grant_invite(view& v, const change& c) {
  if (std::ranges::find(v.invites, c.invite.key, &invitation::key)
      != v.invites.end())
    return;
  if (v.invites.size() >= invites_max) {
    auto old = std::ranges::find_if(
      v.invites, [](const invitation& i) { return i.used_by != peer_id{}; });
    v.invites.erase(old == v.invites.end() ? v.invites.begin() : old);
  }
  v.invites.push_back(c.invite);
}

bool was_removed(const view& v, job_id id) {
  return std::ranges::find(v.removed, id) != v.removed.end();
}

/// Removes an ended job from the list, for good.
void remove_job(view& v, job_id id) {
  std::erase_if(v.jobs, [id](const job_entry& j) { return j.id == id; });
  v.removed.push_back(id);
  if (v.removed.size() > jobs_removed_max)
    v.removed.erase(v.removed.begin());
}

/// A peer that was expelled although it answers comes back after a pause.
void remember_stall(view& v, const peer_id& id, bool afresh) {
  auto at = std::ranges::find(v.stalled, id, &stalled_peer::peer);
  stalled_peer s{id, 1, v.number};
  if (at != v.stalled.end()) {
    if (!afresh)
      s.times = std::min(at->times + 1, stall_times_max);
    v.stalled.erase(at);
  }
  v.stalled.push_back(s);
  if (v.stalled.size() > stalled_max)
    v.stalled.erase(v.stalled.begin());
}

/// Without the only voter no view could be decided: it stays, so that other
/// wishes are granted.
void grant_removal(view& v, const member* m, const change& c) {
  if (m == nullptr || !may_stop_voting(v, *m))
    return;
  if (c.kind == change_kind::expel)
    remember_stall(v, c.subject.peer, c.afresh);
  std::erase_if(v.members, [&](const member& x) { return x.id == c.subject; });
}

/// Whether, of two ends that two shoals have given one job, `end` counts: done
/// before any other, then the higher step.
bool outlives(const job_entry& end, const job_entry& other) {
  const auto rank = [](const job_entry& j) {
    return std::pair(j.state == job_state::done, j.done_step);
  };
  return rank(end) > rank(other);
}

/// Whether the end of a job elsewhere is to be listed here: nothing is known of
/// that job, or the listed end counts less.
bool is_to_be_listed(const view& v, const job_entry& end) {
  const job_entry* listed = find_job(v, end.id);
  if (listed == nullptr)
    return !was_removed(v, end.id) && has_room(v, bytes_bound(end));
  return listed->state != job_state::running && outlives(end, *listed);
}

void list_end(view& v, const job_entry& end) {
  if (!is_to_be_listed(v, end))
    return;
  auto at = std::ranges::lower_bound(v.jobs, end.id, {}, &job_entry::id);
  if (at == v.jobs.end() || at->id != end.id)
    at = v.jobs.insert(at, end); // V-2
  at->state = end.state;
  at->done_step = end.done_step;
  at->cause = end.cause;
  at->changed = v.number;
}

/// Whether the number of the job's pipelines is still that of which the change
/// speaks, and another one is wanted.
bool can_scale(const job_entry* j, const change& c) {
  return j != nullptr && j->state == job_state::running
         && j->kind == job_kind::serve && c.islands >= 1
         && marked(*j, mark_kind::scaled, 0) == c.since
         && islands_of(*j) != c.islands;
}

void grant_scale(view& v, const change& c) {
  const auto at = std::ranges::find(v.jobs, c.id, &job_entry::id);
  if (at == v.jobs.end() || !can_scale(&*at, c))
    return;
  job_entry scaled = *at;
  set_mark(scaled, {mark_kind::scaled, 0, v.number, c.islands});
  const std::size_t before = bytes_bound(*at), after = bytes_bound(scaled);
  if (after <= before || has_room(v, after - before))
    *at = std::move(scaled);
}

void set_draining(job_entry& job, epoch now) {
  set_mark(job, {mark_kind::draining, 0, now, 0});
}

void grant_submission(view& v, const job_entry& job) {
  if (job.state != job_state::running)
    return list_end(v, job);
  const job_entry* known = find_job(v, job.id);
  if (known == nullptr && !was_removed(v, job.id)
      && count(v, true) < jobs_running_max && has_room(v, bytes_bound(job))) {
    auto at = std::ranges::lower_bound(v.jobs, job.id, {}, &job_entry::id);
    at = v.jobs.insert(at, job); // V-2
    at->changed = v.number;
    const bool draining = is_draining(job);
    at->marks.clear(); // of places in another shoal
    if (draining)
      set_draining(*at, v.number);
  }
}

/// The mark that a change sets; nothing if it changes the whole job.
std::optional<island_mark> mark_of(const change& c) {
  island_mark out{mark_kind::retried, c.island, c.since, 0};
  if (c.kind == change_kind::retry)
    return out;
  out.kind = mark_kind::arrived;
  if (c.kind == change_kind::arrived)
    return out;
  if (!speaks_of_island(c) || c.state == job_state::failed)
    return std::nullopt;
  out.kind = c.state == job_state::done ? mark_kind::done : mark_kind::drained;
  out.step = c.done_step;
  return out;
}

/// Ends a job all of whose islands have ended. An end that is agreed on stays,
/// also if the island has another place later, for as long as others run.
void end_if_over(job_entry& j, const assignment& place, epoch now) {
  job_state state = job_state::done;
  std::uint64_t step = 0;
  for (std::uint32_t i = 0; i < place.islands.size(); ++i) {
    const auto end = std::ranges::find_if(j.marks, [&](const island_mark& m) {
      return m.island == i
             && (m.kind == mark_kind::done || m.kind == mark_kind::drained);
    });
    if (end == j.marks.end())
      return;
    if (end->kind == mark_kind::drained)
      state = job_state::cancelled;
    step = std::max(step, end->step);
  }
  j.state = state;
  j.done_step = step;
  j.changed = now;
}

/// Grants a change to a running job.
/// @param planned the assignments of the view before; null: no job has any
void grant_to_job(view& v, const change& c,
                  const std::vector<assignment>* planned) {
  const auto job = std::ranges::find(v.jobs, c.id, &job_entry::id);
  if (job == v.jobs.end() || job->state != job_state::running)
    return;
  if (const auto mark = mark_of(c)) {
    set_mark(*job, *mark);
    if (!speaks_of_island(c))
      return;
    if (planned != nullptr)
      if (const auto place =
            std::ranges::find(*planned, c.id, &assignment::job);
          place != planned->end())
        return end_if_over(*job, *place, v.number);
  }
  job->state = c.state;
  job->done_step = c.done_step;
  job->cause = c.cause;
  job->changed = v.number;
}

const model_version*
version_of(const std::vector<model_version>& all, std::uint64_t step) {
  const auto found = std::ranges::find(all, step, &model_version::step);
  return found == all.end() ? nullptr : &*found;
}

/// Whether the job can serve the version: a newer one than all others, while the
/// one that is to stay beside it is there.
bool can_serve(const job_entry& job, const change& c) {
  const auto all = served_versions(job);
  return job.kind == job_kind::serve && job.state == job_state::running
         && all.front().step < c.version.step
         && version_of(all, c.keeps) != nullptr;
}

/// Whether the job can let the former version go: the change names the newest one
/// twice.
bool can_release(const job_entry& job, const change& c) {
  const auto all = served_versions(job);
  return job.kind == job_kind::serve && job.state == job_state::running
         && all.size() > 1 && all.front() == c.version
         && c.keeps == c.version.step;
}

void set_version(job_entry& job, const change& c) {
  const auto all = served_versions(job);
  if (can_release(job, c))
    job.versions = {c.version};
  else if (can_serve(job, c))
    job.versions = {c.version, *version_of(all, c.keeps)};
}

void grant(view& v, const change& c, const std::vector<assignment>* planned) {
  member* m = find(v, c.subject.peer);
  if (m != nullptr && m->id != c.subject)
    m = nullptr;
  switch (c.kind) {
  case change_kind::submit_job:
    grant_submission(v, c.job);
    break;
  case change_kind::end_job:
  case change_kind::arrived:
  case change_kind::retry:
    grant_to_job(v, c, planned);
    break;
  case change_kind::drain_job:
    if (const auto j = std::ranges::find(v.jobs, c.id, &job_entry::id);
        j != v.jobs.end() && j->state == job_state::running && !is_draining(*j))
      set_draining(*j, v.number);
    break;
  case change_kind::version:
    if (const auto j = std::ranges::find(v.jobs, c.id, &job_entry::id);
        j != v.jobs.end())
      set_version(*j, c);
    break;
  case change_kind::scale_job:
    grant_scale(v, c);
    break;
  case change_kind::remove_job:
    if (const job_entry* j = find_job(v, c.id);
        j != nullptr && j->state != job_state::running)
      remove_job(v, c.id);
    break;
  case change_kind::leave:
    if (m != nullptr && m->state == member_state::active)
      m->state = member_state::leaving;
    break;
  case change_kind::expel: // still of its view, or it would be settled
  case change_kind::remove:
    grant_removal(v, m, c);
    break;
  case change_kind::update:
    if (m != nullptr) {
      m->device = c.device;
      m->addresses = c.addresses;
      m->networks = c.networks;
      if (c.voter || may_stop_voting(v, *m))
        m->voter = c.voter;
    }
    break;
  case change_kind::cut:
  case change_kind::mend:
    grant_cut(v, c);
    break;
  case change_kind::seat:
    if (m != nullptr && m->state == member_state::joining)
      m->state = member_state::active;
    break;
  case change_kind::revoke:
    grant_revoke(v, c);
    break;
  case change_kind::invite:
    grant_invite(v, c);
    break;
  case change_kind::redeem:
    for (invitation& i : v.invites)
      if (i.key == c.invite.key && i.used_by == peer_id{})
        i.used_by = c.subject.peer;
    break;
  }
}

/// Those that served do not push those that trained off the list, whose results may
/// still be fetched, nor the other way round: of each kind the newest half stays.
void forget_old_jobs(view& v) {
  while (count(v, false) > jobs_kept_max) {
    std::map<job_kind, std::size_t> ended;
    for (const job_entry& j : v.jobs)
      ended[j.kind] += j.state != job_state::running;
    const auto goes = [&](const job_entry& j) {
      return j.state != job_state::running
             && ended[j.kind] > jobs_kept_max / ended.size();
    };
    auto oldest = v.jobs.end();
    for (auto at = v.jobs.begin(); at != v.jobs.end(); ++at)
      if (goes(*at)
          && (oldest == v.jobs.end() || at->changed < oldest->changed))
        oldest = at;
    remove_job(v, oldest->id);
  }
}

view dissolved_view(const view& base, const merge_wish& m) {
  SHOAL_ASSERT(count(base, true) == 0 || m.has_our_jobs); // C-5
  view v = base;
  ++v.number;
  while (!v.jobs.empty())
    remove_job(v, v.jobs.back().id);
  v.previous.clear();
  v.cuts.clear();
  v.dissolved_into = m.into;
  v.dissolved_addresses = m.addresses;
  return v;
}

} // namespace

void remember_lapsed(const view& base, view& v) {
  for (const member& m : base.members)
    if (find_member(v, m.id.peer) == nullptr && !is_revoked(v, m.id.peer))
      remember(v.lapsed, m.id.peer, lapsed_max);
  std::erase_if(v.lapsed, [&](const peer_id& id) {
    return find_member(v, id) != nullptr || is_revoked(v, id);
  });
}

bool outdated(const change& c, const std::vector<assignment>& planned) {
  if (!speaks_of_island(c))
    return false;
  const auto at = std::ranges::find(planned, c.id, &assignment::job);
  return at != planned.end()
         && (c.island >= at->islands.size()
             || at->islands[c.island].since != c.since);
}

bool settled(const change& c, const view& v) {
  const member* m = find_member(v, c.subject.peer);
  if (m != nullptr && m->id != c.subject)
    m = nullptr;
  const job_entry* j = find_job(v, c.id);
  switch (c.kind) {
  case change_kind::submit_job:
    if (c.job.state != job_state::running)
      return !is_to_be_listed(v, c.job);
    return find_job(v, c.job.id) != nullptr || was_removed(v, c.job.id);
  case change_kind::end_job:
  case change_kind::arrived:
  case change_kind::retry: {
    if (j == nullptr || j->state != job_state::running)
      return true;
    const auto mark = mark_of(c);
    return mark && marked(*j, mark->kind, mark->island) >= mark->since;
  }
  case change_kind::drain_job:
    return j == nullptr || j->state != job_state::running || is_draining(*j);
  case change_kind::version:
    return j == nullptr || (!can_serve(*j, c) && !can_release(*j, c));
  case change_kind::scale_job:
    return !can_scale(j, c);
  case change_kind::remove_job:
    return j == nullptr || j->state == job_state::running;
  case change_kind::leave:
    return m == nullptr || m->state == member_state::leaving;
  case change_kind::remove:
    return m == nullptr;
  case change_kind::expel:
    return m == nullptr || v.number != c.since;
  case change_kind::update:
    return m == nullptr
           || (m->device == c.device && m->addresses == c.addresses
               && m->networks == c.networks
               && (m->voter == c.voter
                   || (!c.voter && !may_stop_voting(v, *m))));
  case change_kind::cut:
    return is_cut(v, c.subject.peer, c.other.peer) || v.cuts.size() >= cuts_max
           || !can_be_cut(v, pair_of(c));
  case change_kind::mend:
    return !is_cut(v, c.subject.peer, c.other.peer);
  case change_kind::seat:
    return m == nullptr || m->state != member_state::joining;
  case change_kind::revoke:
    return v.key != c.old_key;
  case change_kind::invite:
  case change_kind::redeem: {
    auto i = std::ranges::find(v.invites, c.invite.key, &invitation::key);
    return c.kind == change_kind::invite
             ? i != v.invites.end()
             : i == v.invites.end() || i->used_by != peer_id{};
  }
  }
  return true;
}

std::optional<view>
next_view(const view& base, const wishes& w,
          std::vector<assignment> (*plan_jobs)(const view&)) {
  auto submits = [](const wish& x) {
    return x.what.kind == change_kind::submit_job;
  };
  if (w.merge && (count(base, true) == 0 || w.merge->has_our_jobs)
      && std::ranges::none_of(w.changes, submits))
    return dissolved_view(base, *w.merge);

  view v = base;
  ++v.number;
  v.planner_version = planner_version;
  for (const auto& [peer, join] : w.joins)
    if (join.request.floor < believed_max(base.number))
      v.number = std::max(v.number, join.request.floor + 1); // C-2
  for (const auto& [id, since] : w.losses)
    if (!w.joins.contains(id.peer))
      std::erase_if(v.members,
                    [&id = id](const member& m) { return m.id == id; });
  for (const auto& [id, since] : w.seats)
    if (member* m = find(v, id.peer);
        m != nullptr && m->id == id && m->state == member_state::joining)
      m->state = member_state::active;
  for (const auto& [peer, join] : w.joins)
    grant_join(v, join.request);
  std::optional<std::vector<assignment>> planned; // computed if needed
  if (plan_jobs != nullptr && std::ranges::any_of(w.changes, [](const wish& x) {
        return speaks_of_island(x.what);
      }))
    planned = plan_jobs(base);
  for (const wish& x : w.changes)
    if ((x.what.kind != change_kind::expel || !settled(x.what, base))
        && (!planned || !outdated(x.what, *planned)))
      grant(v, x.what, planned ? &*planned : nullptr);
  forget_old_jobs(v);
  std::erase_if(v.cuts, [&](const cut_pair& p) { return !can_be_cut(v, p); });
  remember_lapsed(base, v);
  if (v.members == base.members && v.jobs == base.jobs && v.cuts == base.cuts
      && v.key == base.key && v.revoked == base.revoked
      && v.invites == base.invites)
    return std::nullopt;
  if (std::ranges::none_of(v.members, votes))
    return std::nullopt; // then nothing could be decided any more
  if (plan_jobs != nullptr)
    v.previous = planned ? *std::move(planned) : plan_jobs(base);
  if (bytes_bound(v) > view_bytes_max)
    v.previous.clear(); // the next plan may then move more than it needs to
  return v;
}

} // namespace shoal::core::cluster
