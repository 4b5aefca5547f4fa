// runtime/core/cluster/local/dialer.hpp -- when to connect to which address.
//
// A peer keeps trying the addresses of members without a connection. While it
// is alone it also keeps trying the addresses that the user gave. In company it
// tries those now and then, since one may belong to a shoal from which ours was
// separated. What follows is decided as for any two shoals that meet; two
// shoals that stay apart stay connected, so nothing is retried for ever.
//
// A revoked peer still has its address in old views, and members that were away
// still have the key. So an address that calls us revoked does not end this
// process: it is not dialled again before the next view, and its word counts
// only if no quorum admits us and we have no other contact for long.
//
// All functions that dial return the addresses to connect to, in order.
#pragma once

#include "runtime/core/cluster/local/situation.hpp"
#include "runtime/core/random.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::core::cluster {

/// A connection attempt without an answer counts as over.
inline constexpr nanoseconds dial_timeout = 3000 * milliseconds;
inline constexpr nanoseconds dial_pause_max = 2000 * milliseconds;
/// After this many failures, which take most of a minute, an address is tried
/// less often: a peer that comes back there dials us.
inline constexpr int eager_dials = 30;
inline constexpr nanoseconds dial_pause_idle = 10'000 * milliseconds;
/// In company an address that the user gave is tried again after this, and then
/// after twice as long each time it leads nowhere. If all of 1,000 members have
/// the same dead seed, it is dialled at most 17 times a second; two shoals that
/// can reach each other again meet within 75 s (a random quarter more spreads
/// the dials).
inline constexpr nanoseconds seed_pause = 5'000 * milliseconds;
inline constexpr nanoseconds seed_pause_max = 60'000 * milliseconds;
inline constexpr std::size_t seeds_max = 512;
/// Addresses of members and some that were discovered; more are not kept.
inline constexpr std::size_t dials_max = 1088;
inline constexpr std::size_t reached_max = 1088;
inline constexpr std::size_t barred_max = 1088;

/// Which other peers there are for a peer that is called revoked.
enum class support : std::uint8_t {
  quorum = 1,  ///< it is a member, in contact with its quorum
  contact = 2, ///< it must be admitted, and a peer is in contact
  none = 3,    ///< it must be admitted, and no peer is in contact
};

struct dialer_config {
  std::vector<std::string> seeds; ///< addresses that the user gave
  /// An embedded peer: tries them only while it is alone.
  bool embedded = false;
  nanoseconds shut_out_patience = 0;
};

class dialer {
public:
  using addresses = std::vector<std::string>;

  explicit dialer(dialer_config c) : config_(std::move(c)) {}

  /// Tries each once, except where an attempt is in progress.
  addresses dial_once(const addresses& all, const situation& s);
  /// The peer at these addresses has gone: earlier failures cause no delay.
  addresses redial(const addresses& all, bool once, const situation& s);
  /// The addresses of members and seeds that are due.
  addresses dial_due(const situation& s, random& spread);
  /// Discovery has found a peer at `address`. @param listed perhaps no peer is
  /// there
  addresses discovered(const std::string& address, bool listed,
                       const situation& s, random& spread);

  void failed(const std::string& address, nanoseconds now);
  /// A contact answers at `address`. @pre connected.contains(peer)
  void reached(const std::string& address, const peer_id& peer,
               const contacts& connected);
  /// A contact says that these addresses are its own.
  void forget_failures(const addresses& all);

  /// The peer at `address` calls us revoked.
  /// @returns whether this is the first time
  bool turned_away(const std::string& address, support has);
  /// A new view: other peers may use these addresses now, and be right.
  void trust_all() { barred_.clear(); }
  /// Whether a peer has called us revoked, and no other is there.
  bool is_shut_out() const { return shut_out_at_ != time_max; }
  /// To be called whenever the state is evaluated: only a quorum ends what was
  /// said, a contact puts the end of this peer off.
  /// @returns the address whose statement now counts
  std::optional<std::string> shut_out_by(support has, nanoseconds now);

  bool is_connected(const std::string& address, const situation& s) const;
  /// Whether the address was not dialled yet, or its first attempt is in
  /// progress.
  bool is_open(const std::string& address, const situation& s) const;
  /// When dial_due() or shut_out_by() next has something to do, after s.now.
  nanoseconds deadline(const situation& s) const;

private:
  /// An address that we connect to, or have tried.
  struct attempt {
    nanoseconds next_at = 0;
    nanoseconds pending_until = 0; ///< 0: none is in progress
    int failures = 0;
    bool once = false; ///< not tried again after a failure
  };

  /// When an address is tried again in company.
  struct seed {
    nanoseconds next_at = 0;
    nanoseconds pause = seed_pause;
  };

  void dial(const std::string& address, bool once, const situation& s,
            addresses& out);
  void try_seed(const std::string& address, const situation& s, random& spread,
                addresses& out);
  addresses wanted(const situation& s) const;
  bool tries_seeds(const situation& s) const;

  dialer_config config_;
  std::map<std::string, attempt> attempts_;
  std::map<std::string, seed> seeds_;      ///< tried in company
  std::map<std::string, peer_id> reached_; ///< the peer that answered there
  std::set<std::string> barred_;           ///< addresses that called us revoked
  std::string accuser_; ///< one of them; empty: none, or we were admitted
  nanoseconds shut_out_at_ = time_max; ///< when its statement counts
};

} // namespace shoal::core::cluster
