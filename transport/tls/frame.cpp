// transport/tls/frame.cpp -- reads and writes frames.
#include "transport/tls/frame.hpp"

#include "transport/assert.hpp"
#include "transport/tls/bytes.hpp"

#include <algorithm>

namespace shoal::transport::tls {
namespace {

constexpr std::size_t transfer_bytes = 8;
constexpr std::size_t waste_bytes = 16384;
/// A message buffer larger than this is freed after use.
constexpr std::size_t message_keep_bytes = 65536;

stream_kind kind_of(frame_type type) {
  return type == frame_type::control || type == frame_type::streams
           ? stream_kind::control
           : stream_kind::bulk;
}

void append_head(buffer& out, frame_type type, std::size_t length) {
  append(out, static_cast<std::uint32_t>(length));
  append(out, static_cast<std::uint32_t>(type)); // and three zeros
}

} // namespace

length_limits limits_of(frame_type type) {
  switch (type) {
  case frame_type::control:
    return {0, control_bytes_max};
  case frame_type::bulk_header:
    return {32, 32};
  case frame_type::bulk_chunk:
    return {transfer_bytes + 1, transfer_bytes + chunk_bytes_max};
  case frame_type::bulk_end:
    return {16, 16};
  case frame_type::bulk_ack:
    return {12, 12};
  case frame_type::bulk_abort:
    return {8, 8};
  case frame_type::streams:
    return {4, 4};
  }
  return {1, 0};
}

std::span<std::byte> frame_reader::room() {
  discarding_ = false;
  switch (stage_) {
  case stage::header:
  case stage::body:
    return std::span(small_).subspan(small_fill_, need_);
  case stage::control:
    return std::span(message_).last(need_);
  case stage::chunk:
    break;
  }
  const auto into = sink_.bulk_room(transfer_, need_);
  SHOAL_ASSERT(into.size() <= need_);
  if (!into.empty())
    return into;
  discarding_ = true;
  waste_.resize(waste_bytes);
  return std::span(waste_).first(std::min(need_, waste_bytes));
}

const char* frame_reader::commit(std::size_t bytes) {
  SHOAL_ASSERT(bytes <= need_);
  need_ -= bytes;
  if (stage_ == stage::header || stage_ == stage::body)
    small_fill_ += bytes;
  if (stage_ == stage::chunk) {
    open_[transfer_].left -= bytes;
    if (!discarding_)
      sink_.on_bulk_bytes(transfer_, bytes);
  }
  if (need_ > 0)
    return nullptr;
  if (stage_ == stage::header)
    return begin_body();
  return end_body();
}

const char* frame_reader::begin_body() {
  length_ = load<std::uint32_t>(small_, 0);
  const auto type = load<std::uint32_t>(small_, 4);
  if (type < 1 || type > static_cast<std::uint32_t>(frame_type::streams))
    return "unknown frame type";
  type_ = static_cast<frame_type>(type);
  if (kind_of(type_) != kind_)
    return kind_ == stream_kind::control ? "bulk on the control stream"
                                         : "control on a bulk stream";
  const auto limits = limits_of(type_);
  if (length_ < limits.least || length_ > limits.most)
    return type_ == frame_type::control ? "control message over the limit"
                                        : "wrong frame length";
  small_fill_ = 0;
  stage_ = stage::body;
  need_ = length_;
  if (type_ == frame_type::bulk_chunk)
    need_ = transfer_bytes; // its payload is a stage of its own
  if (type_ != frame_type::control)
    return nullptr;
  stage_ = stage::control;
  message_.resize(length_);
  return length_ == 0 ? end_body() : nullptr;
}

const char* frame_reader::end_body() {
  if (stage_ == stage::body && type_ == frame_type::bulk_chunk) {
    transfer_ = load<std::uint64_t>(small_, 0);
    const auto found = open_.find(transfer_);
    if (found == open_.end())
      return "chunk of a transfer that is not open";
    need_ = length_ - transfer_bytes;
    if (need_ > found->second.left)
      return "more bytes than the transfer has";
    stage_ = stage::chunk;
    return nullptr;
  }
  const auto ended = stage_;
  stage_ = stage::header;
  need_ = frame_header_bytes;
  small_fill_ = 0;
  if (ended == stage::body)
    return end_small();
  if (ended == stage::control) {
    sink_.on_control(message_);
    if (message_.capacity() > message_keep_bytes)
      message_ = {};
  }
  return nullptr;
}

const char* frame_reader::end_small() {
  if (type_ == frame_type::streams) {
    sink_.on_streams(load<std::uint32_t>(small_, 0));
    return nullptr;
  }
  const auto transfer = load<std::uint64_t>(small_, 0);
  switch (type_) {
  case frame_type::bulk_header: {
    const bulk_tag tag{load<std::uint64_t>(small_, 8),
                       load<std::uint32_t>(small_, 16),
                       load<std::uint32_t>(small_, 20)};
    const auto bytes = load<std::uint64_t>(small_, 24);
    if (transfer < next_transfer_)
      return "transfer number used twice";
    if (bytes > bulk_bytes_max)
      return "impossible transfer size";
    if (open_.size() >= open_transfers_max)
      return "too many open transfers";
    next_transfer_ = transfer + 1;
    open_[transfer] = {bytes};
    sink_.on_bulk_header(transfer, tag, bytes);
    return nullptr;
  }
  case frame_type::bulk_end: {
    const auto found = open_.find(transfer);
    if (found == open_.end() || found->second.left != 0)
      return "end of a transfer that is not complete";
    open_.erase(found);
    sink_.on_bulk_end(transfer, load<std::uint64_t>(small_, 8));
    return nullptr;
  }
  case frame_type::bulk_ack: {
    const auto v = load<std::uint32_t>(small_, 8);
    if (v > static_cast<std::uint32_t>(verdict::canceled))
      return "unknown verdict";
    return sink_.on_bulk_ack(transfer, static_cast<verdict>(v))
             ? nullptr
             : "acknowledged what was not sent";
  }
  case frame_type::bulk_abort:
    if (open_.erase(transfer) == 0)
      return "abort of a transfer that is not open";
    sink_.on_bulk_abort(transfer);
    return nullptr;
  default:
    break;
  }
  return "unknown frame type";
}

void append_control(buffer& out, std::span<const std::byte> message) {
  append_head(out, frame_type::control, message.size());
  out.insert(out.end(), message.begin(), message.end());
}

void append_bulk_header(buffer& out, std::uint64_t transfer, bulk_tag tag,
                        std::uint64_t bytes) {
  append_head(out, frame_type::bulk_header, 32);
  append(out, transfer);
  append(out, tag.plan);
  append(out, tag.link);
  append(out, tag.sequence);
  append(out, bytes);
}

void append_chunk_head(buffer& out, std::uint64_t transfer, std::size_t bytes) {
  append_head(out, frame_type::bulk_chunk, transfer_bytes + bytes);
  append(out, transfer);
}

void append_bulk_end(buffer& out, std::uint64_t transfer,
                     std::uint64_t checksum) {
  append_head(out, frame_type::bulk_end, 16);
  append(out, transfer);
  append(out, checksum);
}

void append_bulk_ack(buffer& out, std::uint64_t transfer, verdict v) {
  append_head(out, frame_type::bulk_ack, 12);
  append(out, transfer);
  append(out, static_cast<std::uint32_t>(v));
}

void append_bulk_abort(buffer& out, std::uint64_t transfer) {
  append_head(out, frame_type::bulk_abort, 8);
  append(out, transfer);
}

void append_streams(buffer& out, std::uint32_t count) {
  append_head(out, frame_type::streams, 4);
  append(out, count);
}

} // namespace shoal::transport::tls
