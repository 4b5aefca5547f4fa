// transport/tls/admission.hpp -- which strangers may wait, and whose turn it is.
//
// Anybody may connect, but only a peer that proves itself stays. Until then a
// connection holds a place, of which there are few, and its handshake costs
// processor time, of which there is little. Addresses share both:
//
// - A newcomer always gets a place. If its address holds its share, or all
//   places are taken, one connection is closed: one of the newcomer's address,
//   or one of the address that holds the most places. There it is the one with
//   the least progress (silent, speaking, secured), and among these the oldest. The
//   same rule decides between addresses that hold equally many. So silent
//   strangers push out each other, and many of one address do not affect other
//   addresses.
// - A connection that is not proved works by turns: to begin its handshake, and
//   whenever it has sent more. Addresses alternate. Handshakes begin at a
//   bounded rate, and there are no turns while earlier ones have cost more than
//   allowed.
//
// at most `unproved` places are held, at most `unproved_per_address` by
//      one address.
// in any second at most `handshakes_burst` + `handshakes_per_second`
//      handshakes begin.
// in any time t the turns cost at most `work_burst` + `work_permille` of
//      t, plus the cost of the last turn above that.
//
// Pure: no sockets, no clock. An address is any string; the caller decides what
// counts as one (engine: IPv4 unchanged, IPv6 by its /64).
//
// Threads: one at a time.
// Cost:    O(log places); O(places) when all places are taken, and when a
//          connection leaves while it waits for a turn.
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
  /// The same for one address: many peers may share one.
  std::size_t unproved_per_address = 128;
  /// Handshakes that may begin at once, and per second: a complete one costs
  /// about 0.3 ms, so these take less than a tenth of a core.
  std::size_t handshakes_burst = 256;
  std::size_t handshakes_per_second = 256;
  /// The share of the thread's time for all turns, in thousandths, and the
  /// burst: 256 handshakes of 0.3 ms. The time actually spent counts, so
  /// strangers take no more than that even if they make a handshake cost more.
  /// Higher lets more peers in at once, at the cost of connected peers.
  std::size_t work_permille = 80;
  std::chrono::milliseconds work_burst{80};
};

class admission {
public:
  /// Names a connection; later ones are larger.
  using ticket = std::uint64_t;
  /// Since any fixed moment.
  using time = std::chrono::nanoseconds;
  /// The progress of a connection.
  enum class progress : std::uint8_t { silent, speaking, secured };

  explicit admission(admission_limits limits);

  /// A connection takes a place. @returns the connection to be closed for it,
  /// which has left its place.
  std::optional<ticket> arrive(ticket id, const std::string& address);

  /// It has sent bytes, or ended its handshake. Progress never decreases.
  void advance(ticket id, progress to);

  /// It wants a turn, the first one for its handshake; next() grants it. A
  /// connection that waits already keeps its position. @pre it has a place
  void ask(ticket id);

  /// The connection whose turn it is at `now`, if any.
  std::optional<ticket> next(time now);

  /// Reports the cost of a turn.
  void spend(time cost);

  /// When next() grants a turn again; nothing if no connection waits for one.
  std::optional<time> due() const;

  /// It is proved or closed. Unknown tickets are ignored.
  void leave(ticket id);

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
  std::deque<std::string> turns_; ///< addresses that ask, once each
  // Tokens in units of 1 / 10^9, so that a nanosecond's share is an integer.
  std::uint64_t tokens_;
  // In units of ns / 1000 for the same reason; below 0: spent in advance.
  std::int64_t work_;
  time counted_{0};
  bool started_ = false;
};

} // namespace shoal::transport::tls
