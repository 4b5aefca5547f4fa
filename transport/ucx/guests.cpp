// transport/ucx/guests.cpp -- endpoints that others made: over TCP only.
//
// Of two nodes the one with the lower id knocks at the other's door
// (listener.hpp). What comes in is a guest, nobody in particular, until a
// hello on it shows the token of a peer that we were told of: then it is the
// endpoint of that link. A hello may come before we are told; it is kept.
// Guests who say nothing are sent away: few places, and a deadline.

#include "transport/ucx/engine.hpp"

#include <algorithm>
#include <utility>

namespace shoal::transport::ucx {

/// Whether the other end makes the endpoint.
bool engine::lets_other_begin(const link& l) const {
  return settings_.over == medium::tcp && settings_.self > l.peer.peer;
}

void engine::on_knock(ucp_listener_h door, ucp_conn_request_h request) {
  ucp_conn_request_attr_t from{};
  from.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  const bool trusted =
    ucp_conn_request_query(request, &from) == UCS_OK
    && contains_any(settings_.trusted,
                    reinterpret_cast<const sockaddr&>(from.client_address));
  if (closing_ || !trusted || knocks_.size() + guests_.size() >= guests_max)
    (void)ucp_listener_reject(door, request);
  else
    knocks_.push_back({door, request});
}

/// The guest on whom a frame came is the endpoint of `l` from now on.
void engine::adopt(link& l, ucp_ep_h endpoint) {
  if (guests_.erase(endpoint) != 0)
    l.endpoint = endpoint;
}

/// A hello of somebody whom we were not told of, or whose last link has not
/// quite ended: the next connect() takes it.
void engine::keep_early(const frame& f, const ucp_am_recv_param_t& param) {
  if ((param.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0
      && guests_.contains(param.reply_ep)) {
    std::erase_if(early_, [&](const auto& kept) { // one for each guest
      return kept.second.endpoint == param.reply_ep;
    });
    early_[f.from_token] = {f.from_connection, param.reply_ep};
  }
}

void engine::take_early(link& l) {
  const auto found = early_.find(l.peer.token);
  if (found == early_.end() || l.endpoint != nullptr)
    return;
  const early kept = found->second;
  early_.erase(found);
  adopt(l, kept.endpoint);
  if (l.endpoint == nullptr)
    return;
  l.peer_connection = kept.connection;
  send_ack(l);
  send_hello(l);
}

/// If `endpoint` is a guest's, it leaves.
void engine::guest_failed(ucp_ep_h endpoint) {
  const auto found = guests_.find(endpoint);
  if (found != guests_.end())
    found->second = steady::time_point{}; // receive_guests() closes it
}

/// Lets in who knocks, sends away who says nothing. Not from UCX callbacks.
bool engine::receive_guests(steady::time_point now) {
  if (settings_.over != medium::tcp || abandoned_)
    return false;
  bool work = false;
  for (const auto& [door, request] : std::exchange(knocks_, {})) {
    work = true;
    ucp_ep_h endpoint = nullptr;
    if (closing_)
      (void)ucp_listener_reject(door, request);
    else if (worker_->accept(request, &engine::on_failure, this, endpoint)
             == UCS_OK)
      guests_[endpoint] = now + guest_timeout;
  }
  for (auto next = guests_.begin(); next != guests_.end();) {
    const ucp_ep_h endpoint = next->first;
    const auto deadline = next->second;
    if (!closing_ && now < deadline) {
      ++next;
      continue;
    }
    work = true;
    next = guests_.erase(next);
    std::erase_if(early_, [&](const auto& kept) {
      return kept.second.endpoint == endpoint;
    });
    if (auto request = worker_->force_close(endpoint))
      leaving_.push_back(request);
  }
  std::erase_if(leaving_, [&](void* request) {
    if (ucp_request_check_status(request) == UCS_INPROGRESS)
      return false;
    ucp_request_free(request);
    work = true;
    return true;
  });
  if (closing_ && now >= abandon_at_)
    leaving_.clear(); // they end with the worker
  else if (closing_)
    work = true; // no sleep until they have gone
  return work;
}

/// When receive_guests() has something to do; never: max().
steady::time_point engine::guests_due(steady::time_point now) const {
  auto due = steady::time_point::max();
  for (const auto& [endpoint, deadline] : guests_)
    due = std::min(due, deadline);
  return leaving_.empty() ? due
                          : std::min(due, now + std::chrono::milliseconds(1));
}

} // namespace shoal::transport::ucx
