// runtime/core/cluster/force.cpp -- a shoal in place of one that has lost its
// quorum, and the peers of that one when they return.
//
// `recover --force` is a person's word that the quorum is gone for good. If it
// was not, two shoals run the same jobs. So the new shoal's views name the old
// one, and the old one's peers go over: each by itself while it waits for its
// quorum; all together, by a view that dissolves their shoal, if they are one.
// A quorum of which somebody was never gone has outlived the force: it keeps
// its jobs, says that there are two shoals, and goes over when it has none.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

using impl = membership::impl;

void impl::on(const recover_force&) {
  if (phase_ != phase::waiting) {
    out_->push_back(
      rejected{"this peer does not wait for a quorum; nothing to recover"});
    return;
  }
  if (now_ < doubted_until_) {
    out_->push_back(rejected{"another process has this peer's identity"});
    return;
  }
  say("a new shoal by force, without the quorum of epoch "
      + std::to_string(view_.number));
  std::vector<assignment> previous;
  if (config_.plan_jobs != nullptr)
    previous = config_.plan_jobs(view_);
  std::vector<superseded_shoal> known = superseded();
  known.push_back({view_.shoal, view_.number});
  if (known.size() > superseded_max)
    known.erase(known.begin());
  found_alone(view_.jobs, std::move(previous), std::move(known));
}

/// By our shoal, and by those of ours that have gone over to it; not the shoal
/// that such a one has come back to.
std::vector<superseded_shoal> impl::superseded() const {
  std::vector<superseded_shoal> out;
  for (const view& v : former_)
    for (const superseded_shoal& s : v.superseded)
      if (v.dissolved_into && *v.dissolved_into != s.shoal)
        out.push_back(s);
  out.insert(out.end(), view_.superseded.begin(), view_.superseded.end());
  std::erase_if(out, [this](const auto& s) { return s.shoal == view_.shoal; });
  if (out.size() > superseded_max)
    out.erase(out.begin(), out.end() - superseded_max);
  return out;
}

/// What the shoal of `l` says of ours, if it was made in its place.
const superseded_shoal* impl::supersedes_ours(const link& l) const {
  if (!l.said || l.said->shoal == view_.shoal)
    return nullptr;
  const auto& all = l.said->superseded;
  const auto at = std::ranges::find(all, view_.shoal, &superseded_shoal::shoal);
  return at == all.end() ? nullptr : &*at;
}

bool impl::is_superseded_by_ours(const link& l) const {
  const auto known = superseded();
  return l.said
         && std::ranges::find(known, l.said->shoal, &superseded_shoal::shoal)
              != known.end();
}

/// Whether the shoal of `l` keeps a job that ours does not know.
bool impl::runs_what_we_lack(const link& l) const {
  const std::size_t running =
    std::min<std::size_t>(l.said->running, l.said->jobs.size());
  return std::any_of(l.said->jobs.begin(),
                     l.said->jobs.begin() + std::ptrdiff_t(running),
                     [&](job_id id) { return find_job(view_, id) == nullptr; });
}

/// Whether no process of the shoal has been in it since before view `number`:
/// it was as good as gone, and is back.
bool impl::came_back_since(epoch number) const {
  return std::ranges::all_of(
    view_.members, [&](const member& m) { return m.id.incarnation > number; });
}

/// Whether what runs here may end with our shoal: the shoal of `l` was made in
/// its place and has the same jobs, and nobody has outlived that.
bool impl::may_give_up_jobs(const link& l) const {
  const superseded_shoal* s = supersedes_ours(l);
  return s != nullptr && came_back_since(s->number)
         && std::ranges::all_of(view_.jobs, [&](const job_entry& j) {
              return j.state != job_state::running
                     || std::ranges::find(l.said->jobs, j.id)
                          != l.said->jobs.end();
            });
}

/// A connected peer that can admit us to a shoal in place of ours.
const impl::link* impl::superseding_contact() const {
  for (const auto& [id, l] : links_) {
    if (supersedes_ours(l) == nullptr || !l.said->joinable
        || l.said->cluster != config_.cluster || now_ - l.said_at > hello_life)
      continue;
    const key_age age = age_of_key(*l.said);
    if (age == key_age::same || age == key_age::newer)
      return &l;
  }
  return nullptr;
}

/// Who waits for a quorum has nobody to agree with: it gives up its own seat.
void impl::follow_superseding() {
  if (phase_ != phase::waiting || leaving_ || now_ < doubted_until_)
    return;
  const link* l = superseding_contact();
  if (l == nullptr)
    return;
  say("the shoal of this peer has lost its quorum, and `recover --force` has "
      "made another in its place ("
      + l->said->name + "): asking to join that one");
  install(view(view_), false);
}

/// What ran in the shoal that we have given up so, and the one in its place
/// does not know: the peer that was forced had missed it.
void impl::bring_jobs(const view& before) {
  if (std::ranges::find(view_.superseded, before.shoal,
                        &superseded_shoal::shoal)
      == view_.superseded.end())
    return;
  for (const job_entry& j : before.jobs)
    if (j.state == job_state::running && find_job(view_, j.id) == nullptr) {
      change c;
      c.kind = change_kind::submit_job;
      c.job = j;
      wish(std::move(c));
    }
}

} // namespace shoal::core::cluster
