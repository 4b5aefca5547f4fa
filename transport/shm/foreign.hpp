// transport/shm/foreign.hpp -- reads the memory of another process (S-1).
//
// A directory and the head of a channel may change while they are read, and may
// contain anything. Each value is read once; the copy is then checked. The
// tokens prove who wrote it, since strangers do not know them. It may still be
// wrong; its users handle that (view::open(), ring.hpp).
//
// Threads: the progress thread. Errors: nothing is returned for invalid data.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace shoal::transport::shm {

/// The directory in `bytes`; null unless it belongs to the node `token`.
const directory*
directory_in(std::span<const std::byte> bytes, std::uint64_t token);

/// Memory that another process claims to have.
struct place {
  std::uint64_t descriptor = 0; ///< in that process
  std::uint64_t bytes = 0;      ///< never 0
};

/// The arena that a node claims to have, at most `bytes_max`; empty: no arena.
std::optional<place> arena_of(const directory& theirs, std::uint64_t bytes_max);

/// A channel through which the owner of a directory sends.
struct channel_name {
  std::uint64_t connection = 0; ///< never 0
  std::uint64_t descriptor = 0; ///< in that process
};

/// The first channel in `theirs` that is for the node `token` and is not
/// `known_connection`.
std::optional<channel_name>
channel_for(const directory& theirs, std::uint64_t token,
            std::uint64_t known_connection);

/// The head of the channel in `bytes`; null unless it is `connection`, from the
/// node `from` to the node `to`.
const channel_head*
channel_in(std::span<const std::byte> bytes, std::uint64_t from,
           std::uint64_t to, std::uint64_t connection);

/// Whether `theirs` has mapped our channel `connection`, and is not closed.
bool hears(const channel_head& theirs, std::uint64_t connection);

} // namespace shoal::transport::shm
