// runtime/control/frames.hpp -- length-prefixed messages on a stream socket.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shoal::runtime {

/// Before each message: its length, little end first.
inline constexpr std::size_t frame_length_bytes = 4;
/// Most that one fill() takes.
inline constexpr std::size_t frame_read_bytes = std::size_t{64} << 10;

/// Collects what arrives and hands out whole messages.
class frame_reader {
public:
  /// Reads some of what is there. To keep memory bounded, read only while
  /// whole() is false. @returns false when the stream has ended or failed.
  bool fill(int fd);
  /// The same of bytes that came in another way.
  void add(std::span<const std::byte> bytes);

  /// Whether next() has something to hand out, or has found the stream broken.
  bool whole() const noexcept;

  /// @returns whether `message` was set. A length over the limit sets
  ///          broken().
  bool next(std::vector<std::byte>& message);
  bool broken() const noexcept { return broken_; }

  /// Bytes that have been read and not handed out. If nothing is read while
  /// whole() is true, they stay below one message and one read more.
  std::size_t bytes() const noexcept { return buffer_.size(); }

private:
  /// Of the message that comes next; none until its length has arrived.
  std::optional<std::size_t> next_bytes() const noexcept;

  std::vector<std::byte> buffer_;
  bool broken_ = false;
};

/// `message` behind its length.
std::vector<std::byte> frame(std::span<const std::byte> message);

} // namespace shoal::runtime
