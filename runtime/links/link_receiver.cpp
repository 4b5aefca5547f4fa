// runtime/links/link_receiver.cpp -- posts memory, grants, and grants again.
#include "runtime/core/assert.hpp"
#include "runtime/links/link_state.hpp"

namespace shoal::runtime::links {

using transport::errc;

namespace {

/// The context of a fabric's completion, which owns it.
struct receive_posting {
  std::shared_ptr<state> hub;
  receive_ptr r;
};

void run_receive_posting(void* context, std::error_code result) noexcept {
  std::unique_ptr<receive_posting> own(static_cast<receive_posting*>(context));
  const auto hub = own->hub;
  hub->events.post([hub = hub.get(), r = std::move(own->r), result] {
    hub->received(r, result);
  });
}

} // namespace

void state::expect(const receive_ptr& r) {
  if (closed)
    return r->done(errc::canceled);
  use(r->tag.plan);
  auto& p = peers[r->peer];
  if (p.receives.contains(r->tag))
    return r->done(std::make_error_code(std::errc::invalid_argument));
  if (p.receives.size() >= link_service::transfers_max)
    return r->done(errc::would_block);
  p.receives.emplace(r->tag, r);
  post_again(r);
}

/// Keeps the order of posting: after those that wait already.
void state::post_again(const receive_ptr& r) {
  auto& p = peers[r->peer];
  r->at = receive::stage::waiting;
  p.held.push_back(r);
  stuck.insert(r->peer);
  flush_receives(p);
}

void state::flush_receives(peer& p) {
  while (!p.held.empty()) {
    const auto r = p.held.front();
    if (r->at == receive::stage::waiting && !post(p, r))
      return;
    // post() may have ended all transfers.
    if (!p.held.empty() && p.held.front() == r)
      p.held.pop_front();
  }
}

/// @returns whether `r` no longer waits.
bool state::post(peer& p, const receive_ptr& r) {
  for (const auto kind : settings.preference) {
    auto* f = fabric_of(kind);
    auto& c = p.connections[index(kind)];
    if (!f || !c.up)
      continue;
    auto own =
      std::make_unique<receive_posting>(receive_posting{shared_from_this(), r});
    r->fabric = kind;
    r->generation = c.generation;
    const auto error = f->post_receive(r->peer, r->tag, r->buffer.bytes,
                                       {run_receive_posting, own.get()});
    if (!error) {
      static_cast<void>(own.release()); // the completion owns it now
      r->at = receive::stage::posted;
      r->attempt = ++attempts;
      send_credit(r->peer, {r->tag, kind, credit_kind::grant, r->attempt});
      return true;
    }
    if (error == errc::would_block)
      return false;
    if (error != errc::peer_lost) {
      end(r, error);
      return true;
    }
    connection_lost(r->peer, kind, c.generation);
    if (r->at != receive::stage::waiting)
      return true;
  }
  return false;
}

void state::received(const receive_ptr& r, std::error_code result) {
  SHOAL_ASSERT(r->at == receive::stage::posted); // L-1
  if (!result)
    count(*r, false);
  if (r->detached) {
    end(r, result ? r->detached : result);
    return flush_all();
  }
  auto& p = peers[r->peer];
  r->at = receive::stage::waiting;
  if (!result) {
    if (p.finished.insert(r->tag).second)
      p.finished_order.push_back(r->tag);
    if (p.finished_order.size() > link_service::finished_max) {
      p.finished.erase(p.finished_order.front());
      p.finished_order.pop_front();
    }
    end(r, result);
  } else if (result == errc::peer_lost) {
    connection_lost(r->peer, r->fabric, r->generation);
    if (r->at == receive::stage::waiting)
      post_again(r);
  } else if (result == errc::corrupt
             && ++r->retries <= link_service::retries_max) {
    post_again(r);
  } else {
    end(r, result);
  }
  flush_all();
}

/// The sender cannot use one of our grants: its side of the fabric is broken.
void state::refusal(const peer_id& from, const link_credit& c) {
  auto& p = peers[from];
  const auto found = p.receives.find(c.tag);
  if (found == p.receives.end()) {
    if (p.finished.contains(c.tag))
      send_credit(from, {c.tag, c.fabric, credit_kind::complete, c.attempt});
    return;
  }
  const auto& r = *found->second;
  if (r.at == receive::stage::posted && r.attempt == c.attempt)
    drop(from, p, r.fabric); // L-3
}

void state::end(const receive_ptr& r, std::error_code result) {
  SHOAL_ASSERT(r->at != receive::stage::ended); // L-1
  r->at = receive::stage::ended;
  auto& known = peers[r->peer].receives;
  const auto found = known.find(r->tag);
  if (found != known.end() && found->second == r)
    known.erase(found);
  const auto done = std::move(r->done);
  r->done = nullptr;
  done(result);
  r->buffer = {}; // L-2
}

} // namespace shoal::runtime::links
