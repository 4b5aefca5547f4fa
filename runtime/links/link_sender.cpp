// runtime/links/link_sender.cpp -- waits for grants and sends over the granted
// fabric.
#include "runtime/core/assert.hpp"
#include "runtime/links/link_state.hpp"

namespace shoal::runtime::links {

using transport::errc;

namespace {

/// The context of a fabric's completion, which owns it.
struct send_posting {
  std::shared_ptr<state> hub;
  sending_ptr s;
};

void run_send_posting(void* context, std::error_code result) noexcept {
  std::unique_ptr<send_posting> own(static_cast<send_posting*>(context));
  const auto hub = own->hub;
  hub->events.post(
    [hub = hub.get(), s = std::move(own->s), result] { hub->sent(s, result); });
}

} // namespace

void state::send(const sending_ptr& s) {
  if (closed)
    return s->done(errc::canceled);
  use(s->tag.plan);
  auto& p = peers[s->peer];
  if (p.sends.contains(s->tag))
    return s->done(std::make_error_code(std::errc::invalid_argument));
  if (p.sends.size() >= link_service::transfers_max)
    return s->done(errc::would_block);
  p.sends.emplace(s->tag, s);
  if (const auto early = p.early.extract(s->tag))
    start(p, s, early.mapped());
}

void state::grant(const peer_id& from, const link_credit& c) {
  if (is_cancelled(c.tag.plan))
    return;
  auto& p = peers[from];
  const auto found = p.sends.find(c.tag);
  if (found == p.sends.end()) {
    if (p.early.contains(c.tag)
        || p.early.size() < link_service::early_credits_max)
      p.early[c.tag] = c;
    return;
  }
  const auto s = found->second;
  const bool known = c.attempt == s->attempt;
  if (s->at == sending::stage::waiting || !known) {
    if (s->at != sending::stage::sending)
      return start(p, s, c);
    s->next = c;
    if (c.fabric != s->fabric)
      drop(from, p, s->fabric); // L-3
  }
}

void state::start(peer& p, const sending_ptr& s, const link_credit& c) {
  s->refused = false;
  s->fabric = c.fabric;
  s->attempt = c.attempt;
  s->held_ticks = 0;
  s->next.reset();
  const auto was = s->at;
  if (!fabric_of(c.fabric) || !p.connections[index(c.fabric)].up) {
    s->at = sending::stage::granted;
  } else if (!push(p, s)) {
    s->at = sending::stage::blocked;
    if (was != sending::stage::blocked)
      p.blocked.push_back(s);
    stuck.insert(s->peer);
  }
}

/// @returns false if the fabric's queue is full.
bool state::push(peer& p, const sending_ptr& s) {
  auto& c = p.connections[index(s->fabric)];
  s->generation = c.generation;
  auto own =
    std::make_unique<send_posting>(send_posting{shared_from_this(), s});
  const auto begun = now_ns();
  const auto error = fabric_of(s->fabric)->send_bulk(
    s->peer, s->tag, s->buffer.bytes, {run_send_posting, own.get()});
  if (!error) {
    static_cast<void>(own.release()); // the completion owns it now
    s->at = sending::stage::sending;
    meter_start(*s, begun);
  } else if (error == errc::would_block) {
    return false;
  } else if (error == errc::peer_lost) {
    s->at = sending::stage::waiting;
    connection_lost(s->peer, s->fabric, c.generation);
    if (s->at == sending::stage::waiting)
      wait_again(s, true);
  } else {
    end(s, error);
  }
  return true;
}

void state::sent(const sending_ptr& s, std::error_code result) {
  SHOAL_ASSERT(s->at == sending::stage::sending); // L-1
  meter_end(*s, !result);
  if (!result)
    count(*s, true);
  s->at = sending::stage::waiting;
  if (s->detached) {
    end(s, result ? s->detached : result);
  } else if (result == errc::peer_lost) {
    connection_lost(s->peer, s->fabric, s->generation);
    if (s->at == sending::stage::waiting)
      wait_again(s, true);
  } else if ((result == errc::corrupt || result == errc::not_posted)
             && ++s->retries <= link_service::retries_max) {
    wait_again(s, false);
  } else {
    end(s, result);
  }
  flush_all();
}

/// The transfer needs another grant, which may have come already.
void state::wait_again(const sending_ptr& s, bool refuse) {
  if (s->next) {
    const auto c = *s->next;
    return start(peers[s->peer], s, c);
  }
  s->at = sending::stage::waiting;
  s->refused = refuse;
  if (refuse)
    send_credit(s->peer, {s->tag, s->fabric, credit_kind::refuse, s->attempt});
}

/// The receiver has all bytes; only the answer was lost.
void state::completed(const peer_id& from, const link_credit& c) {
  auto& p = peers[from];
  const auto found = p.sends.find(c.tag);
  if (found == p.sends.end())
    return;
  const auto s = found->second;
  if (s->at == sending::stage::waiting && s->refused
      && s->attempt == c.attempt) {
    count(*s, true);
    end(s, {});
  }
}

void state::flush_sends(peer& p) {
  while (!p.blocked.empty()) {
    const auto s = p.blocked.front();
    if (s->at == sending::stage::blocked && !push(p, s))
      return;
    if (!p.blocked.empty() && p.blocked.front() == s)
      p.blocked.pop_front();
  }
}

void state::end(const sending_ptr& s, std::error_code result) {
  SHOAL_ASSERT(s->at != sending::stage::ended); // L-1
  s->at = sending::stage::ended;
  auto& known = peers[s->peer].sends;
  const auto found = known.find(s->tag);
  if (found != known.end() && found->second == s)
    known.erase(found);
  const auto done = std::move(s->done);
  s->done = nullptr;
  done(result);
  s->buffer = {}; // L-2
}

} // namespace shoal::runtime::links
