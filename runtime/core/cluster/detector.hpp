// runtime/core/cluster/detector.hpp -- who of the view seems dead.
//
// Every member sends heartbeats to the others (to the next watchers_max in the
// ring, in a larger shoal) and expects answers. It suspects a member after a
// silence of max(floor, several intervals + round trips), or at once when the
// connection is lost and every address refuses another. Opinions are told to
// all; a suspicion is confirmed when more than half of the member's watchers
// that are not suspected themselves share it, this peer included. A cut
// between two members alone therefore removes neither.
//
// A peer that was itself stopped for a while doubts itself: it restarts its
// deadlines instead of suspecting everybody.
//
// Source: L. Suresh et al., Stable and Consistent Membership at Scale with
// Rapid, USENIX ATC 2018 (several watchers, one view change for many alerts);
// A. Dadgar et al., Lifeguard, DSN-W 2018 (self-doubt). Watching is all-to-all
// here, not by expander graph: shoals are small.
#pragma once

#include "runtime/core/cluster/events.hpp"

#include <map>
#include <set>
#include <vector>

namespace shoal::core::cluster {

/// Members that one peer sends heartbeats to.
inline constexpr std::size_t watchers_max = 16;

struct detector_config {
  peer_id self{};
  nanoseconds interval = 250'000'000;
  nanoseconds floor = 1'500'000'000;
};

class detector {
public:
  explicit detector(detector_config c);

  /// Watches the members of `v`; what is known of those that stay is kept.
  /// @pre `v` outlives its use
  void follow(const view& v, nanoseconds now);

  /// Suspects nobody for refused connections before this time: the others may
  /// be restarting as this peer is.
  void be_patient_until(nanoseconds when) { patient_until_ = when; }

  void link_up(const peer_id& peer, nanoseconds now, actions& out);
  void link_down(const peer_id& peer);
  /// A connection attempt to one of a member's addresses has failed.
  void refused(const member& m, const std::string& address, nanoseconds now,
               actions& out);

  /// An answer that shows the peer in our shoal.
  void on_ack(const peer_id& from, std::uint64_t sequence, nanoseconds now,
              actions& out);
  void on_alert(const peer_id& from, const alert& m);

  void on_tick(nanoseconds now, actions& out);
  /// Sends heartbeats at the next tick.
  void beat_now() { beat_at_ = 0; }

  bool suspects(const peer_id& peer) const;
  /// Members whose suspicion is confirmed.
  std::vector<member_id> confirmed() const;

  /// When on_tick has something to do.
  nanoseconds deadline() const;

private:
  struct watched {
    member_id id;
    bool watch = false; ///< we send it heartbeats
    bool linked = false;
    bool suspected = false;
    nanoseconds heard_at = 0;
    nanoseconds sent_at = 0; ///< of the heartbeat `sequence`
    std::uint64_t sequence = 0;
    nanoseconds round_trip = 0; ///< smoothed, 1/8 a sample
    nanoseconds deviation = 0;  ///< smoothed, 1/4 a sample
    std::set<std::string> refused;
    std::set<peer_id> accusers; ///< others that suspect it
  };

  bool watches(const peer_id& from, const peer_id& subject) const;
  nanoseconds silence_max(const watched& w) const;
  void set_suspected(watched& w, bool suspected, actions& out);
  void tell(const watched& w, actions& out) const;
  std::vector<peer_id> linked() const;

  detector_config config_;
  const view* view_ = nullptr;
  std::map<peer_id, watched> watched_; ///< all members but self
  nanoseconds beat_at_ = 0;
  nanoseconds ticked_at_ = 0;
  nanoseconds patient_until_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace shoal::core::cluster
