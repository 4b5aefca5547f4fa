// runtime/core/cluster/detector.hpp -- which members of the view seem dead.
//
// Every voter sends heartbeats to its subjects (rings.hpp). It suspects a
// subject after a silence of several intervals and round trips, or at once when
// the connection is lost and every address of the subject refuses a new one. It
// reports its opinions to all members. A death is confirmed when enough of the
// member's watchers share the suspicion; a watcher that is itself confirmed as
// dead does not count. So a cut between just two members removes neither: a
// member that stays suspected without being confirmed is cut off from us.
//
// While a member has some accusers but not enough, other changes wait a little
// (unstable()), so that simultaneous deaths become one view change.
//
// A peer doubts itself if it was stopped, if most of its subjects do not
// answer, or if it has accused a living peer. Every doubt makes its deadlines
// longer, and every round of heartbeats with answers takes one doubt back. The
// second reason counts little while the peer's own heartbeats are in time and
// some subjects answer.
//
// Source: L. Suresh et al., Stable and Consistent Membership at Scale with
// Rapid, USENIX ATC 2018 (rings, cut detection; opinions may be taken back
// here); A. Dadgar et al., Lifeguard, DSN-W 2018 (self-doubt); RFC 6298 (four
// deviations).
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/cluster/rings.hpp"

#include <map>
#include <set>
#include <vector>

namespace shoal::core::cluster {

/// Of 10 watchers, this many confirm a death (H of Rapid; 7 rather than its 9,
/// so that three slow watchers hide no death), and fewer than the second number
/// are noise (L). Where all voters watch, more than half confirm and 2 are not
/// noise: then any quorum of living voters can confirm every dead member.
inline constexpr std::size_t accusers_of_ten = 7;
inline constexpr std::size_t noise_below = 3;
/// The most doubts that a peer has in itself; each adds half a deadline.
inline constexpr int doubts_max = 8;
/// The most doubts where most subjects are silent, but one answers and our own
/// heartbeats are in time: then the fault is hardly ours, as half of a shoal
/// may have died at once. Gives 2.25 s rather than 7.5 s at the defaults.
inline constexpr int doubts_in_company = 1;

struct detector_config {
  peer_id self{};
  nanoseconds interval = 250'000'000;
  /// No deadline is shorter. On a near network this is the deadline that
  /// counts: there, a heartbeat that is a second late means a loaded scheduler,
  /// not a dead peer, and the round trips measured in an idle moment are too
  /// short to judge by. With round trips above 375 ms (at these defaults), or
  /// with large variance, the measured part is longer and counts instead.
  nanoseconds floor = 1'500'000'000;
  /// No deadline is longer, however slow the peer is and however often we
  /// doubt.
  nanoseconds ceiling = 10'000'000'000;
  /// A member suspected for this long, without confirmation, is cut off.
  nanoseconds cut_patience = 2'000'000'000;
  /// A member heard without a break for this long is no longer cut off.
  nanoseconds mend_patience = 2'000'000'000;
};

class detector {
public:
  explicit detector(detector_config c);

  /// Watches subjects of `v`. Keeps the state of members that stay.
  /// @pre `v` outlives its use
  void follow(const view& v, nanoseconds now);

  /// Suspects no member for refused connections before this time: the others
  /// may be restarting, as this peer is.
  void be_patient_until(nanoseconds when) { patient_until_ = when; }

  void link_up(const peer_id& peer, nanoseconds now, actions& out);
  void link_down(const peer_id& peer);
  /// A connection attempt to one of a member's addresses has failed.
  void refused(const member& m, const std::string& address, nanoseconds now,
               actions& out);

  /// An answer that shows that the peer is in our shoal.
  void on_ack(const peer_id& from, std::uint64_t sequence, nanoseconds now,
              actions& out);
  /// Opinions of the watcher `from` about members of our view.
  void on_alerts(const peer_id& from, const std::vector<alert_note>& notes);

  void on_tick(nanoseconds now, actions& out);
  /// Sends heartbeats at the next tick.
  void beat_now() { beat_at_ = 0; }

  bool suspects(const peer_id& peer) const;
  /// Members with a confirmed death.
  const std::vector<member_id>& confirmed() const { return confirmed_; }
  /// Whether some member has more accusers than noise, but too few to confirm.
  bool unstable() const { return unstable_; }
  /// Members that for long only we, or too few others, cannot reach.
  std::vector<member_id> cut_off(nanoseconds now) const;
  /// Whether the peer is in contact and has been for long.
  bool well(const peer_id& peer, nanoseconds now) const;
  int doubts() const { return doubts_; }
  /// The expected time for a request to most voters and their answers: the
  /// median, over the peers that we watch and do not suspect, of the measured
  /// round trip plus four deviations. 0: nothing is measured yet.
  nanoseconds round_trip() const;

  /// When on_tick has something to do.
  nanoseconds deadline() const;

private:
  struct watched {
    member_id id;
    std::uint32_t index = 0;
    bool voter = false;
    bool watch = false; ///< we send it heartbeats
    bool linked = false;
    bool suspected = false;
    nanoseconds changed_at = 0; ///< when `suspected` changed, or the link came
                                ///< up
    nanoseconds heard_at = 0;
    nanoseconds sent_at = 0; ///< of the heartbeat `sequence`
    std::uint64_t sequence = 0;
    nanoseconds round_trip = 0; ///< smoothed, 1/8 a sample; 0: none yet
    nanoseconds deviation = 0;  ///< smoothed, 1/4 a sample
    std::set<std::string> refused;
  };

  nanoseconds silence_max(const watched& w) const;
  void set_suspected(watched& w, bool suspected, nanoseconds now, actions& out);
  void doubt(nanoseconds now);
  void beat(nanoseconds now, actions& out);
  void tell(const std::vector<alert_note>& notes, actions& out) const;
  std::vector<alert_note> own_alerts() const;
  alert_note note_of(const watched& w) const;
  void count();
  bool enough(std::size_t accusers, std::size_t watchers) const;

  detector_config config_;
  const view* view_ = nullptr;
  rings rings_;
  std::map<peer_id, watched> watched_; ///< all members but self
  std::vector<watched*> subjects_;     ///< those of them that we watch
  /// For every accused member, by its index in the view: the last note of each
  /// watcher.
  std::map<std::uint32_t, std::map<std::uint32_t, alert_note>> notes_;
  /// For each member that was accused in this view: its watchers.
  std::map<std::uint32_t, std::vector<std::uint32_t>> watchers_;
  std::vector<member_id> confirmed_;
  bool unstable_ = false;
  int doubts_ = 0;
  std::uint32_t stamp_ = 0; ///< of our newest note; each note has a higher one
  nanoseconds beat_at_ = 0;
  nanoseconds late_until_ = 0; ///< until then, a late heartbeat of ours counts
  nanoseconds ticked_at_ = 0;
  nanoseconds patient_until_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace shoal::core::cluster
