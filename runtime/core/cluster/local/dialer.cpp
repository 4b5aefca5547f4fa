// runtime/core/cluster/local/dialer.cpp -- when to connect to which address.
#include "runtime/core/cluster/local/dialer.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

bool dialer::is_connected(const std::string& address,
                          const situation& s) const {
  const addresses& own = s.self.addresses;
  if (std::ranges::find(own, address) != own.end())
    return true;
  // For host names and translated addresses: the peer that answered there.
  if (auto r = reached_.find(address); r != reached_.end())
    if (s.connected.contains(r->second))
      return true;
  return s.connected.includes_address(address, s.current);
}

bool dialer::is_open(const std::string& address, const situation& s) const {
  if (is_connected(address, s) || barred_.contains(address))
    return false;
  auto found = attempts_.find(address);
  return found == attempts_.end()
         || (found->second.failures == 0
             && s.now < found->second.pending_until);
}

void dialer::dial(const std::string& address, bool once, const situation& s,
                  addresses& out) {
  auto found = attempts_.find(address);
  auto waits = [&](const attempt& a) {
    return s.now < a.pending_until || (!once && s.now < a.next_at);
  };
  if (address.empty() || barred_.contains(address)
      || (found != attempts_.end() && waits(found->second))
      || is_connected(address, s))
    return;
  if (found == attempts_.end()) {
    if (attempts_.size() >= dials_max)
      std::erase_if(attempts_, [&](const auto& a) {
        return a.second.pending_until <= s.now;
      });
    if (attempts_.size() >= dials_max)
      return;
    found = attempts_.emplace(address, attempt{}).first;
    found->second.once = once;
  }
  found->second.pending_until = s.now + dial_timeout;
  out.push_back(address);
}

dialer::addresses dialer::dial_once(const addresses& all, const situation& s) {
  addresses out;
  for (const std::string& address : all)
    dial(address, true, s, out);
  return out;
}

dialer::addresses
dialer::redial(const addresses& all, bool once, const situation& s) {
  addresses out;
  for (const std::string& address : all) {
    attempts_.erase(address);
    dial(address, once, s, out);
  }
  return out;
}

/// Addresses that we keep trying.
dialer::addresses dialer::wanted(const situation& s) const {
  addresses out;
  for (const member& m : s.current.members)
    if (!s.connected.contains(m.id.peer) && m.id.peer != s.self.id.peer)
      out.insert(out.end(), m.addresses.begin(), m.addresses.end());
  if (!s.in_company())
    out.insert(out.end(), config_.seeds.begin(), config_.seeds.end());
  return out;
}

bool dialer::tries_seeds(const situation& s) const {
  return s.in_company() && !config_.embedded;
}

dialer::addresses dialer::dial_due(const situation& s, random& spread) {
  addresses out;
  for (const std::string& address : wanted(s))
    dial(address, false, s, out);
  if (tries_seeds(s))
    for (const std::string& address : config_.seeds)
      try_seed(address, s, spread, out);
  return out;
}

/// Tries it, due or not, but at most once in seed_pause, whatever the result.
void dialer::try_seed(const std::string& address, const situation& s,
                      random& spread, addresses& out) {
  if (!seeds_.contains(address) && seeds_.size() >= seeds_max) {
    std::erase_if(seeds_, [&](const auto& entry) {
      return entry.second.next_at + seed_pause_max < s.now;
    });
    if (seeds_.size() >= seeds_max)
      return;
  }
  seed& tried = seeds_[address];
  if (s.now < tried.next_at)
    return;
  if (is_connected(address, s)) {
    tried = {s.now + seed_pause, seed_pause};
    return;
  }
  const auto extra = spread.below(std::uint64_t(tried.pause) / 4);
  tried.next_at = s.now + tried.pause + nanoseconds(extra);
  tried.pause = std::min(2 * tried.pause, seed_pause_max);
  dial(address, true, s, out);
}

dialer::addresses dialer::discovered(const std::string& address, bool listed,
                                     const situation& s, random& spread) {
  addresses out;
  if (config_.embedded)
    return out;
  if (listed && s.in_company())
    try_seed(address, s, spread, out);
  else
    dial(address, true, s, out);
  return out;
}

void dialer::failed(const std::string& address, nanoseconds now) {
  auto found = attempts_.find(address);
  if (found == attempts_.end())
    return;
  attempt& a = found->second;
  a.pending_until = 0;
  a.next_at = now
              + (a.failures >= eager_dials
                   ? dial_pause_idle
                   : std::min(dial_pause_max, (100 * milliseconds)
                                                << std::min(a.failures, 5)));
  ++a.failures;
  if (a.once)
    attempts_.erase(found);
}

void dialer::reached(const std::string& address, const peer_id& peer,
                     const contacts& connected) {
  if (auto found = attempts_.find(address); found != attempts_.end())
    found->second.pending_until = 0;
  std::erase_if(reached_, [&](const auto& entry) {
    return !connected.contains(entry.second);
  });
  if (reached_.size() < reached_max)
    reached_[address] = peer;
}

void dialer::forget_failures(const addresses& all) {
  for (const std::string& address : all)
    attempts_.erase(address);
}

bool dialer::turned_away(const std::string& address, support has) {
  if (barred_.size() >= barred_max || !barred_.insert(address).second)
    return false;
  if (has != support::quorum && accuser_.empty())
    accuser_ = address;
  return true;
}

std::optional<std::string> dialer::shut_out_by(support has, nanoseconds now) {
  if (has == support::quorum)
    accuser_.clear();
  if (has != support::none || accuser_.empty())
    shut_out_at_ = time_max;
  else if (!is_shut_out())
    shut_out_at_ = now + config_.shut_out_patience;
  else if (now >= shut_out_at_)
    return accuser_;
  return std::nullopt;
}

nanoseconds dialer::deadline(const situation& s) const {
  nanoseconds due = time_max;
  auto soon = [&](nanoseconds when) {
    if (when > s.now)
      due = std::min(due, when);
  };
  nanoseconds first_seed = time_max;
  if (tries_seeds(s))
    for (const std::string& address : config_.seeds)
      if (auto found = seeds_.find(address); found != seeds_.end())
        first_seed = std::min(first_seed, found->second.next_at);
  soon(first_seed);
  soon(shut_out_at_);
  for (const std::string& address : wanted(s))
    if (auto found = attempts_.find(address); found != attempts_.end())
      soon(std::max(found->second.next_at, found->second.pending_until));
  return due;
}

} // namespace shoal::core::cluster
