// runtime/node/frames.hpp -- length-prefixed messages on a stream socket.
//
// Threads: one at a time.
#pragma once

#include "runtime/node/file.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Collects what arrives and hands out whole messages.
class frame_reader {
public:
  /// Reads what is there. @returns false when the stream has ended or failed.
  bool fill(int fd);

  /// @returns whether `message` was set. A length over the limit sets
  ///          broken().
  bool next(std::vector<std::byte>& message);
  bool broken() const noexcept { return broken_; }

private:
  std::vector<std::byte> buffer_;
  bool broken_ = false;
};

/// `message` behind its length.
std::vector<std::byte> frame(std::span<const std::byte> message);

/// A listening Unix socket, mode 0600; replaces one that nobody serves. The
/// path may be longer than a socket address takes. Throws node_error.
unique_fd listen_unix(const std::filesystem::path& socket);

/// @returns an empty descriptor when nobody listens there.
unique_fd connect_unix(const std::filesystem::path& socket);

} // namespace shoal::runtime
