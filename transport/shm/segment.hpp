// transport/shm/segment.hpp -- memory of one process that others may read.
//
// A memfd without a name in any file system: it is gone with the last process
// that maps it, however that process ends, and other mount and network
// namespaces do not matter. Other processes open it as /proc/<pid>/fd/<n>,
// which the kernel allows to processes of the same user that can see the pid.
//
// It is sealed: it never shrinks (so reading it cannot fault), and other
// processes cannot map it for writing, if the kernel knows that seal (Linux
// 5.1). That seal also forbids returning pages. For pages::may_go, other
// processes cannot open it for writing instead, unless they are root or change
// its mode first. writing, unless they are root or change its mode first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shoal::transport::shm {

/// Owned memory, zeroed.
class segment {
public:
  enum class pages { stay, may_go };

  segment() = default;
  /// @throws std::system_error if there is no memory or descriptor
  explicit segment(std::size_t bytes, pages which = pages::stay);
  ~segment();
  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;

  std::span<std::byte> bytes() const { return {base_, size_}; }
  int descriptor() const { return fd_; }
  /// Returns the memory of whole pages; they are zero when touched again.
  /// @pre pages::may_go
  void release(std::span<std::byte> whole_pages) const noexcept;

private:
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// A segment of another process, read-only.
class view {
public:
  view() = default;
  ~view();
  view(view&& other) noexcept;
  view& operator=(view&& other) noexcept;

  /// @returns empty unless it is a sealed segment of at least `bytes`
  static std::optional<view>
  open(std::uint32_t pid, std::uint64_t descriptor, std::size_t bytes);
  std::span<const std::byte> bytes() const { return {base_, size_}; }

private:
  const std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// A pipe through which other processes wake its owner.
class bell {
public:
  /// @throws std::system_error
  bell();
  ~bell();
  bell(const bell&) = delete;
  bell& operator=(const bell&) = delete;

  int readable() const { return ends_[0]; } ///< for epoll
  int descriptor() const { return ends_[1]; }
  void silence() noexcept; ///< reads all rings

private:
  int ends_[2] = {-1, -1};
};

/// Opens the bell of another process; -1 if that fails.
int open_bell(std::uint32_t pid, std::uint64_t descriptor) noexcept;
void ring_bell(int fd) noexcept;

} // namespace shoal::transport::shm
