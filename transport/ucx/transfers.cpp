// transport/ucx/transfers.cpp -- control messages and bulk.
//
// A bulk transfer is one active message. Small ones come with their bytes and
// are copied. Large ones come as an offer, and the receiver fetches the bytes
// straight into the posted memory. In both cases the receiver checks length and
// checksum and reports the result; only that report, not UCX's own, completes
// the send. Bulk within one machine has no checksum: everything else relies on
// its memory, too, and reading all bytes twice more costs as much as the copy.

#include "transport/assert.hpp"
#include "transport/ucx/engine.hpp"

#include <xxhash.h>

#include <cstring>
#include <utility>

namespace shoal::transport::ucx {

namespace {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

bool is_small(const send_op& op) {
  return op.header.kind != frame_kind::bulk
         && op.header.kind != frame_kind::message;
}

} // namespace

send_op& engine::make_send(link& l, frame_kind kind) {
  auto id = next_transfer_++;
  auto& op = l.sends[id];
  op.owner = this;
  op.on_link = &l;
  op.id = id;
  op.header.kind = kind;
  op.header.transfer = id;
  return op;
}

/// Hands `op` to UCX; `op` may be gone when this returns.
void engine::submit(send_op& op, std::uint32_t flags) {
  auto& l = *op.on_link;
  op.header.to_token = l.peer.token;
  op.header.from_token = token_;
  op.header.to_connection = l.peer_connection;
  op.header.from_connection = l.connection;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
                        | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = flags;
  params.user_data = &op;
  params.cb.send = &engine::on_sent;
  ++l.requests;
  auto request =
    ucp_am_send_nbx(l.endpoint, frame_id, &op.header, sizeof op.header,
                    op.payload.data(), op.payload.size(), &params);
  if (!UCS_PTR_IS_PTR(request))
    sent(op, UCS_PTR_STATUS(request));
}

void engine::on_sent(void* request, ucs_status_t status, void* op) noexcept {
  ucp_request_free(request);
  auto& o = *static_cast<send_op*>(op);
  o.owner->sent(o, status);
}

void engine::sent(send_op& op, ucs_status_t status) {
  auto& l = *op.on_link;
  --l.requests;
  op.sent = true;
  l.reached = l.reached || status == UCS_OK;
  if (status != UCS_OK) {
    l.failed = true;
    begin_close(l, errc::peer_lost, true);
  }
  if (op.header.kind == frame_kind::bulk) {
    // After a failure it ends with the link.
    if (op.answer)
      complete_send(op, *op.answer);
    else if (op.canceled)
      complete_send(op, errc::canceled);
    return;
  }
  if (is_small(op)) {
    --l.small;
  } else {
    --l.in_flight->messages;
    l.in_flight->message_bytes -= op.message.size();
  }
  if (l.bye == &op)
    l.bye = nullptr;
  if (l.ping == &op)
    l.ping = nullptr;
  l.sends.erase(op.id);
}

/// @returns the op if UCX still has it
send_op* engine::send_small(link& l, frame f, std::uint32_t flags) {
  if (l.failed || l.endpoint == nullptr)
    return nullptr;
  if (++l.small > small_frames_max) {
    --l.small;
    say("a peer does not read the answers to its frames; disconnecting");
    l.failed = true;
    begin_close(l, errc::peer_lost, true);
    return nullptr;
  }
  auto& op = make_send(l, f.kind);
  auto id = op.id;
  if (f.kind == frame_kind::bulk_ack)
    op.header.transfer = f.transfer;
  op.header.status = f.status;
  submit(op, flags | UCP_AM_SEND_FLAG_EAGER);
  auto found = l.sends.find(id);
  return found == l.sends.end() ? nullptr : &found->second;
}

void engine::send_message(link& l, command& c) {
  auto& op = make_send(l, frame_kind::message);
  op.message = std::move(c.message);
  op.payload = op.message;
  op.header.sequence = l.message_out++;
  op.header.checksum = checksum(op.payload);
  l.in_flight->sent_bytes += op.payload.size();
  submit(op, UCP_AM_SEND_FLAG_EAGER);
}

void engine::send_bulk(link& l, command& c) {
  auto& op = make_send(l, frame_kind::bulk);
  op.payload = c.from;
  op.done = c.done;
  op.header.plan = c.tag.plan;
  op.header.link = c.tag.link;
  op.header.sequence = c.tag.sequence;
  if (sums_bulk())
    op.header.checksum = checksum(op.payload);
  l.in_flight->sent_bytes += op.payload.size();
  bool large = op.payload.size() >= settings_.rendezvous_bytes_min;
  submit(op, large ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
}

void engine::post_receive(link& l, command& c) {
  receive_op op;
  op.owner = this;
  op.on_link = &l;
  op.tag = c.tag;
  op.into = c.into;
  op.done = c.done;
  l.posted.emplace(c.tag, op);
}

/// UCX sends queued messages of one endpoint in order, also those of several
/// fragments. If it ever does not, the link ends, and the order is kept.
void engine::on_control(link& l, const frame& f, const void* data,
                        std::size_t bytes) {
  std::span<const std::byte> message(static_cast<const std::byte*>(data),
                                     data == nullptr ? 0 : bytes);
  if (message.size() != bytes || bytes > control_bytes_max
      || f.sequence != l.message_in || f.checksum != checksum(message)) {
    say("a control message came damaged or out of order; disconnecting");
    begin_close(l, errc::peer_lost, false);
    return;
  }
  ++l.message_in;
  l.in_flight->received_bytes += bytes;
  handler_.message(l.peer.peer, message);
}

ucs_status_t engine::on_bulk(link& l, const frame& f, void* data,
                             std::size_t bytes, bool rendezvous) {
  auto tag = tag_of(f);
  auto found = l.posted.find(tag);
  if (found == l.posted.end() && take_commands())
    found = l.posted.find(tag); // the receive may be posted, but not yet taken
  if (l.now == link::state::closing)
    return UCS_OK;
  // find() gives any of equal tags; the oldest is first.
  found = l.posted.lower_bound(tag);
  if (found == l.posted.end() || found->first != tag) {
    answer(l, f, errc::not_posted);
    return UCS_OK;
  }
  auto node = l.posted.extract(found);
  auto& op = l.fetching.insert(std::move(node))->second;
  op.header = f;
  if (op.into.size() != bytes) {
    answer(l, f, errc::size_mismatch);
    complete_receive(op, errc::size_mismatch);
    return UCS_OK;
  }
  if (!rendezvous) {
    if (bytes != 0)
      std::memcpy(op.into.data(), data, bytes);
    received(op);
    return UCS_OK;
  }
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
                        | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  params.user_data = &op;
  params.cb.recv_am = &engine::on_fetched;
  auto request = ucp_am_recv_data_nbx(worker_->handle(), data, op.into.data(),
                                      bytes, &params);
  if (UCS_PTR_IS_ERR(request)) {
    begin_close(l, errc::peer_lost, false); // the op ends with the link
    return UCS_PTR_STATUS(request);
  }
  ++l.requests;
  return UCS_INPROGRESS;
}

void engine::on_fetched(void* request, ucs_status_t status, std::size_t,
                        void* op) noexcept {
  ucp_request_free(request);
  auto& o = *static_cast<receive_op*>(op);
  --o.on_link->requests;
  if (status == UCS_OK)
    o.owner->received(o);
  else // it ends with the link
    o.owner->begin_close(*o.on_link, errc::peer_lost, false);
}

/// All bytes are there: verifies and ends the transfer, on both sides.
void engine::received(receive_op& op) {
  auto& l = *op.on_link;
  auto status = errc::ok;
  if (op.canceled)
    status = errc::canceled;
  else if (sums_bulk() && checksum(op.into) != op.header.checksum)
    status = errc::corrupt;
  l.in_flight->received_bytes += op.into.size();
  answer(l, op.header, status);
  complete_receive(op, status == errc::ok ? std::error_code{}
                                          : make_error_code(status));
}

void engine::answer(link& l, const frame& of, errc status) {
  if (l.now == link::state::closing)
    return;
  frame f;
  f.kind = frame_kind::bulk_ack;
  f.transfer = of.transfer;
  f.status = static_cast<std::uint64_t>(status);
  send_small(l, f);
}

void engine::on_bulk_ack(link& l, const frame& f) {
  auto found = l.sends.find(f.transfer);
  if (found == l.sends.end() || found->second.header.kind != frame_kind::bulk)
    return; // it was cancelled
  auto& op = found->second;
  auto status = static_cast<errc>(f.status);
  switch (status) {
  case errc::ok:
    op.answer = std::error_code{};
    break;
  case errc::not_posted:
  case errc::size_mismatch:
  case errc::corrupt:
  case errc::canceled:
    op.answer = make_error_code(status);
    break;
  default:
    op.answer = make_error_code(errc::corrupt);
  }
  if (op.canceled)
    op.answer = make_error_code(errc::canceled);
  if (op.sent)
    complete_send(op, *op.answer);
}

void engine::complete_send(send_op& op, std::error_code result) {
  auto& l = *op.on_link;
  auto done = op.done;
  --l.in_flight->sends;
  l.sends.erase(op.id); // E-2
  done.run(done.context, result);
}

void engine::complete_receive(receive_op& op, std::error_code result) {
  auto& l = *op.on_link;
  auto done = op.done;
  --l.in_flight->receives;
  auto [first, last] = l.fetching.equal_range(op.tag);
  while (first != last && &first->second != &op)
    ++first;
  SHOAL_ASSERT(first != last);
  l.fetching.erase(first); // E-2
  done.run(done.context, result);
}

void engine::cancel(std::uint64_t plan) {
  // Completions may call any member but change no table: those calls are
  // queued.
  for (auto& [id, l] : links_) {
    for (auto& [tag, op] : l->fetching)
      op.canceled = op.canceled || tag.plan == plan;
    auto first = l->posted.lower_bound(bulk_tag{plan, 0, 0});
    while (first != l->posted.end() && first->first.plan == plan) {
      auto at = first++;
      auto& op = l->fetching.insert(l->posted.extract(at))->second;
      complete_receive(op, errc::canceled);
    }
    for (auto next = l->sends.begin(); next != l->sends.end();) {
      auto& op = next++->second;
      if (op.header.kind != frame_kind::bulk || op.header.plan != plan)
        continue;
      op.canceled = true;
      if (op.sent)
        complete_send(op, errc::canceled);
    }
  }
}

/// Ends everything left of a link that UCX has released.
void engine::end_transfers(link& l) {
  std::error_code why = closing_ ? errc::canceled : errc::peer_lost;
  auto end = [&](bool canceled) {
    return canceled ? make_error_code(errc::canceled) : why;
  };
  l.fetching.merge(l.posted);
  while (!l.fetching.empty()) {
    auto& op = l.fetching.begin()->second;
    complete_receive(op, end(op.canceled));
  }
  while (!l.sends.empty()) {
    auto& op = l.sends.begin()->second;
    if (op.header.kind == frame_kind::bulk)
      complete_send(op, op.answer.value_or(end(op.canceled)));
    else
      l.sends.erase(l.sends.begin());
  }
}

} // namespace shoal::transport::ucx
