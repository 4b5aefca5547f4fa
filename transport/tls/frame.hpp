// transport/tls/frame.hpp -- the frames within an authenticated connection.
//
//   frame       u32 length of the body, u8 type, 3 zero bytes, body
//   control     the message                     1 .. control_bytes_max, or 0
//   bulk_header u64 transfer, u64 plan, u32 link, u32 sequence, u64 bytes
//   bulk_chunk  u64 transfer, then 1 .. chunk_bytes_max bytes
//   bulk_end    u64 transfer, u64 XXH3-64 of all its bytes
//   bulk_ack    u64 transfer, u32 verdict
//   bulk_abort  u64 transfer: no more of it follows
//   streams     u32 the number of bulk streams that the acceptor wants dialled
//
// Control and streams go by the control stream, the others by bulk streams. All
// integers are little-endian. The sender numbers its transfers upwards, per
// connection; several may be open, and their chunks interleave. The checksum
// comes last, so that it is computed while the bytes pass.
//
// The reader is a pure state machine: it says where the next bytes go, so that
// bulk is read straight into its region, and is told how many came.
//
// Threads: none of its own; one thread at a time uses a reader.
// Errors:  a malformed frame ends the stream; the reason is a literal.
#pragma once

#include "transport/fabric.hpp" // bulk_tag
#include "transport/limits.hpp"

#include <map>

namespace shoal::transport::tls {

enum class frame_type : std::uint8_t {
  control = 1,
  bulk_header = 2,
  bulk_chunk = 3,
  bulk_end = 4,
  bulk_ack = 5,
  bulk_abort = 6,
  streams = 7,
};

/// The frames that may come on a stream.
enum class stream_kind : std::uint8_t { control, bulk };

/// The range of lengths of a body.
struct length_limits {
  std::size_t least = 0;
  std::size_t most = 0;
};
length_limits limits_of(frame_type type);

/// The receiver's answer to a transfer.
enum class verdict : std::uint32_t {
  ok = 0,
  not_posted = 1,
  size_mismatch = 2,
  corrupt = 3,
  canceled = 4,
};

inline constexpr std::size_t frame_header_bytes = 8;
inline constexpr std::size_t chunk_head_bytes = frame_header_bytes + 8;
/// How long a transfer waits for another one's turn: 0.2 ms at 10 Gbit/s.
inline constexpr std::size_t chunk_bytes_max = std::size_t{256} << 10;
/// Transfers that a peer may have open; our own sender opens fewer.
inline constexpr std::size_t open_transfers_max = 16;
/// No region is larger: a header that claims more is a lie.
inline constexpr std::uint64_t bulk_bytes_max = std::uint64_t{1} << 46;

/// Receives the frames of a frame_reader.
class frame_sink {
public:
  virtual ~frame_sink() = default;
  virtual void on_control(std::span<const std::byte> message) = 0;
  virtual void
  on_bulk_header(std::uint64_t transfer, bulk_tag tag, std::uint64_t bytes) = 0;
  /// Where the next bytes of `transfer` go: a span of at most `bytes`, or an
  /// empty one if they are to be discarded.
  virtual std::span<std::byte>
  bulk_room(std::uint64_t transfer, std::size_t bytes) = 0;
  /// The first `bytes` of the last bulk_room() have been filled.
  virtual void on_bulk_bytes(std::uint64_t transfer, std::size_t bytes) = 0;
  virtual void on_bulk_end(std::uint64_t transfer, std::uint64_t checksum) = 0;
  virtual void on_bulk_abort(std::uint64_t transfer) = 0;
  /// @returns false if no such transfer can have been acknowledged.
  virtual bool on_bulk_ack(std::uint64_t transfer, verdict v) = 0;
  virtual void on_streams(std::uint32_t count) = 0;
};

/// Cuts a stream of bytes into frames.
class frame_reader {
public:
  frame_reader(frame_sink& sink, stream_kind kind) : sink_(sink), kind_(kind) {}

  /// @pre nothing has been read
  void set_kind(stream_kind kind) { kind_ = kind; }

  /// Where the next bytes go; never empty. Ask again after every commit().
  std::span<std::byte> room();

  /// Takes the first `bytes` of the last room().
  /// @returns null, or the error of the stream, which has then ended.
  [[nodiscard]] const char* commit(std::size_t bytes);

private:
  enum class stage { header, body, control, chunk };
  const char* begin_body();
  const char* end_body();
  const char* end_small();

  struct open_transfer {
    std::uint64_t left = 0;
  };

  frame_sink& sink_;
  stream_kind kind_;
  stage stage_ = stage::header;
  frame_type type_{};
  std::size_t need_ = frame_header_bytes; ///< bytes missing in this stage
  std::array<std::byte, 32> small_{};
  std::size_t small_fill_ = 0;
  std::uint32_t length_ = 0;
  std::vector<std::byte> message_;
  std::uint64_t transfer_ = 0; ///< whose chunk is being read
  bool discarding_ = false;
  std::vector<std::byte> waste_; ///< where discarded bytes go
  std::map<std::uint64_t, open_transfer> open_;
  std::uint64_t next_transfer_ = 0;
};

// The frames that a sender appends to its buffer.

using buffer = std::vector<std::byte>;
void append_control(buffer& out, std::span<const std::byte> message);
void append_bulk_header(buffer& out, std::uint64_t transfer, bulk_tag tag,
                        std::uint64_t bytes);
/// The head of a chunk; `bytes` of payload must follow.
void append_chunk_head(buffer& out, std::uint64_t transfer, std::size_t bytes);
void append_bulk_end(buffer& out, std::uint64_t transfer,
                     std::uint64_t checksum);
void append_bulk_ack(buffer& out, std::uint64_t transfer, verdict v);
void append_bulk_abort(buffer& out, std::uint64_t transfer);
void append_streams(buffer& out, std::uint32_t count);

} // namespace shoal::transport::tls
