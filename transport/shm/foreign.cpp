// transport/shm/foreign.cpp -- values are read once, then checked.

#include "transport/shm/foreign.hpp"

namespace shoal::transport::shm {

namespace {

/// Reads a value that another process may be writing, exactly once.
std::uint64_t once(const std::uint64_t& value) {
  return *static_cast<const volatile std::uint64_t*>(&value);
}

template <class T>
const T* at_start_of(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)
      || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) != 0)
    return nullptr;
  return reinterpret_cast<const T*>(bytes.data());
}

} // namespace

const directory*
directory_in(std::span<const std::byte> bytes, std::uint64_t token) {
  const auto* theirs = at_start_of<directory>(bytes);
  return theirs != nullptr && once(theirs->magic) == magic
             && once(theirs->token) == token
           ? theirs
           : nullptr;
}

std::optional<place>
arena_of(const directory& theirs, std::uint64_t bytes_max) {
  const place arena{once(theirs.arena_descriptor), once(theirs.arena_bytes)};
  if (arena.bytes == 0 || arena.bytes > bytes_max)
    return {};
  return arena;
}

std::optional<channel_name>
channel_for(const directory& theirs, std::uint64_t token,
            std::uint64_t known_connection) {
  for (const directory_entry& e : theirs.entries) {
    if (e.to.load(std::memory_order_acquire) != token)
      continue;
    const channel_name channel{e.connection.load(std::memory_order_relaxed),
                               e.descriptor.load(std::memory_order_relaxed)};
    if (channel.connection != 0 && channel.connection != known_connection)
      return channel;
  }
  return {};
}

const channel_head*
channel_in(std::span<const std::byte> bytes, std::uint64_t from,
           std::uint64_t to, std::uint64_t connection) {
  const auto* theirs = at_start_of<channel_head>(bytes);
  return theirs != nullptr && once(theirs->magic) == magic
             && once(theirs->from) == from && once(theirs->to) == to
             && once(theirs->connection) == connection
           ? theirs
           : nullptr;
}

bool hears(const channel_head& theirs, std::uint64_t connection) {
  return theirs.closed.load(std::memory_order_acquire) == 0
         && theirs.hears.load(std::memory_order_acquire) == connection;
}

} // namespace shoal::transport::shm
