// transport/shm/foreign.hpp -- what the memory of another process says (S-1).
//
// A directory and the head of a channel may change while they are read, and
// hold anything: each value is read once, and is then a copy that is checked.
// Who wrote it is shown by the tokens, which strangers do not know; that it may
// be wrong all the same is the matter of who uses it (view::open(), ring.hpp).
//
// Threads: the progress thread. Errors: nothing, for what makes no sense.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace shoal::transport::shm {

/// The directory in `bytes`; null unless it is that of the node `token`.
const directory*
directory_in(std::span<const std::byte> bytes, std::uint64_t token);

/// Memory that another process says it has.
struct place {
  std::uint64_t descriptor = 0; ///< in that process
  std::uint64_t bytes = 0;      ///< never 0
};

/// The arena that a node says it has, of `bytes_max` at most; none: no arena.
std::optional<place> arena_of(const directory& theirs, std::uint64_t bytes_max);

/// A channel by which the node that owns a directory can be heard.
struct channel_name {
  std::uint64_t connection = 0; ///< never 0
  std::uint64_t descriptor = 0; ///< in that process
};

/// The first channel in `theirs` that is for the node `token`, and is another
/// than `known`.
std::optional<channel_name>
channel_for(const directory& theirs, std::uint64_t token, std::uint64_t known);

/// The head of the channel in `bytes`; null unless it is `connection`, from the
/// node `from` to the node `to`.
const channel_head*
channel_in(std::span<const std::byte> bytes, std::uint64_t from,
           std::uint64_t to, std::uint64_t connection);

/// Whether `theirs` has mapped our channel `connection`, and is not closed.
bool hears(const channel_head& theirs, std::uint64_t connection);

} // namespace shoal::transport::shm
