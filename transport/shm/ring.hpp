// transport/shm/ring.hpp -- frames in a ring of bytes: one writer, one reader.
//
// Positions count bytes since the beginning and never wrap. A frame and its
// payload lie in one piece; whoever writes splits what would not.
//
// Threads: a writer and its reader are on different threads or in different
//          processes; they exchange positions by channel_head, with release
//          and acquire. Each alone: one thread.
// Errors:  positions and frames that the other end cannot have meant are
//          reported as broken; nothing outside the ring is ever read.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace shoal::transport::shm {

class ring_writer {
public:
  ring_writer() = default;
  /// `ring` has a power of two of bytes.
  explicit ring_writer(std::span<std::byte> ring) : ring_(ring) {}

  /// Payload bytes that the next frame may have when the reader has got to
  /// `taken`; empty if not even a frame without payload fits.
  /// @pre plausible(taken)
  std::optional<std::size_t> room(std::uint64_t taken) const;
  bool plausible(std::uint64_t taken) const;
  /// Copies; the reader sees it once it knows written().
  /// @pre payload.size() <= room()
  void put(frame f, std::span<const std::byte> payload);
  std::uint64_t written() const { return written_; }

private:
  std::span<std::byte> ring_;
  std::uint64_t written_ = 0;
};

class ring_reader {
public:
  enum class result { none, frame, broken };

  ring_reader() = default;
  explicit ring_reader(std::span<const std::byte> ring) : ring_(ring) {}

  /// Looks at the next frame below `written`. `payload` is valid until the
  /// writer knows of taken(); it may change while it is read (S-1).
  result
  next(std::uint64_t written, frame& f, std::span<const std::byte>& payload);
  /// Goes past the frame that next() gave.
  void pop() { taken_ += step_; }
  std::uint64_t taken() const { return taken_; }

private:
  std::span<const std::byte> ring_;
  std::uint64_t taken_ = 0;
  std::uint64_t step_ = 0;
};

} // namespace shoal::transport::shm
