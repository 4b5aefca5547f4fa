// runtime/discovery/beacon_filter.hpp -- decides which beacons are worth a
// dial.
//
// A beacon is only a hint where to dial: the node that answers must prove
// itself over TLS, on a connection of its own. So a recorded beacon that is
// sent again can cost dials, and nothing else. These rules bound the dials.
//
// The clocks of two machines are never compared: a machine whose clock is years
// off, as after a start without battery, must be found, too. A beacon's time is
// compared only with earlier ones of the same sender. If the clock of a sender
// was set back, the nodes that remember it ignore its beacons, for at most
// sender_memory; meanwhile it hears and dials them, and one direction is
// enough.
//
// B-1: a beacon counts once, and not after a later one: for a sender and an
//      address only later times count, and for a sender no beacon that is more
//      than reorder_window older than the newest.
// B-2: the address in a beacon must be its source address. A loopback address
//      counts only on the loopback interface, and only there may the two
//      differ. So a beacon sent from elsewhere has no effect.
// B-3: an address is dialled at most once per dial_pause, and there are at most
//      dials_max dials a second.
// B-4: at most beacons_of_source_max beacons of one source address, and
//      beacons_max in all, are processed per second; the rest is dropped
//      unread.
//
// A stranger on the network who replays recorded beacons can still cause this:
// one dial for each sender that this node has not heard (since its start, or
// for sender_memory), to the address where that sender once was. A flood of the
// network can hide real beacons: then --join helps.
//
// Threads: one at a time. Time is an argument.
// Cost:    a few look-ups; beacons_max hashes per second for each key.
#pragma once

#include "runtime/discovery/apart_nodes.hpp" // recent_count
#include "runtime/discovery/beacon.hpp"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

namespace shoal::runtime {

/// Counts the outcomes of datagrams.
struct beacon_counts {
  std::uint64_t dialled = 0;
  std::uint64_t connected = 0; ///< valid, of a peer that is connected
  std::uint64_t crowded = 0;   ///< over a limit: dropped unread
  std::uint64_t strange = 0;   ///< malformed, of another cluster or key
  std::uint64_t old = 0;       ///< repeated, or overtaken
  std::uint64_t elsewhere = 0; ///< from another address than they name
  std::uint64_t paused = 0;    ///< valid, but dialled too recently
  recent_count strange_lately; ///< by the system's clock
};

class beacon_filter {
public:
  using time = std::chrono::nanoseconds; ///< since any start; never decreases

  /// 64 nodes of one machine share its address; each sends 5 in its first
  /// second, and one a second while it is alone.
  static constexpr std::size_t beacons_of_source_max = 320;
  /// 13 keys at most and 1 us for each: 5 % of a processor.
  static constexpr std::size_t beacons_max = 4096;
  /// Sources that are counted separately; others share the allowance of one.
  static constexpr std::size_t sources_max = 256;
  /// The number of members of a shoal, and strangers; also of their addresses.
  static constexpr std::size_t senders_max = 2048;
  /// Both families on all interfaces that a sender uses.
  static constexpr std::size_t addresses_max = 64;
  /// The time within which networks of different speed deliver one round of
  /// beacons, by the sender's clock alone.
  static constexpr std::uint64_t reorder_window_us = 2'000'000;
  static constexpr std::chrono::minutes sender_memory{10};
  static constexpr std::chrono::milliseconds dial_pause{500};
  static constexpr std::size_t dials_max = 256; ///< a second

  /// The origin of a datagram.
  struct origin {
    ip_address source{};
    bool loopback = false; ///< by the loopback interface
  };

  /// Whether to process a datagram at all. (B-4)
  bool admits(const ip_address& source, time now);

  /// Counts a datagram that decode_beacon() refused, at a Unix time.
  void strange(std::int64_t unix_ms) {
    ++counts_.strange;
    counts_.strange_lately.add(unix_ms);
  }

  /// Whether nodes of this cluster and key announced themselves from there
  /// lately. They also send with an old key, for members that were away.
  bool is_home(const ip_address& source, time now) const;

  enum class verdict : std::uint8_t { dial, connected, old, elsewhere, paused };
  /// `connected`: whether its sender is connected, so that it needs no dial.
  /// @pre the proof is valid
  verdict judge(const beacon& b, const origin& from, bool connected, time now);

  const beacon_counts& counts() const noexcept { return counts_; }

private:
  using place = std::pair<ip_address, std::uint16_t>;
  struct sender {
    std::uint64_t newest = 0;
    time heard_at{};
    std::map<place, std::uint64_t> times; ///< of the last reorder_window
  };

  void turn(time now);
  void remember_home(const ip_address& source, time now);
  bool fresh(const beacon& b, time now);
  bool may_dial(const beacon& b, time now);

  beacon_counts counts_;
  time second_{}; ///< when the current one began
  std::size_t seen_ = 0;
  std::size_t dials_ = 0;
  std::map<ip_address, std::size_t> sources_;
  std::size_t others_ = 0; ///< of sources that are not counted separately
  std::map<std::array<std::uint8_t, 8>, sender> senders_;
  std::map<place, time> dialled_; ///< in the last dial_pause
  std::map<ip_address, time> homes_; ///< where beacons that counted came from
};

} // namespace shoal::runtime
