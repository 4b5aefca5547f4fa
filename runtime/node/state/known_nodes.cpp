// runtime/node/state/known_nodes.cpp -- nodes that were heard, met and lost.
#include "runtime/node/state/known_nodes.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/host/ip_address.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

void known_nodes::connected(const core::peer_id& peer) {
  std::lock_guard lock(mutex_);
  other_build_.clear();
  absent_.connected(peer);
}

void known_nodes::disconnected(const core::peer_id& peer, std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  versions_.erase(peer);
  strangers_.erase(peer);
  absent_.disconnected(peer, now_ms);
}

known_nodes::line
known_nodes::heard(const core::peer_id& from, const core::cluster::hello& said,
                   std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  versions_.put(from, said.version);
  strangers_.erase(from);
  if (said.cluster == cluster_) {
    shoal_of_peer of{said.shoal,   said.name, said.members,
                     said.running, {},        now_ms};
    for (const core::superseded_shoal& s : said.superseded)
      of.superseded.push_back(s.shoal);
    strangers_.put(from, std::move(of));
    return {};
  }
  return met(said.addresses.empty() ? core::short_name(from)
                                    : said.addresses.front(),
             "node " + said.name + " is of --cluster " + said.cluster
               + ", and this node of --cluster " + cluster_
               + ". If they belong together, start one of them again with the "
                 "other's --cluster",
             now_ms);
}

void known_nodes::version(const core::peer_id& self, const std::string& text) {
  std::lock_guard lock(mutex_);
  versions_.put(self, text);
}

void known_nodes::adopted(const core::view* before, view now,
                          std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  absent_.adopted(before, *now, now_ms);
  view_ = std::move(now);
  std::erase_if(unproved_,
                [this](const auto& a) { return !is_of_a_member(a); });
}

known_nodes::line known_nodes::namesake(const core::peer_id& self) {
  std::lock_guard lock(mutex_);
  const core::member* own = view_ ? core::find_member(*view_, self) : nullptr;
  if (!own || own->name.empty())
    return {};
  const auto is_namesake = [&](const core::member& m) {
    return m.id.peer != self && m.name == own->name;
  };
  std::erase_if(namesakes_, [&](const core::peer_id& peer) {
    const core::member* m = core::find_member(*view_, peer);
    return !m || !is_namesake(*m);
  });
  for (const core::member& m : view_->members)
    if (is_namesake(m) && namesakes_.insert(m.id.peer).second)
      return "[node] another peer of this shoal is named " + m.name
             + ", too: " + core::short_name(m.id.peer)
             + (m.addresses.empty() ? "" : " at " + m.addresses.front())
             + ". Views and plans do not tell the two apart: start one of them "
               "again with another --name";
  return {};
}

void known_nodes::admitted(const core::view& v) {
  std::lock_guard lock(mutex_);
  key_replaced_ = v.key != core::key_digest{};
  for (const core::member& m : v.members)
    for (const std::string& address : m.addresses) {
      apart_.joined(address);
      if (key_replaced_)
        apart_.joined(host_of(address));
    }
}

void known_nodes::uses_key(std::string fingerprint) {
  std::lock_guard lock(mutex_);
  shown_key_ = std::move(fingerprint);
}

void known_nodes::reached(const std::string& address) {
  std::lock_guard lock(mutex_);
  apart_.joined(address);
  unproved_.erase(address);
}

/// Whether a member has announced this address. @pre mutex_ is held
bool known_nodes::is_of_a_member(const std::string& address) const {
  return view_ && std::ranges::any_of(view_->members, [&](const auto& m) {
           return std::ranges::find(m.addresses, address) != m.addresses.end();
         });
}

/// The same for its host. @pre mutex_ is held
bool known_nodes::is_host_of_a_member(const std::string& host) const {
  return view_ && std::ranges::any_of(view_->members, [&](const auto& m) {
           return std::ranges::find(m.addresses, host, host_of)
                  != m.addresses.end();
         });
}

/// A node at the address does not belong to this shoal. @pre mutex_ is held
known_nodes::line
known_nodes::met(const std::string& address, const std::string& why,
                 std::int64_t now_ms) {
  if (is_of_a_member(address))
    return {}; // it may have been away while the key was replaced
  if (!apart_.met(address, why, now_ms))
    return {};
  return "[node] " + address + " is not of this shoal: " + why;
}

known_nodes::line
known_nodes::not_proved(const std::string& address, std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  if (std::exchange(refused_by_, {}) == address)
    return {}; // it has given the reason
  if (is_of_a_member(address))
    unproved_.insert(address);
  const bool some_revoked = view_ && !view_->revoked.empty();
  return met(
    address,
    "it did not prove the cluster key of this node, which has the fingerprint "
      + shown_key_
      + (some_revoked ? "; it may be a machine that was revoked" : "")
      + ". If it should be of this shoal, look whether that is the port of its "
        "node (18372 if none was chosen, and never that of HTTP), compare "
        "`shoal key show FILE` on both machines, and start the wrong one with "
        "the other's key",
    now_ms);
}

known_nodes::line
known_nodes::refused(const std::string& address, const std::string& why,
                     std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  refused_by_ = address;
  return met(address, "it refuses this node: " + why, now_ms);
}

void known_nodes::revoked_by(const std::string& address, std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  refused_by_ = address;
  if (!accuser_.empty())
    return;
  std::string name;
  if (view_)
    for (const core::member& m : view_->members)
      if (std::ranges::count(m.addresses, address) > 0)
        name = m.name;
  accuser_ = (name.empty() ? address : name + " (" + address + ")")
             + " said at " + core::utc_text(now_ms);
}

void known_nodes::refute() {
  std::lock_guard lock(mutex_);
  accuser_.clear();
}

known_nodes::line
known_nodes::plans_otherwise(const std::string& address, const std::string& why,
                             std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  refused_by_ = address;
  other_build_ = address;
  if (!apart_.met(address, "it refuses this node: " + why, now_ms))
    return {};
  return "[node] " + address + " refuses this node: " + why;
}

known_nodes::line
known_nodes::strange(const std::string& host, std::int64_t now_ms) {
  std::lock_guard lock(mutex_);
  if (!accuser_.empty())
    return {}; // the key was replaced, which explains it
  if (key_replaced_ && is_host_of_a_member(host))
    return {}; // it also uses an old key, so that members that were away can
               // reach it
  return met(host,
             "its announcements are of another cluster key or --cluster. If it "
             "should be of this shoal, compare `shoal key show FILE` and "
             "--cluster (here: "
               + cluster_ + ") on both machines",
             now_ms);
}

void known_nodes::counted(const beacon_counts& counts) {
  std::lock_guard lock(mutex_);
  beacons_ = counts;
}

std::string known_nodes::accuser() const {
  std::lock_guard lock(mutex_);
  return accuser_;
}

std::string known_nodes::other_build() const {
  std::lock_guard lock(mutex_);
  return other_build_;
}

std::string
known_nodes::unproved(const std::vector<core::member>& missing) const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const core::member& m : missing) {
    const auto at = std::ranges::find_if(
      m.addresses, [this](const auto& a) { return unproved_.contains(a); });
    if (at != m.addresses.end())
      out += (out.empty() ? "" : ", ")
             + (m.name.empty() ? core::short_name(m.id.peer) : m.name) + " at "
             + *at;
  }
  return out;
}

std::string known_nodes::key_in_use() const {
  std::lock_guard lock(mutex_);
  return shown_key_;
}

absent_peers::meant
known_nodes::find(const std::string& word, std::int64_t now_ms) const {
  std::lock_guard lock(mutex_);
  return absent_.find(*view_, word, now_ms);
}

std::vector<core::peer_id> known_nodes::gone(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return absent_.gone(name);
}

std::vector<std::string>
known_nodes::names(const std::vector<core::peer_id>& peers) const {
  std::lock_guard lock(mutex_);
  return absent_.names(peers);
}

std::string
known_nodes::unreachable(const core::peer_id& peer, std::int64_t now_ms) const {
  std::lock_guard lock(mutex_);
  return absent_.unreachable(*view_, peer, now_ms);
}

known_nodes::summary known_nodes::all(std::int64_t now_ms) const {
  std::lock_guard lock(mutex_);
  auto strangers = strangers_.all();
  std::erase_if(strangers, [&](const auto& s) {
    return now_ms - s.second.heard_ms > stranger_silence_ms;
  });
  return {versions_.all(),
          std::move(strangers),
          apart_.list(now_ms),
          beacons_,
          {absent_.former().begin(), absent_.former().end()}};
}

} // namespace shoal::runtime
