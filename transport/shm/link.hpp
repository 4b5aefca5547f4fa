// transport/shm/link.hpp -- one connection to a peer, and its transfers.
//
// State       Ends when
// connecting  each end has mapped the other's channel: up; hello_timeout: gone
// up          the other end closed its channel or died, drop(), close(): gone
//
// A link ends within one turn of the loop (engine::finish), whatever the other
// end does.
//
// Threads: the progress thread only.
#pragma once

#include "transport/introduced/address.hpp"
#include "transport/introduced/commands.hpp"
#include "transport/shm/exposed.hpp"
#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <unordered_map>

namespace shoal::transport::shm {

using steady = std::chrono::steady_clock;

/// One outgoing bulk transfer; `bytes` belongs to the caller.
struct send_op {
  bulk_tag tag;
  std::span<const std::byte> bytes{};
  std::size_t offset = 0; ///< the bytes that are in the ring, or exposed
  completion done{};
  std::optional<std::uint64_t> place{}; ///< in our arena
  std::optional<std::size_t> slot{};    ///< it is exposed
};

/// One posted receive.
struct receive_op {
  std::span<std::byte> into{};
  completion done{};
};

/// A transfer that the peer has exposed; waits to be read or is being read.
struct reading {
  std::uint64_t transfer = 0;
  bulk_tag tag;
  std::size_t slot = 0;
  std::span<const std::byte> from{}; ///< in the peer's arena
  std::size_t offset = 0;            ///< how much of it has been copied
  bool withdrawn = false; ///< by the peer; its frame for that follows
  receive_op op;
};

/// The incoming transfer; the parts of two transfers are never mixed.
struct incoming {
  std::uint64_t transfer = 0; ///< 0: none
  bulk_tag tag;
  std::uint64_t offset = 0; ///< the offset that the next part must have
  bool wanted = false;      ///< `op` is valid; otherwise parts are dropped
  receive_op op;
};

struct link {
  enum class state { connecting, up };
  static constexpr std::size_t no_entry = ~std::size_t{0};

  introduced::node_address peer;
  std::string address; ///< as given to connect()
  state now = state::connecting;
  steady::time_point deadline{}; ///< of connecting
  std::shared_ptr<introduced::counters> in_flight =
    std::make_shared<introduced::counters>();

  // Outgoing.
  std::uint64_t connection = 0; ///< number of our channel
  segment channel;
  channel_head* head = nullptr; ///< in `channel`
  ring_writer writer;
  std::uint64_t taken = 0; ///< how far the peer had read at the last check
  exposure exposed;
  bool exposes = false;         ///< the peer reads our arena
  std::size_t entry = no_entry; ///< its place in our directory
  std::deque<std::vector<std::byte>> messages;
  std::size_t message_offset = 0; ///< of the first of them
  std::deque<frame> small;        ///< acks and ends
  std::deque<std::uint64_t> turn; ///< transfers not yet all in the ring
  std::unordered_map<std::uint64_t, send_op> sends; ///< by transfer

  // Incoming.
  int pidfd = -1;
  int bell = -1;              ///< rings the peer
  std::uint64_t rung_for = 0; ///< the peer's sleep that the bell was rung for
  view peer_directory;        ///< always mapped
  view peer_channel;          ///< empty until it has made one for us
  const channel_head* peer_head = nullptr; ///< in `peer_channel`
  std::uint64_t peer_connection = 0;       ///< the newest that was checked
  ring_reader reader;
  std::vector<std::byte> message;             ///< parts of a control message
  std::multimap<bulk_tag, receive_op> posted; ///< oldest first
  incoming current;
  view peer_arena;           ///< empty: it has none, or it cannot be mapped
  std::deque<reading> reads; ///< each has its own place in memory

  bool over = false; ///< ends in this turn of the loop, with the reason `why`
  std::error_code why;
  std::string next_address; ///< connect() to it afterwards
};

} // namespace shoal::transport::shm
