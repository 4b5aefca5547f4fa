// runtime/core/cluster/detector.cpp -- heartbeats, deadlines and alerts.
#include "runtime/core/cluster/detector.hpp"

#include "runtime/core/random.hpp"

#include <algorithm>

namespace shoal::core::cluster {

detector::detector(detector_config c) : config_(c) {
}

void detector::follow(const view& v, nanoseconds now) {
  view_ = &v;
  rings_.follow(v, config_.self);
  std::map<peer_id, watched> next;
  for (std::uint32_t i = 0; i < v.members.size(); ++i) {
    const member& m = v.members[i];
    if (m.id.peer == config_.self)
      continue;
    watched w;
    auto old = watched_.find(m.id.peer);
    if (old != watched_.end())
      w = std::move(old->second);
    bool watch = std::ranges::binary_search(rings_.subjects(), i);
    if (old == watched_.end() || w.id != m.id || !w.watch) {
      w.suspected = false;
      w.refused.clear();
      w.heard_at = w.changed_at = now;
    }
    w.id = m.id;
    w.index = i;
    w.watch = watch;
    w.voter = votes(m);
    if (!watch)
      w.suspected = false;
    next.emplace(m.id.peer, std::move(w));
  }
  watched_ = std::move(next);
  subjects_.clear();
  for (auto& [id, w] : watched_)
    if (w.watch)
      subjects_.push_back(&w);
  watchers_.clear();
  notes_.clear(); // indexes are of the old view; valid notes are sent again
  count();
}

void detector::link_up(const peer_id& peer, nanoseconds now, actions& out) {
  auto at = watched_.find(peer);
  if (at == watched_.end())
    return;
  watched& w = at->second;
  w.linked = true;
  w.heard_at = w.changed_at = now;
  w.refused.clear();
  set_suspected(w, false, now, out);
  for (auto& [subject, by] : notes_) // perhaps of its former process
    by.erase(index_of(*view_, peer));
  count();
  // It does not know yet what we told the others.
  if (auto notes = own_alerts(); !notes.empty())
    tell(notes, out);
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
    set_suspected(at->second, true, now, out);
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
    if (w.round_trip == 0) {
      w.round_trip = sample;
      w.deviation = sample / 2;
    } else {
      w.deviation += (std::abs(sample - w.round_trip) - w.deviation) / 4;
      w.round_trip += (sample - w.round_trip) / 8;
    }
    w.sent_at = 0;
  }
  if (w.suspected) // it lives: we were wrong
    doubts_ = std::min(doubts_ + 1, doubts_max);
  set_suspected(w, false, now, out);
}

void detector::on_alerts(const peer_id& from,
                         const std::vector<alert_note>& notes) {
  std::uint32_t watcher = index_of(*view_, from);
  bool changed = false;
  for (const alert_note& n : notes) {
    if (n.watcher != watcher || n.subject >= view_->members.size()
        || !votes(view_->members[watcher]) || n.subject == watcher)
      continue;
    alert_note& known = notes_[n.subject][n.watcher];
    changed = changed || n.suspected != known.suspected;
    if (n.stamp >= known.stamp)
      known = n;
  }
  if (changed)
    count();
}

/// The time of six lost heartbeats at the default; longer where round trips are
/// long or vary, and where we doubt ourselves.
nanoseconds detector::silence_max(const watched& w) const {
  nanoseconds base = std::max(
    config_.floor, 3 * config_.interval + 2 * w.round_trip + 4 * w.deviation);
  return std::min(config_.ceiling, base + doubts_ * base / 2);
}

/// Runs once for every heartbeat: were the last ones answered?
void detector::doubt(nanoseconds now) {
  std::size_t asked = 0;
  std::size_t silent = 0;
  for (const watched* w : subjects_) {
    if (!w->linked || w->suspected)
      continue;
    ++asked;
    silent += now - w->heard_at > 2 * config_.interval;
  }
  const bool company = silent < asked && now >= late_until_;
  const int most = company ? doubts_in_company : doubts_max;
  if (asked > 2 && 2 * silent > asked)
    doubts_ = std::max(doubts_, std::min(doubts_ + 1, most));
  else if (silent == 0 && doubts_ > 0)
    --doubts_;
}

void detector::on_tick(nanoseconds now, actions& out) {
  // We were stopped: that we heard nothing says nothing about the others.
  if (ticked_at_ > 0 && now - ticked_at_ > 3 * config_.interval) {
    doubts_ = std::min(doubts_ + 2, doubts_max);
    for (watched* w : subjects_)
      w->heard_at = now;
  }
  ticked_at_ = now;
  for (watched* w : subjects_)
    if (!w->suspected && now - w->heard_at > silence_max(*w))
      set_suspected(*w, true, now, out);
  if (now >= beat_at_)
    beat(now, out);
}

void detector::beat(nanoseconds now, actions& out) {
  if (beat_at_ > 0) {
    if (now - beat_at_ > config_.interval / 2)
      late_until_ = now + 2 * config_.floor;
    doubt(now);
  }
  beat_at_ = now + config_.interval;
  ++sequence_;
  if (auto notes = own_alerts(); !notes.empty())
    tell(notes, out); // again, since messages may be lost
  std::vector<peer_id> to;
  for (watched* w : subjects_) {
    if (!w->linked)
      continue;
    // One sample at a time, unless its heartbeat seems to be lost.
    if (w->sent_at == 0 || now - w->sent_at > config_.floor) {
      w->sent_at = now;
      w->sequence = sequence_;
    }
    to.push_back(w->id.peer);
  }
  if (!to.empty())
    out.push_back(send{to, heartbeat{view_->shoal, view_->number, sequence_}});
}

void detector::set_suspected(watched& w, bool suspected, nanoseconds now,
                             actions& out) {
  if (w.suspected == suspected)
    return;
  w.suspected = suspected;
  w.changed_at = now;
  ++stamp_;
  tell({note_of(w)}, out);
  count();
}

alert_note detector::note_of(const watched& w) const {
  return {index_of(*view_, config_.self), w.index, stamp_, w.suspected};
}

std::vector<alert_note> detector::own_alerts() const {
  std::vector<alert_note> out;
  for (const watched* w : subjects_)
    if (w->suspected)
      out.push_back(note_of(*w));
  return out;
}

void detector::tell(const std::vector<alert_note>& notes, actions& out) const {
  std::vector<peer_id> to;
  for (const auto& [id, w] : watched_)
    if (w.linked)
      to.push_back(id);
  if (!to.empty())
    out.push_back(
      send{std::move(to), gossip{view_->shoal, view_->number, notes}});
}

bool detector::suspects(const peer_id& peer) const {
  auto at = watched_.find(peer);
  return at != watched_.end()
         && (at->second.suspected
             || std::ranges::find(confirmed_, at->second.id)
                  != confirmed_.end());
}

bool detector::enough(std::size_t accusers, std::size_t watchers) const {
  if (rings_.all_watch())
    return 2 * accusers > watchers;
  return accusers > 0 && 10 * accusers >= accusers_of_ten * watchers;
}

/// Which deaths are confirmed, by the present notes. A watcher that is
/// confirmed as dead no longer counts, which may confirm others.
void detector::count() {
  std::set<std::uint32_t> accused;
  for (const auto& [subject, by] : notes_)
    accused.insert(subject);
  for (const watched* w : subjects_)
    if (w->suspected)
      accused.insert(w->index);
  for (std::uint32_t i : accused)
    if (!watchers_.contains(i))
      watchers_.emplace(i, rings_.watchers(i));
  auto accuses = [&](std::uint32_t who, std::uint32_t whom) {
    const peer_id& peer = view_->members[who].id.peer;
    if (peer == config_.self)
      return watched_.at(view_->members[whom].id.peer).suspected;
    auto at = notes_.find(whom);
    return at != notes_.end() && at->second.contains(who)
           && at->second.at(who).suspected;
  };
  std::set<std::uint32_t> dead;
  for (bool more = true; more;) {
    more = false;
    unstable_ = false;
    for (std::uint32_t subject : accused) {
      const std::vector<std::uint32_t>& all = watchers_.at(subject);
      std::size_t alive = 0;
      std::size_t accusers = 0;
      for (std::uint32_t w : all) {
        alive += !dead.contains(w);
        accusers += !dead.contains(w) && accuses(w, subject);
      }
      if (dead.contains(subject))
        continue;
      if (enough(accusers, alive))
        more = dead.insert(subject).second;
      else if (accusers >= (rings_.all_watch() ? 2 : noise_below))
        unstable_ = true;
    }
  }
  confirmed_.clear();
  for (std::uint32_t i : dead)
    confirmed_.push_back(view_->members[i].id);
}

nanoseconds detector::round_trip() const {
  std::vector<nanoseconds> all;
  for (const watched* w : subjects_)
    if (w->voter && w->linked && !w->suspected && w->round_trip > 0)
      all.push_back(w->round_trip + 4 * w->deviation);
  if (all.empty())
    return 0;
  const auto middle = all.begin() + std::ptrdiff_t(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return *middle;
}

std::vector<member_id> detector::cut_off(nanoseconds now) const {
  std::vector<member_id> out;
  for (const watched* w : subjects_)
    if (w->suspected && now - w->changed_at >= config_.cut_patience
        && std::ranges::find(confirmed_, w->id) == confirmed_.end())
      out.push_back(w->id);
  return out;
}

bool detector::well(const peer_id& peer, nanoseconds now) const {
  auto at = watched_.find(peer);
  return at != watched_.end() && at->second.linked && !at->second.suspected
         && now - at->second.changed_at >= config_.mend_patience;
}

nanoseconds detector::deadline() const {
  if (watched_.empty())
    return time_max;
  nanoseconds out = beat_at_;
  for (const watched* w : subjects_)
    if (!w->suspected)
      out = std::min(out, w->heard_at + silence_max(*w) + 1);
  return out;
}

} // namespace shoal::core::cluster
