// runtime/core/cluster/credible.cpp -- the highest number in a message.
#include "runtime/core/cluster/credible.hpp"

#include <algorithm>

namespace shoal::core::cluster {

namespace {

/// Collects every epoch that our decisions would be compared with.
struct highest {
  epoch most = 0;

  void take(epoch e) { most = std::max(most, e); }
  void take(const job_entry& j) {
    take(j.changed);
    for (const island_mark& m : j.marks)
      take(m.since);
  }
  void take(const view& v) {
    take(v.number);
    for (const member& m : v.members)
      take(m.id.incarnation);
    for (const job_entry& j : v.jobs)
      take(j);
    for (const assignment& a : v.previous)
      for (const island_place& at : a.islands)
        take(at.since);
    for (const stalled_peer& s : v.stalled)
      take(s.since);
    for (const superseded_shoal& s : v.superseded)
      take(s.number);
    for (const epoch e : v.outages)
      take(e);
  }

  void operator()(const hello& m) {
    take(m.number);
    for (const superseded_shoal& s : m.superseded)
      take(s.number);
  }
  void operator()(const join_request& m) {
    take(m.floor);
    take(m.draft.id.incarnation);
  }
  void operator()(const join_answer&) {}
  void operator()(const heartbeat& m) { take(m.number); }
  void operator()(const heartbeat_ack& m) { take(m.number); }
  void operator()(const gossip& m) { take(m.number); }
  void operator()(const prepare& m) { take(m.base); }
  void operator()(const promise& m) {
    take(m.base);
    take(m.incarnation);
    if (m.value)
      take(*m.value);
  }
  void operator()(const accept& m) {
    take(m.base);
    take(m.value);
  }
  void operator()(const accepted& m) {
    take(m.base);
    take(m.incarnation);
  }
  void operator()(const refused& m) { take(m.base); }
  void operator()(const decided& m) { take(m.value); }
  void operator()(const view_request& m) { take(m.number); }
  void operator()(const change_request& m) {
    take(m.what.since);
    take(m.what.subject.incarnation);
    take(m.what.other.incarnation);
    take(m.what.job);
  }
  void operator()(const key_offer&) {}
  void operator()(const key_held&) {}
  void operator()(const key_request&) {}
};

} // namespace

bool credible(const message& m, epoch own) {
  highest h;
  std::visit(h, m);
  return h.most <= believed_max(own);
}

bool can_follow(const view& base, const view& next) {
  return next.shoal == base.shoal && next.cluster == base.cluster
         && next.number > base.number
         && next.number <= believed_max(base.number)
         && std::ranges::any_of(next.members, votes);
}

} // namespace shoal::core::cluster
