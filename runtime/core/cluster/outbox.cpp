// runtime/core/cluster/outbox.cpp -- records being written and what waits for
// them.
#include "runtime/core/cluster/outbox.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

namespace {

template <class Record>
const Record* as(const outbox::write& w) {
  const auto* r = std::get_if<record>(&w);
  return r == nullptr ? nullptr : std::get_if<Record>(r);
}

bool same_view(const view_record& a, const view_record& b) {
  return a.current.shoal == b.current.shoal
         && a.current.number == b.current.number;
}

} // namespace

outbox::outbox(const history& stored) : has_view_(stored.view.has_value()) {
  if (stored.view) {
    shoal_ = stored.view->current.shoal;
    number_ = stored.view->current.number;
  }
}

void outbox::take(action a, actions& out) {
  if (auto* p = std::get_if<persist>(&a))
    return add(std::move(p->what));
  if (std::holds_alternative<erase_history>(a))
    return add(erase_history{});
  if (writes_.empty())
    out.push_back(std::move(a));
  else if (!passes(a, out))
    hold(std::move(a));
}

void outbox::add(write w) {
  ++last_;
  if (replaced(w))
    return;
  std::uint64_t first = last_;
  if (const auto* v = as<view_record>(w))
    overtake(*v, first);
  writes_.push_back({std::move(w), first});
}

/// Replaces a waiting record of the same kind, if `w` may take its position in
/// the order of writes (O-2).
bool outbox::replaced(const write& w) {
  for (auto e = writes_.begin() + (busy_ ? 1 : 0); e != writes_.end(); ++e) {
    const auto* view = as<view_record>(w);
    const auto* view_there = as<view_record>(e->what);
    const auto* vote = as<vote_record>(w);
    const auto* vote_there = as<vote_record>(e->what);
    const bool place =
      (view != nullptr && view_there != nullptr
       && same_view(*view, *view_there))
      || (vote != nullptr && vote_there != nullptr
          && vote->shoal == vote_there->shoal && vote->base == vote_there->base)
      || (as<key_record>(w) != nullptr && as<key_record>(e->what) != nullptr);
    if (place) {
      e->what = w;
      return true;
    }
  }
  return false;
}

/// Views before `v`, and votes for what has been decided meanwhile, no longer
/// need to be written.
void outbox::overtake(const view_record& v, std::uint64_t& first) {
  for (auto e = writes_.begin() + (busy_ ? 1 : 0); e != writes_.end();) {
    const auto* vote = as<vote_record>(e->what);
    const bool counts = vote != nullptr && vote->shoal == v.current.shoal
                        && vote->base == v.current.number;
    if (as<view_record>(e->what) != nullptr || (vote != nullptr && !counts)) {
      first = std::min(first, e->first);
      e = writes_.erase(e);
    } else {
      ++e;
    }
  }
}

/// Whether `a` reveals nothing unstored, or is changed so that it does not.
bool outbox::passes(const action& a, actions& out) const {
  const auto* s = std::get_if<send>(&a);
  if (s == nullptr) {
    const bool local = std::holds_alternative<need_tick_at>(a)
                       || std::holds_alternative<connect>(a)
                       || std::holds_alternative<waiting_for>(a)
                       || std::holds_alternative<rejected>(a)
                       || std::holds_alternative<log>(a);
    if (local)
      out.push_back(a);
    return local;
  }
  auto stored = [this](const shoal_id& shoal, epoch number) {
    return has_view_ && shoal == shoal_ && number <= number_;
  };
  // One without a number is no sign of life, but reveals a view.
  auto alive = [&](auto m) {
    if (!has_view_ || m.shoal != shoal_ || m.sequence == 0)
      return false;
    const bool all = stored(m.shoal, m.number);
    m.number = std::min(m.number, number_);
    out.push_back(send{s->to, m});
    return all; // otherwise it is sent again when more is stored
  };
  if (const auto* m = std::get_if<heartbeat>(&s->what))
    return alive(*m);
  if (const auto* m = std::get_if<heartbeat_ack>(&s->what))
    return alive(*m);
  const auto* m = std::get_if<gossip>(&s->what);
  if (m == nullptr || !stored(m->shoal, m->number))
    return false;
  out.push_back(a);
  return true;
}

void outbox::hold(action a) {
  if (std::holds_alternative<send>(a)) {
    if (held_sends_ >= held_sends_max)
      return;
    ++held_sends_;
  }
  held_.push_back({last_, std::move(a)});
}

std::optional<outbox::write> outbox::next() {
  if (busy_ || writes_.empty())
    return std::nullopt;
  busy_ = true;
  return writes_.front().what;
}

void outbox::written(bool stored, actions& out) {
  SHOAL_ASSERT(busy_);
  busy_ = false;
  if (!stored)
    return;
  const write& w = writes_.front().what;
  if (const auto* v = as<view_record>(w)) {
    has_view_ = true;
    shoal_ = v->current.shoal;
    number_ = v->current.number;
  } else if (std::holds_alternative<erase_history>(w)) {
    has_view_ = false;
  }
  writes_.pop_front();
  release(out);
}

void outbox::release(actions& out) {
  std::uint64_t safe = last_; // all records up to it are stored or replaced
  for (const entry& e : writes_)
    safe = std::min(safe, e.first - 1);
  while (!held_.empty() && held_.front().after <= safe) { // O-1
    held_sends_ -= std::holds_alternative<send>(held_.front().what);
    out.push_back(std::move(held_.front().what));
    held_.pop_front();
  }
}

} // namespace shoal::core::cluster
