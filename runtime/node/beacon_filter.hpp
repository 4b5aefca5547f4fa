// runtime/node/beacon_filter.hpp -- which beacons are worth a dial.
//
// A beacon is only a hint where to dial: who answers there must prove itself
// over TLS, on a connection of its own. So a recorded beacon that is sent
// again can cost dials, and nothing else; these are the rules that bound them.
//
// No two machines' clocks are compared: one whose clock is years off, as after
// a start without battery, is to be found too. A beacon's time is compared
// only with earlier ones of the same sender. A sender whose clock was set back
// is not heard by those that remember it, for sender_memory at most; it hears
// and dials them meanwhile, and one direction is enough.
//
// B-1: a beacon counts once, and not after a later one: of a sender and an
//      address only later times count, and of a sender nothing that is more
//      than reorder_window older than the newest.
// B-2: the address in a beacon is the one it comes from. A loopback address
//      counts only on the loopback interface, and there alone the two may
//      differ. So a beacon does nothing from another place.
// B-3: an address is dialled once in dial_pause, and dials_max a second are
//      made in all.
// B-4: beacons_of_source_max of one source address, and beacons_max in all,
//      are looked at in a second; the rest is dropped unread.
//
// What is left to a stranger on the network who repeats what he recorded: for
// each sender that this node has not heard (since its start, or for
// sender_memory), one dial, of the address where that sender once was. Whoever
// floods the network can hide beacons among his own: then --join helps.
//
// Threads: one at a time. Time is an argument.
// Cost:    a few look-ups; beacons_max hashes a second for each key.
#pragma once

#include "runtime/node/beacon.hpp"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

namespace shoal::runtime {

/// What became of datagrams.
struct beacon_counts {
  std::uint64_t dialled = 0;
  std::uint64_t connected = 0; ///< good, of a peer that is connected
  std::uint64_t crowded = 0;   ///< over a limit: not looked at
  std::uint64_t strange = 0;   ///< malformed, of another cluster or key
  std::uint64_t old = 0;       ///< repeated, or overtaken
  std::uint64_t elsewhere = 0; ///< from another address than they name
  std::uint64_t paused = 0;    ///< good, but dialled too lately
};

class beacon_filter {
public:
  using time = std::chrono::nanoseconds; ///< since any start; never falls

  /// 64 nodes of one machine share its address; each sends 5 in its first
  /// second, and one a second while it is alone.
  static constexpr std::size_t beacons_of_source_max = 320;
  /// 13 keys at most and 1 us for each: 5 % of a processor.
  static constexpr std::size_t beacons_max = 4096;
  /// Counted one by one; more sources share what one may send.
  static constexpr std::size_t sources_max = 256;
  /// As many as a shoal has members, and strangers.
  static constexpr std::size_t senders_max = 2048;
  /// Both families on as many interfaces as a sender uses.
  static constexpr std::size_t addresses_max = 64;
  /// Networks of different speed deliver one round of beacons so far apart.
  /// By the sender's clock alone.
  static constexpr std::uint64_t reorder_window_us = 2'000'000;
  static constexpr std::chrono::minutes sender_memory{10};
  static constexpr std::chrono::milliseconds dial_pause{500};
  static constexpr std::size_t dials_max = 256; ///< a second

  /// Where a datagram came from.
  struct origin {
    ip_address source{};
    bool loopback = false; ///< by the loopback interface
  };

  /// Whether to look at a datagram at all. (B-4)
  bool admits(const ip_address& source, time now);

  /// Counts what decode_beacon() refused.
  void strange() { ++counts_.strange; }

  enum class verdict : std::uint8_t { dial, connected, old, elsewhere, paused };
  /// `connected`: to its sender, so that no dial is spent on it.
  /// @pre the proof holds
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
  bool fresh(const beacon& b, time now);
  bool may_dial(const beacon& b, time now);

  beacon_counts counts_;
  time second_{}; ///< when the current one began
  std::size_t seen_ = 0;
  std::size_t dials_ = 0;
  std::map<ip_address, std::size_t> sources_;
  std::size_t others_ = 0; ///< of sources that found no place
  std::map<std::array<std::uint8_t, 8>, sender> senders_;
  std::map<place, time> dialled_; ///< in the last dial_pause
};

} // namespace shoal::runtime
