// runtime/core/cluster/detector.cpp -- heartbeats, deadlines and alerts.
#include "runtime/core/cluster/detector.hpp"

#include "runtime/core/cluster/random.hpp"

#include <algorithm>

namespace shoal::core::cluster {

detector::detector(detector_config c) : config_(c) {
}

void detector::follow(const view& v, nanoseconds now) {
  view_ = &v;
  std::map<peer_id, watched> next;
  for (const member& m : v.members) {
    if (m.id.peer == config_.self)
      continue;
    watched w;
    auto old = watched_.find(m.id.peer);
    if (old != watched_.end())
      w = std::move(old->second);
    if (old == watched_.end() || w.id != m.id) {
      w.accusers.clear();
      w.suspected = false;
      w.refused.clear();
      w.heard_at = now;
    }
    w.id = m.id;
    w.watch = watches(config_.self, m.id.peer);
    next.emplace(m.id.peer, std::move(w));
  }
  watched_ = std::move(next);
}

/// Whether `from` is one of the watchers_max members before `subject` in the
/// ring of members.
bool detector::watches(const peer_id& from, const peer_id& subject) const {
  const auto& all = view_->members;
  if (all.size() <= watchers_max + 1)
    return from != subject;
  auto index = [&](const peer_id& id) {
    return std::size_t(find_member(*view_, id) - all.data());
  };
  if (find_member(*view_, from) == nullptr)
    return false;
  std::size_t ahead = (index(subject) + all.size() - index(from)) % all.size();
  return ahead >= 1 && ahead <= watchers_max;
}

void detector::link_up(const peer_id& peer, nanoseconds now, actions& out) {
  auto at = watched_.find(peer);
  if (at == watched_.end())
    return;
  watched& w = at->second;
  w.linked = true;
  w.heard_at = now;
  w.refused.clear();
  set_suspected(w, false, out);
  // It does not know yet what the others were told.
  for (const auto& [id, other] : watched_)
    if (other.suspected)
      tell(other, out);
  beat_now();
}

void detector::link_down(const peer_id& peer) {
  auto at = watched_.find(peer);
  if (at != watched_.end())
    at->second.linked = false;
}

void detector::refused(const member& m, const std::string& address,
                       nanoseconds now, actions& out) {
  auto at = watched_.find(m.id.peer);
  if (at == watched_.end() || at->second.linked || now < patient_until_)
    return;
  at->second.refused.insert(address);
  for (const std::string& a : m.addresses)
    if (!at->second.refused.contains(a))
      return;
  if (at->second.watch)
    set_suspected(at->second, true, out);
}

void detector::on_ack(const peer_id& from, std::uint64_t sequence,
                      nanoseconds now, actions& out) {
  auto at = watched_.find(from);
  if (at == watched_.end())
    return;
  watched& w = at->second;
  w.heard_at = now;
  if (w.sequence == sequence && w.sent_at > 0) {
    nanoseconds sample = now - w.sent_at;
    w.deviation += (std::abs(sample - w.round_trip) - w.deviation) / 4;
    w.round_trip += (sample - w.round_trip) / 8;
    w.sent_at = 0;
  }
  set_suspected(w, false, out);
}

void detector::on_alert(const peer_id& from, const alert& m) {
  auto at = watched_.find(m.subject.peer);
  if (at == watched_.end() || at->second.id != m.subject)
    return;
  if (m.suspected)
    at->second.accusers.insert(from);
  else
    at->second.accusers.erase(from);
}

/// Six lost heartbeats at the default; longer where round trips are long or
/// vary, four deviations as TCP's retransmission timer has them.
nanoseconds detector::silence_max(const watched& w) const {
  return std::max(config_.floor,
                  3 * config_.interval + 2 * w.round_trip + 4 * w.deviation);
}

void detector::on_tick(nanoseconds now, actions& out) {
  // We were stopped: what we did not hear says nothing about the others.
  if (ticked_at_ > 0 && now - ticked_at_ > 3 * config_.interval)
    for (auto& [id, w] : watched_)
      w.heard_at = now;
  ticked_at_ = now;
  for (auto& [id, w] : watched_)
    if (w.watch && !w.suspected && now - w.heard_at > silence_max(w))
      set_suspected(w, true, out);
  if (now < beat_at_)
    return;
  beat_at_ = now + config_.interval;
  ++sequence_;
  std::vector<peer_id> to;
  for (auto& [id, w] : watched_) {
    if (w.suspected)
      tell(w, out); // again, since messages may be lost
    if (!w.watch || !w.linked)
      continue;
    // One sample at a time, unless its heartbeat seems lost.
    if (w.sent_at == 0 || now - w.sent_at > config_.floor) {
      w.sent_at = now;
      w.sequence = sequence_;
    }
    to.push_back(id);
  }
  if (!to.empty())
    out.push_back(send{to, heartbeat{view_->shoal, view_->number, sequence_}});
}

void detector::set_suspected(watched& w, bool suspected, actions& out) {
  if (w.suspected == suspected)
    return;
  w.suspected = suspected;
  tell(w, out);
}

void detector::tell(const watched& w, actions& out) const {
  std::vector<peer_id> to = linked();
  std::erase(to, w.id.peer);
  if (!to.empty())
    out.push_back(
      send{to, alert{view_->shoal, view_->number, w.id, w.suspected}});
}

std::vector<peer_id> detector::linked() const {
  std::vector<peer_id> out;
  for (const auto& [id, w] : watched_)
    if (w.linked)
      out.push_back(id);
  return out;
}

bool detector::suspects(const peer_id& peer) const {
  auto at = watched_.find(peer);
  return at != watched_.end() && at->second.suspected;
}

std::vector<member_id> detector::confirmed() const {
  std::vector<member_id> out;
  for (const auto& [id, w] : watched_) {
    if (!w.suspected)
      continue;
    std::size_t watchers = 0;
    std::size_t agree = 0;
    for (const member& m : view_->members) {
      if (!votes(m) || suspects(m.id.peer) || !watches(m.id.peer, id))
        continue;
      ++watchers;
      agree += m.id.peer == config_.self || w.accusers.contains(m.id.peer);
    }
    if (2 * agree > watchers)
      out.push_back(w.id);
  }
  return out;
}

nanoseconds detector::deadline() const {
  if (watched_.empty())
    return time_max;
  nanoseconds out = beat_at_;
  for (const auto& [id, w] : watched_)
    if (w.watch && !w.suspected)
      out = std::min(out, w.heard_at + silence_max(w) + 1);
  return out;
}

} // namespace shoal::core::cluster
