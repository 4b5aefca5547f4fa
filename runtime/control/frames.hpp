// runtime/control/frames.hpp -- length-prefixed messages on a stream socket.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shoal::runtime {

/// Length prefix of each message, little-endian.
inline constexpr std::size_t frame_length_bytes = 4;
/// Largest number of bytes that one fill() reads.
inline constexpr std::size_t frame_read_bytes = std::size_t{64} << 10;

/// Collects received bytes and returns whole messages.
class frame_reader {
public:
  /// Reads some of the available bytes. To keep memory bounded, read only while
  /// whole() is false. @returns false when the stream has ended or failed.
  bool fill(int fd);
  /// The same for bytes that were received otherwise.
  void add(std::span<const std::byte> bytes);

  /// Whether next() has a message, or has found the stream broken.
  bool whole() const noexcept;

  /// @returns whether `message` was set. A length over the limit sets
  ///          broken().
  bool next(std::vector<std::byte>& message);
  bool broken() const noexcept { return broken_; }

  /// Bytes that have been read and not returned. If nothing is read while
  /// whole() is true, they stay below the size of one message and one read.
  std::size_t bytes() const noexcept { return buffer_.size(); }

private:
  /// Size of the next message; none until its length has arrived.
  std::optional<std::size_t> next_bytes() const noexcept;

  std::vector<std::byte> buffer_;
  bool broken_ = false;
};

/// `message` after its length.
std::vector<std::byte> frame(std::span<const std::byte> message);

} // namespace shoal::runtime
