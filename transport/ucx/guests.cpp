// transport/ucx/guests.cpp -- endpoints that other nodes made: over TCP only.
//
// Of two nodes, the one with the lower id connects to the other's listener
// (listener.hpp). The incoming endpoint is a guest until a hello on it shows
// the token of a peer that was introduced to us: then it is the endpoint of
// that link. A hello may come before the introduction; it is kept. Guests that
// send no hello are closed: there are few places, and a deadline.

#include "transport/ucx/engine.hpp"

#include <algorithm>
#include <utility>

namespace shoal::transport::ucx {

/// Whether the other end makes the endpoint of `l`.
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

/// Makes the guest that sent a frame the endpoint of `l`.
void engine::adopt(link& l, ucp_ep_h endpoint) {
  if (guests_.adopt(endpoint))
    l.endpoint = endpoint;
}

/// Keeps the hello of a peer that was not introduced to us, or whose last link
/// has not quite ended: the next connect() takes it.
void engine::keep_early(const frame& f, const ucp_am_recv_param_t& param) {
  if ((param.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0)
    guests_.keep_early(param.reply_ep, f.from_token, f.from_connection);
}

void engine::take_early(link& l) {
  if (l.endpoint != nullptr)
    return;
  const auto kept = guests_.take_early(l.peer.token);
  if (!kept)
    return;
  adopt(l, kept->from);
  l.peer_connection = kept->connection;
  send_ack(l);
  send_hello(l);
}

/// If `endpoint` belongs to a guest, the guest leaves.
void engine::guest_failed(ucp_ep_h endpoint) {
  guests_.failed(endpoint); // receive_guests() closes it
}

/// Accepts new guests and closes silent ones. Not for UCX callbacks.
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
      guests_.enter(endpoint, now + guest_timeout);
  }
  for (const ucp_ep_h endpoint : guests_.take_overdue(now, closing_)) {
    work = true;
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
  const auto due = guests_.due();
  return leaving_.empty() ? due
                          : std::min(due, now + std::chrono::milliseconds(1));
}

} // namespace shoal::transport::ucx
