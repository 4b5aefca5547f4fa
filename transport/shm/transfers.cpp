// transport/shm/transfers.cpp -- frames in and out.
//
// Out: small frames first, then control messages, then bulk, one transfer after
//      the other, in parts as large as the ring has room for.
// In:  parts of a transfer are copied into the region posted under its tag,
//      which is looked up once, when the transfer begins. If there is none, its
//      parts are dropped, and the sender is informed and stops.
// For transfers that bypass the ring see reads.cpp.

#include "transport/shm/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::transport::shm {

namespace {

/// Less room than this is not worth a part, unless it completes the transfer.
constexpr std::size_t part_bytes_min = 4096;

} // namespace

// ---- in

/// Takes the frames that the peer has published, up to turn_bytes.
bool engine::receive(link& l) {
  const channel_head& theirs = *l.peer_head;
  const auto begin = l.reader.taken();
  auto reported = begin;
  // `closed` is read first: then everything written before it is visible.
  const bool closed = theirs.closed.load(std::memory_order_acquire) != 0;
  const auto report = [&] {
    reported = l.reader.taken();
    l.head->taken.store(reported, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst); // E-2
    if (theirs.waits.load(std::memory_order_relaxed) != 0)
      wake(l);
  };
  while (!l.over && l.reader.taken() - begin < turn_bytes) {
    frame f;
    std::span<const std::byte> part;
    const auto got =
      l.reader.next(theirs.written.load(std::memory_order_acquire), f, part);
    if (got == ring_reader::result::none)
      break;
    if (got == ring_reader::result::broken) {
      broken(l, "corrupted its ring buffer");
      break;
    }
    switch (f.kind) {
    case frame_kind::gap:
      break;
    case frame_kind::message:
      on_message(l, f, part);
      break;
    case frame_kind::bulk:
      on_bulk(l, f, part);
      break;
    case frame_kind::bulk_at:
      on_bulk_at(l, f);
      break;
    case frame_kind::bulk_ack:
      on_bulk_ack(l, f);
      break;
    case frame_kind::bulk_end:
      on_bulk_end(l, f);
      break;
    default:
      broken(l, "sent a frame of unknown kind");
    }
    l.reader.pop();
    if (l.reader.taken() - reported >= ring_bytes / 4)
      report();
  }
  if (l.reader.taken() != reported)
    report();
  if (closed && !l.over
      && l.reader.taken() == theirs.written.load(std::memory_order_acquire)) {
    end(l, errc::peer_lost);
    return true;
  }
  return l.reader.taken() != begin;
}

void engine::broken(link& l, const char* fault) {
  say(std::string("a peer ") + fault + "; disconnecting");
  end(l, errc::peer_lost);
}

void engine::on_message(link& l, const frame& f,
                        std::span<const std::byte> part) {
  if (f.total > control_bytes_max || f.offset != l.message.size()
      || part.size() > f.total - f.offset)
    return broken(l, "sent a control message too long or out of order");
  l.message.insert(l.message.end(), part.begin(), part.end());
  if (l.message.size() != f.total)
    return;
  l.in_flight->received_bytes += f.total;
  handler_.message(l.peer.peer, l.message);
  l.message.clear();
  if (l.message.capacity() > payload_bytes_max)
    l.message.shrink_to_fit();
}

void engine::on_bulk(link& l, const frame& f, std::span<const std::byte> part) {
  if (f.offset == 0 && f.transfer != l.current.transfer)
    begin_transfer(l, f);
  if (l.over)
    return;
  incoming& in = l.current;
  if (f.transfer == 0 || f.transfer != in.transfer || f.offset != in.offset
      || f.offset > f.total || part.size() > f.total - f.offset)
    return broken(l, "sent parts of a transfer that do not fit together");
  in.offset += part.size();
  if (in.wanted) {
    // A total that changes during the transfer must not lead past the region.
    if (f.total != in.op.into.size())
      return broken(l, "changed the size of a transfer");
    if (!part.empty())
      std::memcpy(in.op.into.data() + f.offset, part.data(), part.size());
  }
  if (in.offset != f.total)
    return;
  if (std::exchange(in.wanted, false)) {
    l.in_flight->received_bytes += f.total;
    answer(l, in.transfer, errc::ok);
    complete_receive(l, in.op, {});
  }
  in.transfer = 0;
}

void engine::begin_transfer(link& l, const frame& f) {
  // The sender may silently give up a transfer only if it was not wanted.
  if (l.current.transfer != 0 && l.current.wanted)
    return broken(l, "began a transfer in the middle of another");
  l.current = {f.transfer, tag_of(f), 0, false, {}};
  if (const auto op = claim(l, f)) {
    l.current.op = *op;
    l.current.wanted = true;
  }
}

/// Finds the destination of a transfer; if there is none, says so at once.
std::optional<receive_op> engine::claim(link& l, const frame& f) {
  const bulk_tag tag = tag_of(f);
  auto found = l.posted.lower_bound(tag);
  if (found == l.posted.end() || found->first != tag) {
    take_commands(); // the receive may be posted, but not yet taken
    if (l.over)
      return {};
    found = l.posted.lower_bound(tag);
  }
  if (found == l.posted.end() || found->first != tag) {
    answer(l, f.transfer, errc::not_posted);
    return {};
  }
  const receive_op op = found->second;
  l.posted.erase(found);
  if (op.into.size() != f.total) {
    answer(l, f.transfer, errc::size_mismatch);
    complete_receive(l, op, errc::size_mismatch);
    return {};
  }
  return op;
}

void engine::on_bulk_ack(link& l, const frame& f) {
  switch (static_cast<errc>(f.status)) {
  case errc::ok:
    if (const auto at = l.sends.find(f.transfer);
        at != l.sends.end() && at->second.offset != at->second.bytes.size())
      return broken(l, "acknowledged data that it cannot have");
    return complete_send(l, f.transfer, {});
  case errc::not_posted:
  case errc::size_mismatch:
  case errc::canceled:
    return complete_send(l, f.transfer, static_cast<errc>(f.status));
  default:
    return broken(l, "sent an invalid acknowledgement");
  }
}

void engine::on_bulk_end(link& l, const frame& f) {
  if (end_reading(l, f.transfer, errc::canceled))
    return;
  if (l.current.transfer != f.transfer || !l.current.wanted)
    return;
  l.current.wanted = false;
  l.current.transfer = 0;
  complete_receive(l, l.current.op, errc::canceled);
}

void engine::answer(link& l, std::uint64_t transfer, errc status) {
  frame f;
  f.kind = frame_kind::bulk_ack;
  f.transfer = transfer;
  f.status = static_cast<std::uint64_t>(status);
  send_small(l, f);
}

void engine::complete_receive(link& l, const receive_op& op,
                              std::error_code result) {
  --l.in_flight->receives;
  op.done.run(op.done.context, result);
}

// ---- out

void engine::send_small(link& l, frame f) {
  if (l.small.size() >= small_frames_max)
    return broken(l, "does not read the answers to its transfers");
  l.small.push_back(f);
}

/// The bytes left of the next data to be sent.
std::size_t engine::bytes_left(const link& l) const {
  if (!l.small.empty())
    return 0;
  if (!l.messages.empty())
    return l.messages.front().size() - l.message_offset;
  if (l.turn.empty())
    return 0;
  const auto at = l.sends.find(l.turn.front());
  if (at == l.sends.end() || may_expose(l, at->second))
    return 0;
  return at->second.bytes.size() - at->second.offset;
}

/// The payload bytes that the next frame may have if the peer has read up to
/// `taken`; empty if it is better to wait for more.
std::optional<std::size_t>
engine::room(const link& l, std::uint64_t taken) const {
  const auto room = l.writer.room(taken);
  if (!room)
    return {};
  const bool at_end =
    (l.writer.written() & (ring_bytes - 1)) + sizeof(frame) + *room
    == ring_bytes;
  if (*room < std::min(bytes_left(l), part_bytes_min) && !at_end)
    return {};
  return room;
}

/// Checks how far the peer has read. The peer writes that at every message, so
/// it is not read while there is enough room.
/// @returns whether the value is plausible
bool engine::look_at_taken(link& l) {
  l.taken = l.peer_head->taken.load(std::memory_order_acquire);
  return l.writer.plausible(l.taken);
}

/// Writes as much as there is room for. @returns whether anything was written
bool engine::send(link& l) {
  bool sent = false;
  const auto begin = l.writer.written();
  while (l.writer.written() - begin < turn_bytes
         && (!l.small.empty() || !l.messages.empty() || !l.turn.empty())) {
    auto bytes = room(l, l.taken);
    if (!bytes || *bytes < std::min(bytes_left(l), payload_bytes_max)) {
      if (!look_at_taken(l)) {
        broken(l, "sent an impossible position");
        break;
      }
      bytes = room(l, l.taken);
    }
    const bool waits = l.head->waits.load(std::memory_order_relaxed) != 0;
    if (bytes) {
      send_next(l, *bytes);
      l.head->written.store(l.writer.written(), std::memory_order_release);
      if (waits) // a line that the peer reads at every message
        l.head->waits.store(0, std::memory_order_relaxed);
      wake(l);
      sent = true;
      continue;
    }
    if (waits)
      break;
    // Announced, then checked once more (E-2).
    l.head->waits.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  return sent;
}

/// Writes one frame with up to `room` bytes of payload.
void engine::send_next(link& l, std::size_t room) {
  frame f;
  if (!l.small.empty()) {
    l.writer.put(l.small.front(), {});
    l.small.pop_front();
    return;
  }
  const std::size_t bytes = std::min(bytes_left(l), room);
  if (bytes == 0 && bytes_left(l) != 0) { // the last line of the ring
    l.writer.put(f, {});                  // a gap
    return;
  }
  if (!l.messages.empty()) {
    auto& message = l.messages.front();
    f.kind = frame_kind::message;
    f.total = message.size();
    f.offset = l.message_offset;
    l.writer.put(f, std::span(message).subspan(l.message_offset, bytes));
    l.message_offset += bytes;
    l.in_flight->sent_bytes += bytes;
    if (l.message_offset == message.size()) {
      --l.in_flight->messages;
      l.in_flight->message_bytes -= message.size();
      l.messages.pop_front();
      l.message_offset = 0;
    }
    return;
  }
  const auto at = l.sends.find(l.turn.front());
  if (at == l.sends.end()) { // it ended before all of it was written
    l.turn.pop_front();
    l.writer.put(f, {}); // a gap
    return;
  }
  send_op& op = at->second;
  if (may_expose(l, op)) {
    expose(l, at->first, op);
    l.turn.pop_front();
    return;
  }
  f.kind = frame_kind::bulk;
  f.transfer = at->first;
  f.total = op.bytes.size();
  f.offset = op.offset;
  f.plan = op.tag.plan;
  f.link = op.tag.link;
  f.sequence = op.tag.sequence;
  l.writer.put(f, op.bytes.subspan(op.offset, bytes));
  op.offset += bytes;
  l.in_flight->sent_bytes += bytes;
  if (op.offset == op.bytes.size())
    l.turn.pop_front();
}

void engine::complete_send(link& l, std::uint64_t transfer,
                           std::error_code result) {
  const auto at = l.sends.find(transfer);
  if (at == l.sends.end())
    return; // it was cancelled
  const completion done = at->second.done;
  withdraw(l, at->second);
  l.sends.erase(at);
  --l.in_flight->sends;
  done.run(done.context, result);
}

void engine::cancel(std::uint64_t plan) {
  // Completions may call any member but change no table: those calls are
  // queued.
  for (auto& [id, owned] : links_) {
    link& l = *owned;
    if (l.over)
      continue; // the end of the link completes all of its operations
    if (l.current.wanted && l.current.tag.plan == plan) {
      l.current.wanted = false; // its parts are dropped from now on
      answer(l, l.current.transfer, errc::canceled);
      complete_receive(l, l.current.op, errc::canceled);
    }
    cancel_reads(l, plan);
    const auto first = l.posted.lower_bound(bulk_tag{plan, 0, 0});
    auto last = first;
    while (last != l.posted.end() && last->first.plan == plan)
      ++last;
    std::vector<receive_op> ended;
    for (auto i = first; i != last; ++i)
      ended.push_back(i->second);
    l.posted.erase(first, last);
    for (const auto& op : ended)
      complete_receive(l, op, errc::canceled);
    std::vector<std::uint64_t> mine;
    for (const auto& [transfer, op] : l.sends)
      if (op.tag.plan == plan)
        mine.push_back(transfer);
    for (const auto transfer : mine) {
      const auto& op = l.sends.at(transfer);
      if (op.slot || (op.offset != 0 && op.offset != op.bytes.size())) {
        frame f;
        f.kind = frame_kind::bulk_end;
        f.transfer = transfer;
        send_small(l, f);
      }
      complete_send(l, transfer, errc::canceled);
    }
  }
}

} // namespace shoal::transport::shm
