// transport/shm/ring.hpp -- frames in a ring of bytes: one writer, one reader.
//
// Positions count bytes from the beginning and never wrap. A frame and its
// payload are contiguous; the writer splits data that would not be.
//
// Threads: a writer and its reader are on different threads or in different
//          processes; they exchange positions by channel_head, with release
//          and acquire. Each of them alone is used by one thread.
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
  /// @pre the size of `ring` is a power of two
  explicit ring_writer(std::span<std::byte> ring) : ring_(ring) {}

  /// Payload bytes that the next frame may have if the reader has read up to
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
  /// Steps past the frame that next() returned.
  void pop() { taken_ += step_; }
  std::uint64_t taken() const { return taken_; }

private:
  std::span<const std::byte> ring_;
  std::uint64_t taken_ = 0;
  std::uint64_t step_ = 0;
};

} // namespace shoal::transport::shm
