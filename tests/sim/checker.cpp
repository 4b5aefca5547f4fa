// tests/sim/checker.cpp -- the chain of views and its votes.
#include "checker.hpp"

#include <algorithm>

namespace shoal::sim {

using namespace core;

void checker::fail(std::string what) {
  if (failure_.empty())
    failure_ = std::move(what);
}

const view* checker::tip(const shoal_id& shoal) const {
  auto at = chains_.find(shoal);
  return at == chains_.end() ? nullptr : &at->second.rbegin()->second;
}

void checker::saw_vote(const peer_id& by, const cluster::vote_record& v) {
  if (!v.value)
    return;
  auto& slot = votes_[{v.shoal, v.base}][v.accepted];
  if (slot.by.empty())
    slot.value = *v.value;
  else if (!(slot.value == *v.value))
    fail("two values under one ballot for the successor of epoch "
         + std::to_string(v.base));
  if (std::ranges::find(slot.by, by) == slot.by.end())
    slot.by.push_back(by);
}

void checker::saw_view(const peer_id& by, const view& v) {
  auto& chain = chains_[v.shoal];
  auto known = chain.find(v.number);
  if (known != chain.end()) {
    if (!(known->second == v))
      fail("two different views of epoch " + std::to_string(v.number));
    return;
  }
  if (!chain.empty())
    check_successor(by, chain.rbegin()->second, v);
  else if (v.members.size() != 1 || v.members[0].id.peer != by)
    fail("a shoal was born with other members than its founder");
  chain.emplace(v.number, v);
  ++views_;
  merges_ += v.dissolved_into ? 1 : 0;
}

void checker::check_successor(const peer_id& by, const view& tip,
                              const view& v) {
  std::string where = "epoch " + std::to_string(v.number) + " after "
                      + std::to_string(tip.number) + ": ";
  if (v.number < tip.number)
    return fail(where + "a second chain of views");
  if (tip.dissolved_into)
    return fail(where + "a dissolved shoal goes on");
  bool voted = is_quorum(tip, {by});
  for (const auto& [ballot, slot] : votes_[{v.shoal, tip.number}])
    voted = voted || (slot.value == v && is_quorum(tip, slot.by));
  if (!voted)
    fail(where + "no quorum of the view before voted for it");
  const view* other = v.dissolved_into ? this->tip(*v.dissolved_into) : nullptr;
  const bool in_place =
    other != nullptr
    && std::ranges::find(other->superseded, v.shoal, &superseded_shoal::shoal)
         != other->superseded.end();
  for (const job_entry& j : tip.jobs)
    if (j.state == job_state::running && find_job(v, j.id) == nullptr
        && !(in_place && find_job(*other, j.id) != nullptr))
      fail(where + "a running job is lost");
  for (const job_entry& j : tip.jobs)
    if (find_job(v, j.id) == nullptr)
      gone_.insert(j.id);
  // A peer that comes from another shoal may list its end again.
  for (const job_entry& j : v.jobs)
    if (j.state == job_state::running && find_job(tip, j.id) == nullptr
        && gone_.contains(j.id))
      fail(where + "a job that was removed runs again");
  for (std::size_t i = 1; i < v.members.size(); ++i)
    if (!(v.members[i - 1].id.peer < v.members[i].id.peer))
      fail(where + "members are not sorted"); // V-1
  check_scaling(where, tip, v);
  check_admission(where, tip, v);
}

/// The number of a job's pipelines changes only with a mark of the very view, so
/// that of all proposals for one number at most one is granted.
void checker::check_scaling(const std::string& where, const view& tip,
                            const view& v) {
  for (const job_entry& j : v.jobs) {
    const job_entry* was = find_job(tip, j.id);
    if (was == nullptr)
      continue;
    const epoch before = marked(*was, mark_kind::scaled, 0);
    const epoch now = marked(j, mark_kind::scaled, 0);
    if (islands_of(j) == islands_of(*was) && now == before)
      continue;
    ++scalings_;
    if (now != v.number)
      fail(where + "the number of pipelines changed without a mark");
    if (j.kind != job_kind::serve)
      fail(where + "a job that trains was scaled");
  }
}

void checker::check_admission(const std::string& where, const view& tip,
                              const view& v) {
  for (const peer_id& id : v.revoked)
    if (find_member(v, id) != nullptr)
      fail(where + "a revoked peer is a member");
  for (const peer_id& id : tip.revoked)
    if (!is_revoked(v, id))
      fail(where + "a revocation is forgotten");
  if (tip.revoked.size() < v.revoked.size() && tip.key == v.key)
    fail(where + "a revocation has not replaced the key");
  for (const invitation& i : tip.invites) {
    auto at = std::ranges::find(v.invites, i.key, &invitation::key);
    if (at != v.invites.end() && i.used_by != peer_id{}
        && at->used_by != i.used_by)
      fail(where + "a token was used twice");
  }
}

} // namespace shoal::sim
