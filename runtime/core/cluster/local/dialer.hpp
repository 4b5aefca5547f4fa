// runtime/core/cluster/local/dialer.hpp -- when to connect to which address.
//
// A peer does not stop trying the addresses of members without a connection
// and, while it is on its own, those that the user gave. In company it tries the
// latter now and then, since behind one may be a shoal that ours was parted
// from: what follows is decided as between any two that meet, so two that stay
// apart stay connected, and nothing is tried again and again.
//
// A revoked peer keeps its address in old views, and a key that members which
// were away still have. So an address that calls us revoked ends nobody: it is
// not dialled again before the next view, and its word counts only if we have
// no other contact for long.
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
/// After this many failures, most of a minute, an address is tried less often:
/// a peer that comes back there dials by itself.
inline constexpr int eager_dials = 30;
inline constexpr nanoseconds dial_pause_idle = 10'000 * milliseconds;
/// In company an address that was given is tried again after this, then after
/// twice as long each time it leads nowhere. Among 1,000 members that all have
/// one dead seed it is dialled 17 times a second at most; two shoals that can
/// reach each other again meet within 75 s (a quarter more spreads the dials).
inline constexpr nanoseconds seed_pause = 5'000 * milliseconds;
inline constexpr nanoseconds seed_pause_max = 60'000 * milliseconds;
inline constexpr std::size_t seeds_max = 512;
/// Addresses of members and some that were discovered; more are not kept.
inline constexpr std::size_t dials_max = 1088;
inline constexpr std::size_t reached_max = 1088;
inline constexpr std::size_t barred_max = 1088;

struct dialer_config {
  std::vector<std::string> seeds; ///< addresses that the user gave
  /// An embedded peer: tries them only while it is on its own.
  bool embedded = false;
  nanoseconds shut_out_patience = 0;
};

class dialer {
public:
  using addresses = std::vector<std::string>;

  explicit dialer(dialer_config c) : config_(std::move(c)) {}

  /// Tries each once, unless an attempt is under way.
  addresses dial_once(const addresses& all, const situation& s);
  /// The peer at these has gone: earlier failures are no reason to wait.
  addresses redial(const addresses& all, bool once, const situation& s);
  /// What is due of members and seeds.
  addresses dial_due(const situation& s, random& spread);
  /// Discovery has heard of a peer there. @param listed nobody need be there
  addresses discovered(const std::string& address, bool listed,
                       const situation& s, random& spread);

  void failed(const std::string& address, nanoseconds now);
  /// That contact answers there. @pre connected.contains(peer)
  void reached(const std::string& address, const peer_id& peer,
               const contacts& connected);
  /// A contact names these as its own.
  void forget_failures(const addresses& all);

  /// The peer there calls us revoked. @param alone nobody else can tell
  /// @returns whether that is new
  bool turned_away(const std::string& address, bool alone, nanoseconds now);
  /// A new view: others may be there, and be right.
  void trust_all() { barred_.clear(); }
  /// Whether such a word stands against us, and nobody else is in contact.
  bool is_accused() const { return !accuser_.empty(); }
  /// @param alone as in turned_away()
  /// @returns the address whose word now counts
  std::optional<std::string> shut_out_by(bool alone, nanoseconds now);

  bool is_connected(const std::string& address, const situation& s) const;
  /// Whether it was not dialled yet, or not for the first time to the end.
  bool is_open(const std::string& address, const situation& s) const;
  /// When dial_due() or shut_out_by() has something to do, after s.now.
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
  std::map<std::string, seed> seeds_;      ///< that were tried in company
  std::map<std::string, peer_id> reached_; ///< the peer that answered there
  std::set<std::string> barred_;           ///< called us revoked
  std::string accuser_; ///< one of them; empty: none, or we were admitted
  nanoseconds shut_out_at_ = time_max; ///< when its word counts
};

} // namespace shoal::core::cluster
