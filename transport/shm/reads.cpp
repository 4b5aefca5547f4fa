// transport/shm/reads.cpp -- transfers that are read in place.
//
// Out: a frame that names the place, and a slot (exposed.hpp). In: the region
// posted under the tag is found as for any transfer. It is filled in turns; the
// ring is read between them, so that messages pass.

#include "transport/shm/engine.hpp"
#include "transport/shm/foreign.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::transport::shm {

/// Maps the arena that the peer claims; without it, the peer sends by its ring.
void engine::map_arena(link& l) {
  const auto theirs = arena_of(*directory_of(l), arena_bytes_max);
  if (!theirs)
    return;
  auto seen = view::open(l.peer.pid, theirs->descriptor, theirs->bytes);
  if (seen)
    l.peer_arena = std::move(*seen);
  else
    say("cannot map a peer's memory: receiving its tensors through the ring");
}

// ---- out

bool engine::may_expose(const link& l, const send_op& op) const {
  return op.place && l.exposes && op.offset == 0 && !l.exposed.full();
}

/// @pre may_expose(), and the ring has room for a frame
void engine::expose(link& l, std::uint64_t transfer, send_op& op) {
  op.slot = l.exposed.expose(transfer);
  op.offset = op.bytes.size();
  frame f;
  f.kind = frame_kind::bulk_at;
  f.transfer = transfer;
  f.total = op.bytes.size();
  f.offset = *op.place;
  f.plan = op.tag.plan;
  f.link = op.tag.link;
  f.sequence = op.tag.sequence;
  f.slot = *op.slot;
  l.writer.put(f, {});
  l.in_flight->sent_bytes += op.bytes.size();
}

/// Runs before the memory returns to its owner.
void engine::withdraw(link& l, send_op& op) {
  if (op.slot)
    l.exposed.withdraw(*op.slot);
}

// ---- in

void engine::on_bulk_at(link& l, const frame& f) {
  const auto from = place_of(f, l.peer_arena.bytes());
  if (f.transfer == 0 || !from)
    return broken(l, "named a place outside its memory");
  if (const auto op = claim(l, f))
    l.reads.push_back({f.transfer, tag_of(f), f.slot, *from, 0, false, *op});
}

/// Copies from the oldest transfer that can be read, up to read_turn_bytes.
bool engine::read(link& l) {
  std::size_t left = read_turn_bytes;
  bool work = false;
  while (left != 0 && !l.over) {
    const auto entry = std::ranges::find(l.reads, false, &reading::withdrawn);
    if (entry == l.reads.end())
      break;
    work = true;
    const std::size_t part = std::min(left, entry->from.size() - entry->offset);
    if (part != 0)
      std::memcpy(entry->op.into.data() + entry->offset,
                  entry->from.data() + entry->offset, part);
    entry->offset += part;
    left -= part;
    if (!is_exposed(*l.peer_head, entry->slot, entry->transfer)) {
      entry->withdrawn = true; // its end follows, or the end of the link
      continue;
    }
    if (entry->offset != entry->from.size())
      continue;
    const reading done = *entry;
    l.reads.erase(entry);
    l.in_flight->received_bytes += done.from.size();
    answer(l, done.transfer, errc::ok);
    complete_receive(l, done.op, {});
  }
  return work;
}

/// @returns whether the transfer was being read
bool engine::end_reading(link& l, std::uint64_t transfer, std::error_code why) {
  const auto entry = std::ranges::find(l.reads, transfer, &reading::transfer);
  if (entry == l.reads.end())
    return false;
  const receive_op op = entry->op;
  l.reads.erase(entry);
  complete_receive(l, op, why);
  return true;
}

void engine::cancel_reads(link& l, std::uint64_t plan) {
  std::vector<reading> ended;
  std::erase_if(l.reads, [&](const reading& in) {
    if (in.tag.plan == plan)
      ended.push_back(in);
    return in.tag.plan == plan;
  });
  for (const reading& in : ended) {
    answer(l, in.transfer, errc::canceled);
    complete_receive(l, in.op, errc::canceled);
  }
}

} // namespace shoal::transport::shm
