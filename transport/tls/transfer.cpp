// transport/tls/transfer.cpp -- reads and writes of an open connection.
//
// A connection sends control messages, a stream sends bulk. On a stream, up to
// bulk_window transfers take turns, so that a large one does not hold up a
// small one. Records are filled: data that does not fill one is copied and
// shares it with the data that follows.
#include "transport/assert.hpp"
#include "transport/tls/engine.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace shoal::transport::tls {
namespace {

/// One TLS record. OpenSSL holds at most one that the socket did not take, so a
/// retry never needs the rest of a payload.
constexpr std::size_t record_bytes = 16384;
/// Bytes read or written before other connections get their turn: 0.1 ms.
constexpr std::size_t turn_bytes = std::size_t{256} << 10;
/// Bytes that the library may take from the socket in a turn: bytes that are
/// not data make up the difference.
constexpr std::size_t turn_intake_bytes = 2 * turn_bytes;
/// The least cost of a read, so that a peer with many tiny records does not
/// hold up the others: each costs 0.5 us or more.
constexpr std::size_t read_cost_bytes = 256;
/// After a shorter read the socket counts as empty: asking it costs as much as
/// an event that it is not.
constexpr std::size_t short_read_bytes = 4096;
constexpr std::size_t bulk_window = 4;
static_assert(bulk_window <= open_transfers_max);
/// Bytes of answers that a peer may leave unread. It gets one per transfer.
constexpr std::size_t reply_bytes_max = std::size_t{1} << 20;

/// Sent instead of a payload that was cancelled within a chunk.
const std::array<std::byte, chunk_bytes_max> zeros{};

std::error_code error_of(verdict v) {
  switch (v) {
  case verdict::ok:
    return {};
  case verdict::not_posted:
    return errc::not_posted;
  case verdict::size_mismatch:
    return errc::size_mismatch;
  case verdict::corrupt:
    return errc::corrupt;
  case verdict::canceled:
    return errc::canceled;
  }
  return errc::corrupt;
}

} // namespace

void run(const due_list& list) noexcept {
  for (const auto& [done, result] : list)
    if (done.run)
      done.run(done.context, result);
}

void connection::read_some() {
  const auto self = shared_from_this();
  bool drained = false;
  tls_->allow(turn_intake_bytes);
  for (std::size_t turn = 0; turn < turn_bytes && !closed() && !drained;) {
    const auto room = reader_.room();
    const auto want = std::min<std::size_t>(room.size(), 1u << 30);
    const auto o = tls_->read(room.first(want));
    if (o.what != session::result::done) {
      count_traffic();
      retry(o, &connection::read_some);
      return answer();
    }
    turn += std::max(o.bytes, read_cost_bytes);
    read_bytes_ += o.bytes;
    if (const auto* wrong = reader_.commit(o.bytes))
      return fail(errc::peer_lost, std::string("malformed frame: ") + wrong);
    drained = o.bytes < short_read_bytes && !closed() && !tls_->pending();
  }
  if (closed())
    return;
  count_traffic();
  answer();
  if (closed())
    return;
  if (drained)
    return wait_read(&connection::read_some);
  asio::post(engine_.io, [self] {
    if (!self->closed())
      self->read_some();
  });
}

/// Writes the answers to what was read: once, not for every frame.
void connection::answer() {
  if (!closed()
      && (!replies_.empty() || std::exchange(write_after_read_, false)))
    write_some();
}

void connection::count_traffic() {
  if (!owner)
    return;
  if (read_bytes_ > 0)
    heard_at_ = std::chrono::steady_clock::now();
  std::lock_guard guard(engine_.mutex);
  owner->moved.received_bytes += std::exchange(read_bytes_, 0);
  owner->moved.sent_bytes += std::exchange(written_bytes_, 0);
}

// ---- sending ----

void connection::write_some() {
  if (closed() || waiting_write_)
    return;
  for (std::size_t turn = 0; turn < turn_bytes;) {
    if (retry_bytes_ == 0)
      gather();
    const auto before = written_bytes_;
    if (!write_piece())
      break;
    turn += written_bytes_ - before;
    if (turn >= turn_bytes)
      asio::post(engine_.io,
                 [self = shared_from_this()] { self->write_some(); });
  }
  if (!closed())
    count_traffic();
}

/// @returns false when there is nothing to write or the socket is full.
bool connection::write_piece() {
  const bool small = out_done_ < out_.size();
  const auto rest =
    small ? std::span<const std::byte>(out_).subspan(out_done_) : payload_;
  if (rest.empty())
    return false;
  auto bytes = std::min(rest.size(), record_bytes);
  if (retry_bytes_ != 0)
    bytes = std::exchange(retry_bytes_, 0);
  const auto o = tls_->write(rest.first(bytes));
  if (o.what != session::result::done) {
    retry_bytes_ = bytes;
    retry(o, &connection::write_some);
    return false;
  }
  written_bytes_ += o.bytes;
  if (!small) {
    payload_ = payload_.subspan(o.bytes);
  } else if ((out_done_ += o.bytes) == out_.size()) {
    out_.clear();
    out_done_ = 0;
  }
  return true;
}

/// Fills out_ to at least a record, if there is enough data.
void connection::gather() {
  if (out_done_ == out_.size() && payload_.size() < record_bytes) {
    out_.assign(payload_.begin(), payload_.end());
    out_done_ = 0;
    payload_ = {};
  }
  if (!payload_.empty() || out_.size() - out_done_ >= record_bytes
      || stage_ != stage::open)
    return;
  out_.erase(out_.begin(),
             out_.begin() + static_cast<std::ptrdiff_t>(out_done_));
  out_done_ = 0;
  out_.insert(out_.end(), replies_.begin(), replies_.end());
  replies_.clear();
  const bool control =
    owner && !is_stream() && owner->connections.front().get() == this; // T-2
  const bool bulk = owner && is_stream() && place < owner->bulk.size();
  while (out_.size() < record_bytes && payload_.empty())
    if (!(control && gather_control()) && !(bulk && gather_bulk()))
      break;
}

bool connection::gather_control() {
  std::lock_guard guard(engine_.mutex);
  if (owner->control.empty())
    return false;
  const auto message = std::move(owner->control.front());
  owner->control.pop_front();
  owner->control_bytes -= message.size();
  append_control(out_, message);
  return true;
}

void connection::activate_bulk() {
  std::lock_guard guard(engine_.mutex);
  auto& queue = owner->bulk[place];
  while (turn_.size() < bulk_window && !queue.empty()) {
    turn_.push_back(next_transfer_);
    sends_.emplace(next_transfer_, queue.front());
    queue.pop_front();
    ++next_transfer_;
  }
}

bool connection::gather_bulk() {
  if (turn_.size() < bulk_window)
    activate_bulk();
  if (turn_.empty())
    return false;
  const auto transfer = turn_.front();
  auto& s = sends_.at(transfer);
  if (!s.begun) {
    append_bulk_header(out_, transfer, s.what.tag, s.what.bytes.size());
    s.begun = true;
  }
  turn_.pop_front();
  if (s.offset < s.what.bytes.size())
    gather_chunk(transfer, s);
  if (s.offset < s.what.bytes.size()) {
    turn_.push_back(transfer);
  } else if (payload_.empty()) {
    append_bulk_end(out_, transfer, s.hash.sum(s.what.bytes));
    s.ended = true;
  } else {
    turn_.push_front(transfer); // its end follows the payload
  }
  return true;
}

/// Appends a chunk of the remaining bytes. Its first bytes share a record with
/// the head, and it ends with a record, unless the transfer ends before.
void connection::gather_chunk(std::uint64_t transfer, sending& s) {
  const auto left = s.what.bytes.subspan(s.offset);
  const auto head_end = out_.size() + chunk_head_bytes;
  const auto chunk = left.first(
    std::min(left.size(), chunk_bytes_max - head_end % record_bytes));
  append_chunk_head(out_, transfer, chunk.size());
  s.hash.add(chunk);
  s.offset += chunk.size();
  const auto room = (record_bytes - head_end % record_bytes) % record_bytes;
  auto beside = chunk.first(std::min(room, chunk.size()));
  if (chunk.size() - beside.size() < record_bytes)
    beside = chunk;
  out_.insert(out_.end(), beside.begin(), beside.end());
  payload_ = chunk.subspan(beside.size());
  payload_of_ = transfer;
}

void connection::forget_payload(std::uint64_t transfer) {
  if (!payload_.empty() && payload_of_ == transfer)
    payload_ = std::span(zeros).first(payload_.size());
}

bool connection::on_bulk_ack(std::uint64_t transfer, verdict v) {
  const auto found = sends_.find(transfer);
  if (found == sends_.end())
    return transfer < next_transfer_; // it was cancelled meanwhile
  if (!found->second.begun || (v == verdict::ok && !found->second.ended))
    return false;
  const auto done = found->second.what.done;
  if (!found->second.ended) {
    append_bulk_abort(replies_, transfer);
    forget_payload(transfer);
    std::erase(turn_, transfer);
    write_after_read_ = true; // there is room for another
  }
  sends_.erase(found);
  {
    std::lock_guard guard(engine_.mutex);
    --owner->bulk_sends;
  }
  run({{done, error_of(v)}});
  return true;
}

void connection::on_streams(std::uint32_t count) {
  engine_.streams_asked(shared_from_this(), count);
}

void connection::ask_for_streams(std::size_t count) {
  append_streams(replies_, static_cast<std::uint32_t>(count));
  write_some();
}

// ---- receiving ----

void connection::reply(std::uint64_t transfer, verdict v) {
  if (replies_.size() >= reply_bytes_max)
    return fail(errc::peer_lost, "it does not read its acknowledgements");
  append_bulk_ack(replies_, transfer, v);
}

void connection::on_control(std::span<const std::byte> message) {
  count_traffic(); // messages count before their handler runs
  engine_.handler.message(id_, message);
}

void connection::on_bulk_header(std::uint64_t transfer, bulk_tag tag,
                                std::uint64_t bytes) {
  posted_receive what;
  {
    std::lock_guard guard(engine_.mutex);
    const auto found = owner->receives.find(tag);
    if (found == owner->receives.end()) {
      what.into = {};
      bytes = UINT64_MAX;
    } else {
      what = found->second;
      owner->receives.erase(found);
    }
  }
  if (bytes == UINT64_MAX)
    return reply(transfer, verdict::not_posted);
  if (bytes != what.into.size()) {
    run({{what.done, errc::size_mismatch}});
    return reply(transfer, verdict::size_mismatch);
  }
  receives_.emplace(transfer, receiving(tag, what));
}

std::span<std::byte>
connection::bulk_room(std::uint64_t transfer, std::size_t bytes) {
  const auto found = receives_.find(transfer);
  if (found == receives_.end())
    return {};
  auto& r = found->second;
  return r.what.into.subspan(r.offset, bytes);
}

void connection::on_bulk_bytes(std::uint64_t transfer, std::size_t bytes) {
  auto& r = receives_.at(transfer);
  r.hash.add(r.what.into.subspan(r.offset, bytes));
  r.offset += bytes;
}

void connection::on_bulk_end(std::uint64_t transfer, std::uint64_t checksum) {
  const auto found = receives_.find(transfer);
  if (found == receives_.end())
    return;
  const auto& r = found->second;
  const bool equal = r.hash.sum(r.what.into) == checksum;
  const auto done = found->second.what.done;
  receives_.erase(found);
  count_traffic();
  run({{done, equal ? std::error_code() : errc::corrupt}});
  reply(transfer, equal ? verdict::ok : verdict::corrupt);
}

void connection::on_bulk_abort(std::uint64_t transfer) {
  const auto found = receives_.find(transfer);
  if (found == receives_.end())
    return;
  const auto done = found->second.what.done;
  receives_.erase(found);
  run({{done, errc::canceled}});
}

void connection::cancel(std::uint64_t plan, due_list& out) {
  for (auto s = sends_.begin(); s != sends_.end();) {
    if (s->second.what.tag.plan != plan) {
      ++s;
      continue;
    }
    if (!s->second.ended) {
      if (s->second.begun)
        append_bulk_abort(replies_, s->first);
      forget_payload(s->first);
      std::erase(turn_, s->first);
    }
    out.push_back({s->second.what.done, errc::canceled});
    s = sends_.erase(s);
    std::lock_guard guard(engine_.mutex);
    --owner->bulk_sends;
  }
  for (auto r = receives_.begin(); r != receives_.end();) {
    if (r->second.tag.plan != plan) {
      ++r;
      continue;
    }
    append_bulk_ack(replies_, r->first, verdict::canceled);
    out.push_back({r->second.what.done, errc::canceled});
    r = receives_.erase(r);
  }
}

} // namespace shoal::transport::tls
