// runtime/node/state/absent_peers.cpp -- finds the peer that a user means.
#include "runtime/node/state/absent_peers.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/nearest.hpp"
#include "runtime/core/view.hpp"
#include "runtime/host/ip_address.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::runtime {

namespace {

/// Digits needed to name a peer: with fewer, several may match.
constexpr std::size_t named_digits_min = 4;

std::string named(const core::peer_id& id, const std::string& name) {
  const std::string begin = core::short_name(id);
  return name.empty() ? begin : name + " (" + begin + ")";
}

std::string shown_peer(const core::peer_id& id, const std::string& name) {
  return "peer " + named(id, name);
}

bool begins(const core::peer_id& id, const std::string& word) {
  return word.size() >= named_digits_min && core::to_hex(id).starts_with(word);
}

/// A name has priority over an address, an address over an id. A name with a
/// port is an address of the machine whose node has that name.
int fit(const core::member& m, const std::string& word) {
  return m.name == word                               ? 4
         : std::ranges::count(m.addresses, word) > 0  ? 3
         : !m.name.empty() && host_of(word) == m.name ? 2
         : begins(m.id.peer, word)                    ? 1
                                                      : 0;
}

departure how_gone(const core::view& before, const core::view& now,
                   const core::member& m) {
  if (core::is_revoked(now, m.id.peer))
    return departure::revoked;
  // Of those that `recover --force` goes on without it is not known where they are.
  const bool replaced = std::ranges::any_of(
    now.superseded, [&](const auto& s) { return s.shoal == before.shoal; });
  if (before.shoal != now.shoal && !replaced)
    return departure::stayed;
  return m.state == core::member_state::leaving ? departure::left
                                                : departure::lost;
}

const char* gone_text(departure how) {
  switch (how) {
  case departure::left:
    return "left the shoal";
  case departure::revoked:
    return "was revoked";
  case departure::stayed:
    return "stayed behind when this node went to another shoal";
  case departure::lost:
    break;
  }
  return "was taken out of the view, since it could not be reached or held up "
         "a job,";
}

} // namespace

void absent_peers::connected(const core::peer_id& peer) {
  lost_.erase(peer);
}

void absent_peers::disconnected(const core::peer_id& peer,
                                std::int64_t unix_ms) {
  if (lost_.size() >= lost_max && !lost_.contains(peer))
    lost_.erase(std::ranges::min_element(
      lost_, {}, [](const auto& l) { return l.second; }));
  lost_[peer] = unix_ms;
}

void absent_peers::adopted(const core::view* before, const core::view& now,
                           std::int64_t unix_ms) {
  std::erase_if(former_, [&now](const former_member& f) {
    return core::find_member(now, f.peer) != nullptr;
  });
  for (former_member& f : former_)
    if (core::is_revoked(now, f.peer)
        && std::exchange(f.how, departure::revoked) != departure::revoked)
      f.unix_ms = unix_ms;
  if (!before)
    return;
  for (const core::member& m : before->members) {
    if (core::find_member(now, m.id.peer))
      continue;
    if (former_.size() >= former_max)
      former_.pop_front();
    former_.push_back({m.id.peer, m.name, how_gone(*before, now, m), unix_ms});
  }
}

absent_peers::meant
absent_peers::find(const core::view& v, const std::string& word,
                   std::int64_t unix_ms) const {
  int best = 0;
  std::vector<const core::member*> found;
  for (const core::member& m : v.members) {
    const int f = fit(m, word);
    if (f > best)
      found.clear();
    best = std::max(best, f);
    if (f > 0 && f == best)
      found.push_back(&m);
  }
  if (found.size() == 1)
    return {found.front()->id.peer, {}};
  if (found.size() > 1)
    return {{},
            "several peers fit '" + word
              + "': use the id of one, or more of it; see `shoal status`"};
  if (const former_member* f = find_former(word))
    return {{},
            shown_peer(f->peer, f->name) + " " + gone_text(f->how) + " at "
              + core::when_text(f->unix_ms, unix_ms)
              + ", and has not come back"};
  return {{}, nobody(v, word)};
}

const former_member* absent_peers::find_former(const std::string& word) const {
  const auto fits = [&word](const former_member& f) {
    return f.name == word || begins(f.peer, word);
  };
  const auto at = std::find_if(former_.rbegin(), former_.rend(), fits);
  return at == former_.rend() ? nullptr : &*at;
}

std::vector<core::peer_id> absent_peers::gone(const std::string& name) const {
  std::vector<core::peer_id> out;
  for (const former_member& f : former_)
    if (f.name == name)
      out.push_back(f.peer);
  return out;
}

std::vector<std::string>
absent_peers::names(const std::vector<core::peer_id>& peers) const {
  std::vector<std::string> out;
  for (const core::peer_id& p : peers) {
    const auto at = std::ranges::find(former_, p, &former_member::peer);
    out.push_back(named(p, at == former_.end() ? std::string() : at->name));
  }
  return out;
}

std::string
absent_peers::nobody(const core::view& v, const std::string& word) const {
  std::vector<std::string> members;
  for (const core::member& m : v.members)
    members.push_back(m.name.empty() ? core::short_name(m.id.peer) : m.name);
  std::vector<std::string_view> names;
  for (const core::member& m : v.members)
    names.push_back(m.name);
  for (const former_member& f : former_)
    names.push_back(f.name);
  const std::string meant = core::did_you_mean(word, names);
  return "no peer '" + word
         + "' is in the shoal, and none was since this node started"
         + (meant.empty()
              ? ": it has " + core::listed(members) + "; see `shoal status`"
              : meant + " See `shoal status`");
}

std::string
absent_peers::unreachable(const core::view& v, const core::peer_id& peer,
                          std::int64_t unix_ms) const {
  const core::member* m = core::find_member(v, peer);
  const auto at = lost_.find(peer);
  return shown_peer(peer, m ? m->name : "") + " is not reachable since "
         + (at == lost_.end() ? "this node started at " : "")
         + core::when_text(at == lost_.end() ? started_ms_ : at->second,
                           unix_ms)
         + ": start its node again, or look at its machine and the network";
}

} // namespace shoal::runtime
