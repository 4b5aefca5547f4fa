// runtime/core/view_changes.cpp -- compares two views.
#include "runtime/core/view_changes.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace shoal::core {
namespace {

using clauses = std::vector<std::string>;

/// Digits of a shoal's id in a line: enough to distinguish those of one
/// network.
constexpr std::size_t id_digits = 8;

std::string name_of(const member& m) {
  return m.name.empty() ? short_name(m.id.peer) : m.name;
}

std::string name_of(const view& v, const member_id& id) {
  const member* m = find_member(v, id.peer);
  return m != nullptr ? name_of(*m) : short_name(id.peer);
}

std::string gflops(std::uint64_t mflops) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", double(mflops) / 1000);
  return text;
}

std::uint64_t best_rate(const member& m) {
  std::uint64_t best = 0;
  for (const network_profile& n : m.networks)
    best = std::max(best, n.bytes_per_s);
  return best;
}

/// The least that a member tells stands for none: 0 is not known.
bool has_room(const device_profile& d) {
  return d.disk_bytes > 1;
}

/// Changes of what was measured or configured of one member.
void add_measures(const member& was, const member& is, clauses& out) {
  const std::string name = name_of(is);
  const device_profile& a = was.device;
  const device_profile& b = is.device;
  if (a.mflops != b.mflops && a.mflops != 0)
    out.push_back(name + " got " + (b.mflops < a.mflops ? "slower" : "faster")
                  + " (" + gflops(b.mflops) + " GFLOP/s, was "
                  + gflops(a.mflops) + ")");
  else if (a.mflops != b.mflops)
    out.push_back("the speed of " + name + " was measured");
  if (a.memory_bytes != b.memory_bytes)
    out.push_back(name + " offers " + size_text(b.memory_bytes)
                  + " of memory (was " + size_text(a.memory_bytes) + ")");
  if (a.disk_bytes != b.disk_bytes && a.disk_bytes != 0)
    out.push_back("the disk of " + name + " has "
                  + (has_room(b) ? "room for " + size_text(b.disk_bytes) + " of"
                                 : "no room for")
                  + " files of served models (had "
                  + (has_room(a) ? size_text(a.disk_bytes) : "none") + ")");
  if (a.threads != b.threads || a.host_threads != b.host_threads)
    out.push_back(name + " may use another number of processors");
  if (was.networks.empty() && !is.networks.empty())
    out.push_back("the network of " + name + " was measured");
  else if (was.networks != is.networks) {
    const std::uint64_t before = best_rate(was);
    const std::uint64_t now = best_rate(is);
    out.push_back("the network of " + name
                  + (now < before   ? " got slower"
                     : now > before ? " got faster"
                                    : " was measured again"));
  }
}

void add_members(const view& before, const view& now, clauses& out) {
  for (const member& was : before.members) {
    if (find_member(now, was.id.peer) != nullptr)
      continue;
    const auto stall =
      std::ranges::find(now.stalled, was.id.peer, &stalled_peer::peer);
    const bool expelled =
      stall != now.stalled.end() && stall->since > before.number;
    out.push_back(name_of(was)
                  + (is_revoked(now, was.id.peer)         ? " was revoked"
                     : expelled                           ? " was expelled"
                     : was.state == member_state::leaving ? " left"
                                                          : " is gone"));
  }
  for (const member& is : now.members) {
    const member* was = find_member(before, is.id.peer);
    if (was == nullptr || was->id != is.id)
      out.push_back(
        name_of(is)
        + (is.state == member_state::joining ? " joins" : " joined"));
    else if (was->instance != is.instance)
      out.push_back(name_of(is) + " started again");
    else if (was->state != is.state)
      out.push_back(
        name_of(is)
        + (is.state == member_state::leaving ? " is leaving" : " joined"));
  }
  for (const member& is : now.members)
    if (const member* was = find_member(before, is.id.peer);
        was != nullptr && was->id == is.id)
      add_measures(*was, is, out);
}

void add_cuts(const view& before, const view& now, clauses& out) {
  for (const cut_pair& c : now.cuts)
    if (!is_cut(before, c.low.peer, c.high.peer))
      out.push_back(name_of(now, c.low) + " and " + name_of(now, c.high)
                    + " cannot reach each other");
  for (const cut_pair& c : before.cuts)
    if (!is_cut(now, c.low.peer, c.high.peer)
        && find_member(now, c.low.peer) != nullptr
        && find_member(now, c.high.peer) != nullptr)
      out.push_back(name_of(now, c.low) + " and " + name_of(now, c.high)
                    + " reach each other again");
}

void add_mark(const std::string& name, const island_mark& m, clauses& out) {
  switch (m.kind) {
  case mark_kind::retried:
    out.push_back(name + " did not get under way and is set up anew");
    break;
  case mark_kind::arrived:
    out.push_back("state of " + name + " has arrived at its new peers");
    break;
  case mark_kind::done:
  case mark_kind::drained:
    out.push_back(name + " ended");
    break;
  case mark_kind::draining:
    out.push_back(name + " is to end after its step");
    break;
  case mark_kind::scaled:
    out.push_back(name + " is to have " + count_text(m.step, "pipeline"));
  }
}

/// Changes of jobs, without the submission and end of `own`.
void add_jobs(const view& before, const view& now, job_id own, clauses& out) {
  for (const job_entry& is : now.jobs) {
    const job_entry* was = find_job(before, is.id);
    const std::string name = is.id == own ? "the job" : "job " + is.name;
    const bool ended = is.state != job_state::running
                       && (was == nullptr || was->state == job_state::running);
    if (is.id != own && ended)
      out.push_back(name + " ended");
    else if (is.id != own && was == nullptr)
      out.push_back(name + " was submitted");
    if (was == nullptr || ended)
      continue;
    if (is.versions != was->versions
        && served_versions(is).front() == served_versions(*was).front())
      out.push_back(name + " serves only step "
                    + std::to_string(served_versions(is).front().step)
                    + " now");
    else if (is.versions != was->versions)
      out.push_back(name + " serves step "
                    + std::to_string(served_versions(is).front().step));
    for (const island_mark& m : is.marks)
      if (m.since != marked(*was, m.kind, m.island))
        add_mark(m.kind == mark_kind::scaled ? name
                                             : name + island_text(is, m.island),
                 m, out);
  }
}

void add_invites(const view& before, const view& now, clauses& out) {
  for (const invitation& is : now.invites) {
    const auto was =
      std::ranges::find(before.invites, is.key, &invitation::key);
    if (was == before.invites.end())
      out.push_back("an invite was made");
    else if (was->used_by != is.used_by) // a member has no use for one
      out.push_back(find_member(before, is.used_by) == nullptr
                      ? "an invite was used"
                      : "an invite was withdrawn");
  }
}

std::string joined(const clauses& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < changes_named_max; ++i)
    out += (i > 0 ? ", " : "") + all[i];
  if (all.size() > changes_named_max)
    out += " and " + count_text(all.size() - changes_named_max, "other change");
  return out;
}

std::string peers_and_jobs(const view& v) {
  std::string names;
  for (const member& m : v.members)
    names += (names.empty() ? "" : " ") + name_of(m);
  const auto running =
    std::ranges::count(v.jobs, job_state::running, &job_entry::state);
  return count_text(v.members.size(), "peer") + " (" + names + "), "
         + count_text(std::uint64_t(running), "job");
}

std::string short_id(const shoal_id& id) {
  return to_hex(id).substr(0, id_digits);
}

} // namespace

/// Whether `recover --force` has made the shoal of `now` in place of that of
/// `before`.
static bool replaces(const view& before, const view& now) {
  return std::ranges::find(now.superseded, before.shoal,
                           &superseded_shoal::shoal)
         != now.superseded.end();
}

std::string changes_text(const view& before, const view& now, job_id job) {
  if (before.shoal != now.shoal)
    return replaces(before, now)
             ? "a new shoal, made by `recover --force` in place of the former"
             : "this peer joined another shoal";
  clauses out;
  add_members(before, now, out);
  add_cuts(before, now, out);
  add_jobs(before, now, job, out);
  add_invites(before, now, out);
  return joined(out);
}

std::string changes_text(const view& before, const view& now) {
  return changes_text(before, now, 0);
}

std::string view_line(const view_news& news) {
  const view& now = news.now;
  const std::string counted = peers_and_jobs(now);
  if (!news.member && now.dissolved_into)
    return "found shoal " + short_id(*now.dissolved_into)
           + ": this peer asks to join it";
  if (!news.member)
    return "view " + std::to_string(now.number) + ": " + counted
           + (news.before == nullptr ? "; this peer asks to be admitted again"
                                     : "; this peer is not in it");
  if (news.before == nullptr && now.members.size() == 1)
    return std::string("alone so far: ")
           + (news.looks ? "looking for other peers"
                         : "waiting for peers that join this one")
           + ", ready for work";
  if (news.before != nullptr && now.members.size() == 1
      && news.before->shoal != now.shoal && replaces(*news.before, now))
    return "made shoal " + short_id(now.shoal) + " in place of shoal "
           + short_id(news.before->shoal)
           + ", by `recover --force`: " + counted;
  if (news.before == nullptr || news.before->shoal != now.shoal)
    return "joined shoal " + short_id(now.shoal) + ": " + counted;
  const std::string why = changes_text(*news.before, now);
  return "view " + std::to_string(now.number) + ": " + counted
         + (why.empty() ? "" : "; " + why);
}

} // namespace shoal::core
