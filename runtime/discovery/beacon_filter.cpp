// runtime/discovery/beacon_filter.cpp -- times of senders, and counts per second.
#include "runtime/discovery/beacon_filter.hpp"

#include <algorithm>

namespace shoal::runtime {

/// Begins another second if the last one is over.
void beacon_filter::turn(time now) {
  if (now - second_ < std::chrono::seconds(1) && second_ != time{})
    return;
  second_ = now;
  seen_ = dials_ = others_ = 0;
  sources_.clear();
}

bool beacon_filter::admits(const ip_address& source, time now) {
  turn(now);
  auto at = sources_.find(source);
  if (at == sources_.end() && sources_.size() < sources_max)
    at = sources_.emplace(source, 0).first;
  std::size_t& of_source = at == sources_.end() ? others_ : at->second;
  if (seen_ >= beacons_max || of_source >= beacons_of_source_max) {
    ++counts_.crowded;
    return false;
  }
  ++seen_;
  ++of_source;
  return true;
}

bool beacon_filter::fresh(const beacon& b, time now) {
  auto at = senders_.find(b.sender);
  if (at != senders_.end() && now - at->second.heard_at > sender_memory) {
    senders_.erase(at);
    at = senders_.end();
  }
  if (at == senders_.end()) {
    if (senders_.size() >= senders_max)
      senders_.erase(std::ranges::min_element(
        senders_, {}, [](const auto& s) { return s.second.heard_at; }));
    at = senders_.emplace(b.sender, sender{}).first;
  }
  sender& s = at->second;
  const place target{b.address, b.port};
  const auto too_old = [&](std::uint64_t t) {
    return t < s.newest && s.newest - t > reorder_window_us;
  };
  const auto earlier = s.times.find(target);
  if (too_old(b.time) || (earlier != s.times.end() && b.time <= earlier->second)
      || (earlier == s.times.end() && s.times.size() >= addresses_max))
    return false; // B-1
  s.times[target] = b.time;
  s.newest = std::max(s.newest, b.time);
  s.heard_at = now;
  std::erase_if(s.times, [&](const auto& t) { return too_old(t.second); });
  return true;
}

void beacon_filter::remember_home(const ip_address& source, time now) {
  if (homes_.size() >= senders_max && !homes_.contains(source))
    homes_.erase(std::ranges::min_element(
      homes_, {}, [](const auto& h) { return h.second; }));
  homes_[source] = now;
}

bool beacon_filter::is_home(const ip_address& source, time now) const {
  const auto at = homes_.find(source);
  return at != homes_.end() && now - at->second <= sender_memory;
}

bool beacon_filter::may_dial(const beacon& b, time now) {
  std::erase_if(dialled_,
                [&](const auto& d) { return now - d.second >= dial_pause; });
  const place target{b.address, b.port};
  if (dials_ >= dials_max || dialled_.contains(target))
    return false; // B-3
  ++dials_;
  dialled_.emplace(target, now);
  return true;
}

beacon_filter::verdict beacon_filter::judge(const beacon& b, const origin& from,
                                            bool connected, time now) {
  turn(now);
  if (is_loopback(b.address) ? !from.loopback : from.source != b.address) {
    ++counts_.elsewhere; // B-2
    return verdict::elsewhere;
  }
  if (!fresh(b, now)) {
    ++counts_.old;
    return verdict::old;
  }
  remember_home(from.source, now);
  if (connected) {
    ++counts_.connected;
    return verdict::connected;
  }
  if (!may_dial(b, now)) {
    ++counts_.paused;
    return verdict::paused;
  }
  ++counts_.dialled;
  return verdict::dial;
}

} // namespace shoal::runtime
