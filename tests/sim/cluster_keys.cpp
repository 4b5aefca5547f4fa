// tests/sim/cluster_keys.cpp -- admission of connections: keys and revocations.
#include "cluster_world.hpp"

#include <algorithm>

namespace shoal::sim {

namespace {

bool has(const auto& list, const auto& what) {
  return std::ranges::find(list, what) != list.end();
}

} // namespace

bool is_busy(const view& v) {
  return std::ranges::any_of(
    v.jobs, [](const auto& j) { return j.state == job_state::running; });
}

/// The rule of transport/tls/keyring.hpp.
bool cluster_world::admits(const machine& acceptor, const machine& dialler,
                           const cluster_key& proves) const {
  const view& v = acceptor.core->current();
  if (is_revoked(v, dialler.id)
      || (dialler.core && is_revoked(dialler.core->current(), acceptor.id)))
    return false;
  return proves == acceptor.keys.current || has(acceptor.keys.pending, proves)
         || (has(acceptor.keys.replaced, proves)
             && (find_member(v, dialler.id) != nullptr
                 || has(v.lapsed, dialler.id)));
}

bool cluster_world::may_meet(const machine& a, const machine& b) const {
  return admits(a, b, b.keys.current) || admits(b, a, a.keys.current);
}

namespace {

/// Whether `from` was made by force in place of `into`, which has survived and
/// joins `from` as soon as it has no job that `from` does not run.
bool waits_for_superseded(const view& from, const view& into) {
  return is_busy(into)
         && std::ranges::find(from.superseded, into.shoal,
                              &superseded_shoal::shoal)
              != from.superseded.end()
         && std::ranges::all_of(into.jobs, [&](const job_entry& j) {
              return j.state != job_state::running
                     || find_job(from, j.id) != nullptr;
            });
}

} // namespace

/// Whether one of these two shoals should have joined the other: it has no
/// jobs, it has not replaced the other's key (K-4), and a peer that may propose
/// it has met the other. A peer without a vote stays where the voters are, even
/// if those were revoked elsewhere.
bool cluster_world::should_join(const std::vector<int>& from,
                                const std::vector<int>& into) const {
  const auto at = [&](int i) -> const machine& {
    return machines_[std::size_t(i)];
  };
  if (is_busy(at(from[0]).core->current())
      || has(at(from[0]).keys.replaced, at(into[0]).keys.current))
    return false;
  if (waits_for_superseded(at(from[0]).core->current(),
                           at(into[0]).core->current()))
    return false;
  return std::ranges::any_of(from, [&](int a) {
    const member* m = find_member(at(a).core->current(), at(a).id);
    return m != nullptr && votes(*m) && std::ranges::any_of(into, [&](int b) {
             return may_meet(at(a), at(b));
           });
  });
}

/// Whether one of `gone`, which wait for a quorum, can meet the shoal that was
/// made by force in place of theirs.
bool cluster_world::joins_by_force(const std::vector<int>& gone,
                                   const std::vector<int>& live) const {
  const auto at = [&](int i) -> const machine& {
    return machines_[std::size_t(i)];
  };
  const view& v = at(live[0]).core->current();
  const bool superseded =
    std::ranges::find(v.superseded, at(gone[0]).core->current().shoal,
                      &superseded_shoal::shoal)
    != v.superseded.end();
  return superseded && std::ranges::any_of(gone, [&](int a) {
           return std::ranges::any_of(live, [&](int b) {
             const member* m = find_member(v, at(b).id);
             return m != nullptr && votes(*m) && may_meet(at(a), at(b))
                    && !has(at(a).keys.replaced, at(b).keys.current);
           });
         });
}

/// Whether its own shoal, or the others while it is alone, have revoked it.
bool cluster_world::sent_away(const machine& m) const {
  return m.core && std::ranges::any_of(machines_, [&](const machine& x) {
           return x.core && is_revoked(x.core->current(), m.id)
                  && (x.core->current().shoal == m.core->current().shoal
                      || m.core->current().members.size() == 1);
         });
}

/// Does what a node does at a new view.
void cluster_world::drop_strangers(int i) {
  const view& v = machines_[std::size_t(i)].core->current();
  for (int j = 0; j < int(machines_.size()); ++j)
    if (ends_.up[i][j] != 0 && is_revoked(v, machines_[std::size_t(j)].id))
      lose_connection(i, j);
}

} // namespace shoal::sim
