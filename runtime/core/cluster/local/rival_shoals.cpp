// runtime/core/cluster/local/rival_shoals.cpp -- which of two shoals goes on.
#include "runtime/core/cluster/local/rival_shoals.hpp"

#include "runtime/core/cluster/local/limits.hpp"

#include <algorithm>

namespace shoal::core::cluster {

namespace {

/// Whether the shoal was as good as gone in view `number`, and has returned: no
/// process has been in it since before, nor was when the next view came.
bool came_back_since(const view& v, epoch number) {
  return std::ranges::find(v.outages, number) != v.outages.end()
         && std::ranges::all_of(v.members, [&](const member& m) {
              return m.id.incarnation > number;
            });
}

} // namespace

bool rival_shoals::can_admit(const contact& c) const {
  return c.said && c.said->joinable && c.said->cluster == cluster_
         && c.fresh(s_.now);
}

bool rival_shoals::has_usable_key(const contact& c) const {
  const key_age age = keys_.age_of(*c.said);
  return age == key_age::same || age == key_age::newer;
}

/// What the shoal of `c` says about ours, if it replaced ours.
const superseded_shoal* rival_shoals::supersedes_ours(const contact& c) const {
  if (!c.said || c.said->shoal == s_.current.shoal)
    return nullptr;
  const auto& all = c.said->superseded;
  const auto found =
    std::ranges::find(all, s_.current.shoal, &superseded_shoal::shoal);
  return found == all.end() ? nullptr : &*found;
}

bool rival_shoals::is_superseded_by_ours(const contact& c) const {
  const auto all = former_.superseded(s_.current);
  return c.said
         && std::ranges::find(all, c.said->shoal, &superseded_shoal::shoal)
              != all.end();
}

/// Whether the shoal of `c` has a running job that ours does not know.
bool rival_shoals::runs_what_we_lack(const contact& c) const {
  const auto& jobs = c.said->jobs;
  const auto running = std::min<std::size_t>(c.said->running, jobs.size());
  return std::any_of(
    jobs.begin(), jobs.begin() + std::ptrdiff_t(running),
    [&](job_id id) { return find_job(s_.current, id) == nullptr; });
}

bool rival_shoals::may_give_up_jobs(const contact& c) const {
  const superseded_shoal* ours = supersedes_ours(c);
  return ours != nullptr && came_back_since(s_.current, ours->number)
         && std::ranges::all_of(s_.current.jobs, [&](const job_entry& j) {
              return j.state != job_state::running
                     || std::ranges::find(c.said->jobs, j.id)
                          != c.said->jobs.end();
            });
}

const contact* rival_shoals::superseding() const {
  for (const auto& [id, c] : s_.connected)
    if (supersedes_ours(c) != nullptr && can_admit(c) && has_usable_key(c))
      return &c;
  return nullptr;
}

std::pair<peer_id, const contact*>
rival_shoals::best(std::uint64_t attempt) const {
  std::pair<peer_id, const contact*> best{};
  key_age best_age = key_age::same;
  std::size_t equals = 0;
  for (const auto& [id, c] : s_.connected) {
    if (!can_admit(c) || (s_.seated && c.said->shoal == s_.current.shoal))
      continue;
    const key_age age = keys_.age_of(*c.said);
    if (age != key_age::same && age != key_age::newer)
      continue;
    // A shoal counts once, however many contacts belong to it.
    const contact* before = best.second;
    const bool equal =
      before != nullptr && c.said->shoal == before->said->shoal;
    const bool wins =
      before == nullptr
      || (!equal
          && (age != best_age ? age == key_age::newer
                              : goes_before(*c.said, *before->said)));
    if (wins || equal)
      equals = wins ? 1 : equals + 1;
    if (wins || (equal && attempt % equals == 0)) {
      best = {id, &c};
      best_age = age;
    }
  }
  return best;
}

verdict rival_shoals::judge(const contact& c) const {
  // Otherwise peers that find no room would found and dissolve shoals for ever.
  if (c.said->members + s_.current.members.size() > members_max)
    return verdict::goes_on;
  if (running_jobs(s_.current) > 0 && !may_give_up_jobs(c))
    return verdict::stays_apart;
  if (supersedes_ours(c) != nullptr || keys_.age_of(*c.said) == key_age::newer)
    return verdict::dissolves;
  if (is_superseded_by_ours(c) && !runs_what_we_lack(c))
    return verdict::goes_on;
  return embedded_ || goes_before(*c.said, describe(s_.current))
           ? verdict::dissolves
           : verdict::goes_on;
}

std::string rival_shoals::why_apart(const contact& c) const {
  const bool newer = keys_.age_of(*c.said) == key_age::newer;
  const bool forced = supersedes_ours(c) != nullptr;
  if (is_superseded_by_ours(c) || (c.said->running == 0 && !newer && !forced))
    return {};
  return "another shoal of cluster '" + cluster_ + "' "
         + (newer    ? "has replaced the cluster key"
            : forced ? "was made in place of this one by `recover --force`, "
                       "and this one runs a job that it does not, or has gone "
                       "on"
                     : "runs jobs too")
         + " (" + c.said->name + "); "
         + (newer || forced
              ? "this shoal joins that one when it runs no job: end its jobs "
                "by `shoal cancel` on a node of this shoal"
              : "the two stay apart until one runs none: `shoal cancel` ends "
                "one");
}

} // namespace shoal::core::cluster
