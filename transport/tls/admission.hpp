// transport/tls/admission.hpp -- who may wait at the door, and whose turn it
// is.
//
// Anybody may connect; only who proves himself stays. Until then a connection
// holds a place, of which there are few, and its handshake costs processor
// time, of which there is little. Both are shared out by address:
//
// - A newcomer always gets a place. If its address holds its share, or all
//   places are taken, somebody is sent away: one of the newcomer's address, or
//   of the address that holds the most; there the one that has come least far
//   (silent, speaking, secured), and of these the oldest. Between addresses
//   that hold as many, the same decides. So silent strangers push out each
//   other, and many of one address do not touch other addresses.
// - Whoever is not proved works by turns: to begin its handshake, and whenever
//   it has sent more. Addresses take turns. Handshakes begin at a bounded rate,
//   and there are no turns while those before have cost more than they may.
//
// at most `unproved` places are held, at most `unproved_per_address` by
//      one address.
// in any second at most `handshakes_burst` + `handshakes_per_second`
//      handshakes begin.
// in any time t the turns cost at most `work_burst` + `work_permille` of
//      t, and what the last of them costs above that.
//
// Pure: no sockets, no clock. An address is any string; the caller decides
// what counts as one (engine: IPv4 as it is, IPv6 by its /64).
//
// Threads: one at a time.
// Cost:    O(log places) but for a full house and one that leaves while it
//          waits for a turn: O(places).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace shoal::transport::tls {

struct admission_limits {
  /// Accepted connections that have not proved themselves. Higher lets more
  /// peers come at once, at the cost of a descriptor and up to 40 KiB each.
  std::size_t unproved = 256;
  /// Of one address: many peers may share one.
  std::size_t unproved_per_address = 128;
  /// Handshakes that may begin at once, and per second: a whole one costs about
  /// 0.3 ms, so these take less than a tenth of a core.
  std::size_t handshakes_burst = 256;
  std::size_t handshakes_per_second = 256;
  /// What all turns may take of the thread's time, in thousandths, and at once:
  /// 256 handshakes of 0.3 ms. It is counted as it was spent, so that strangers
  /// take no more than that where a handshake is made to cost more. Higher
  /// lets more peers in at once, at the cost of those that are.
  std::size_t work_permille = 80;
  std::chrono::milliseconds work_burst{80};
};

class admission {
public:
  /// Names a connection; later ones are larger.
  using ticket = std::uint64_t;
  /// Since any fixed moment.
  using time = std::chrono::nanoseconds;
  /// How far a connection has come.
  enum class progress : std::uint8_t { silent, speaking, secured };

  explicit admission(admission_limits limits);

  /// A connection takes a place. @returns who is to be closed for it, who has
  /// left with that.
  std::optional<ticket> arrive(ticket who, const std::string& address);

  /// It has said something, or ended its handshake. Nobody falls back.
  void advance(ticket who, progress to);

  /// It wants a turn, the first for its handshake; next() says when. One that
  /// waits already keeps its place. @pre it has a place
  void ask(ticket who);

  /// Whose turn it is at `now`, if anybody's.
  std::optional<ticket> next(time now);

  /// What a turn has cost.
  void spend(time cost);

  /// When next() has one again; nothing if nobody waits for it.
  std::optional<time> due() const;

  /// It is proved or closed. Unknown ones are ignored.
  void leave(ticket who);

  std::size_t places() const { return where_.size(); }

private:
  struct group {
    std::set<std::pair<progress, ticket>> places; ///< first: the next to go
    std::deque<ticket> asking;
  };
  struct place {
    std::string address;
    progress at = progress::silent;
    bool asks = false;
    bool begun = false; ///< it has had a turn
  };
  ticket push_out(group& from);
  void refill(time now);

  admission_limits limits_;
  std::map<std::string, group> groups_;
  std::map<ticket, place> where_;
  std::deque<std::string> turns_; ///< addresses with somebody asking, once each
  // Tokens in units of 1 / 10^9, so that a nanosecond's share is an integer.
  std::uint64_t tokens_;
  // In units of ns / 1000, for the same reason; below 0: spent in advance.
  std::int64_t work_;
  time counted_{0};
  bool started_ = false;
};

} // namespace shoal::transport::tls
