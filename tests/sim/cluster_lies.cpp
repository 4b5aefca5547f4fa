// tests/sim/cluster_lies.cpp -- peers that hold the key and lie, and members
// that stall jobs.
#include "cluster_world.hpp"
#include "runtime/core/cluster/credible.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace shoal::sim {

/// One peer sends another, over an existing connection, messages that the first
/// core never made.
void cluster_world::lie() {
  const std::size_t n = machines_.size();
  const int from = int(lie_random_.below(n));
  const int to = int(lie_random_.below(n));
  if (from == to || !machines_[std::size_t(from)].core
      || !machines_[std::size_t(to)].core || ends_.up[from][to] == 0)
    return;
  item d;
  d.what = happening::deliver;
  d.from = from;
  d.to = to;
  d.token = ends_.up[from][to];
  d.body = std::make_shared<const message>(false_message(from, to));
  push(std::move(d), millisecond);
}

message cluster_world::false_message(int from, int to) {
  const peer_id& liar = machines_[std::size_t(from)].id;
  view v = machines_[std::size_t(to)].core->current();
  const epoch base = v.number;
  const epoch out = base + lead_max + 1000; // too far, also a little later
  const epoch fars[] = {epoch_max, epoch_max - 1, out, out + lead_max};
  epoch far = fars[lie_random_.below(std::size(fars))];
  const ballot far_ballot{far, liar};
  const ballot near_ballot{1 + lie_random_.below(9), liar};
  switch (lie_random_.below(9)) {
  case 0:
    return prepare{v.shoal, base, far_ballot};
  case 1:
    return refused{
      v.shoal, base, {1, machines_[std::size_t(to)].id}, far_ballot};
  case 2:
    ++v.number;
    return cluster::accept{v.shoal, base, far_ballot, std::move(v)};
  case 3:
    v.number = lie_random_.below(2) == 0 ? base : far;
    return cluster::accept{v.shoal, base, near_ballot, std::move(v)};
  case 4:
    return heartbeat{v.shoal, far, 0};
  case 5: {
    change c;
    c.kind =
      lie_random_.below(2) == 0 ? change_kind::retry : change_kind::arrived;
    c.since = far;
    c.id = v.jobs.empty() ? 0 : v.jobs[0].id;
    return change_request{v.shoal, std::move(c)};
  }
  case 6: {
    join_request r;
    r.shoal = v.shoal;
    r.draft.id.peer = liar;
    r.draft.instance = machines_[std::size_t(from)].instance;
    r.floor = far;
    return r;
  }
  case 7:
    ++v.number;
    v.members[0].id.incarnation = far;
    return decided{std::move(v)};
  default:
    if (options_.bug == mutant::lies_with_near_numbers)
      far = base + 1 + lie_random_.below(lead_max);
    v.number = far;
    return decided{std::move(v)};
  }
}

/// Whether it has learned that itself, or a running peer's shoal has revoked
/// it.
bool cluster_world::is_truly_revoked(const machine& m) const {
  return m.revoked || std::ranges::any_of(machines_, [&](const machine& x) {
           return x.core && is_revoked(x.core->current(), m.id);
         });
}

/// Whether the dialled address answers that the dialler was revoked. That may
/// be true; or the answering machine was revoked itself, and knows the key that
/// the dialler still has.
bool cluster_world::calls_revoked(const item& i) const {
  const machine* m = i.to >= 0 ? &machines_[std::size_t(i.to)] : nullptr;
  const machine& f = machines_[std::size_t(i.from)];
  if (m == nullptr || blocked_[i.from][i.to] || blocked_[i.to][i.from]
      || is_revoked(f.core->current(), m->id))
    return false;
  if (m->core)
    return is_revoked(m->core->current(), f.id);
  return lies_ && m->revoked;
}

void cluster_world::turned_away(const item& i) {
  machine& m = machines_[std::size_t(i.to)];
  if (options_.print)
    std::printf("%9.3f m%d is called revoked by %s\n", double(now_) / 1e9, i.to,
                i.address.c_str());
  if (options_.bug == mutant::ends_at_one_word) {
    if (!is_truly_revoked(m))
      checker_.fail("a lie has ended m" + std::to_string(i.to));
    crash(i.to, false);
    return;
  }
  give(i.to, cluster::turned_away{i.address});
}

/// No peer admits it. That may happen while others are away or cut off; then it
/// is started again. Afterwards it may only happen to a revoked peer.
void cluster_world::shut_out(int i) {
  machine& m = machines_[std::size_t(i)];
  if (options_.print)
    std::printf("%9.3f m%d ends: nobody admits it\n", double(now_) / 1e9, i);
  const bool revoked = is_truly_revoked(m);
  const bool company = std::ranges::any_of(machines_, [&](const machine& x) {
    return &x != &m && x.core && x.core->seated() && may_meet(m, x);
  });
  if (!revoked && company && healed_at_ > 0
      && now_ > healed_at_ + config{}.shut_out_patience)
    checker_.fail("a lie has ended m" + std::to_string(i));
  m.revoked = m.revoked || revoked;
  crash(i, false);
  --result_.crashes;
  if (revoked)
    return;
  item s;
  s.what = happening::start;
  s.to = i;
  push(std::move(s), 100 * millisecond);
}

/// A member finds that another one stalls a job; at most twice, so that all is
/// settled in time.
void cluster_world::expel() {
  const machine& m = machines_[lie_random_.below(machines_.size())];
  if (!faults_ || !m.core || m.core->current().members.empty())
    return;
  const view& v = m.core->current();
  const peer_id who = v.members[lie_random_.below(v.members.size())].id.peer;
  const auto at = std::ranges::find(v.stalled, who, &stalled_peer::peer);
  if (who == m.id || (at != v.stalled.end() && at->times >= 2))
    return;
  give(int(&m - machines_.data()), expel_member{who, v.number});
}

/// Checks views as cores adopt them, before any disk: a returning peer has
/// waited.
void cluster_world::check_pauses(const action& a) {
  const auto* p = std::get_if<persist>(&a);
  const auto* r = p != nullptr ? std::get_if<view_record>(&p->what) : nullptr;
  if (r == nullptr)
    return;
  const view& v = r->current;
  for (const stalled_peer& s : v.stalled) {
    auto& [times, since] = expelled_[{v.shoal, s.peer}];
    const nanoseconds pause = config{}.stall_pause << (s.times - 1);
    if (s.times > times) {
      times = s.times;
      since = now_;
    } else if (s.times == times && now_ < since + pause
               && find_member(v, s.peer) != nullptr) {
      checker_.fail("a peer that held up a job is back before its pause");
    }
  }
}

} // namespace shoal::sim
