// runtime/core/cluster/detector.hpp -- who of the view seems dead.
//
// Every voter sends heartbeats to its subjects (rings.hpp) and suspects one
// after a silence of several intervals and round trips, or at once when the
// connection is lost and every address refuses another. Opinions are told to
// all; a death is confirmed when enough of the member's watchers that are not
// confirmed as dead themselves share it. A cut between two members alone
// therefore removes neither: who stays suspected without being confirmed is
// cut off from us.
//
// While a member has some accusers, but not enough, the others wait a little
// (unstable()), so that deaths at one time become one view change.
//
// A peer that was stopped, or that misses the answers of most of its subjects,
// or that has accused a living peer, doubts itself: every doubt makes its
// deadlines longer, every good round takes one back. Of the second it makes
// little while it is itself in time and others answer.
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

/// Of 10 watchers so many confirm a death (H of Rapid; 7 rather than its 9,
/// so that three slow ones hide none), and fewer than so many are noise (L).
/// Where all voters watch, more than half confirm and 2 are no noise: any
/// quorum that is alive can then confirm whoever is not.
inline constexpr std::size_t accusers_of_ten = 7;
inline constexpr std::size_t noise_below = 3;
/// Doubts in oneself, at most; each adds half a deadline.
inline constexpr int doubts_max = 8;
/// Where most are silent, but somebody answers and our own heartbeats are in
/// time, it is hardly us: half of a shoal may have died at once. 2.25 s rather
/// than 7.5 s at the defaults.
inline constexpr int doubts_in_company = 1;

struct detector_config {
  peer_id self{};
  nanoseconds interval = 250'000'000;
  /// No deadline is shorter. On a near network it is what counts: a heartbeat
  /// that is late by a second there says that a scheduler is loaded, not that a
  /// peer is dead; measured round trips, which an idle moment makes short, must
  /// not tell otherwise. Above 375 ms of round trip (at these defaults), or
  /// where they vary much, the measured part is longer and counts.
  nanoseconds floor = 1'500'000'000;
  /// No deadline is longer, however slow the peer and however we doubt.
  nanoseconds ceiling = 10'000'000'000;
  /// Suspected for so long, and nobody else is sure: a cut.
  nanoseconds cut_patience = 2'000'000'000;
  /// Heard without a break for so long: no cut any more.
  nanoseconds mend_patience = 2'000'000'000;
};

class detector {
public:
  explicit detector(detector_config c);

  /// Watches subjects of `v`; what is known of those that stay is kept.
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
  /// Opinions about members of our view, of the watcher `from` itself.
  void on_alerts(const peer_id& from, const std::vector<alert_note>& notes);

  void on_tick(nanoseconds now, actions& out);
  /// Sends heartbeats at the next tick.
  void beat_now() { beat_at_ = 0; }

  bool suspects(const peer_id& peer) const;
  /// Members whose death is confirmed.
  const std::vector<member_id>& confirmed() const { return confirmed_; }
  /// Whether some member has accusers that are neither noise nor enough.
  bool unstable() const { return unstable_; }
  /// Members that only we, or too few, can not reach, for long.
  std::vector<member_id> cut_off(nanoseconds now) const;
  /// Whether the peer is in contact, and has been for long.
  bool well(const peer_id& peer, nanoseconds now) const;
  int doubts() const { return doubts_; }
  /// What a question to most voters and their answers may take: the median, of
  /// those that we watch and do not suspect, of the measured round trip and four
  /// deviations. 0: nothing is known.
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
    nanoseconds changed_at = 0; ///< when `suspected` did, or the link came up
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
  std::vector<watched*> subjects_;     ///< of them, those that we watch
  /// For every accused member, by place in the view, the last note of each
  /// watcher.
  std::map<std::uint32_t, std::map<std::uint32_t, alert_note>> notes_;
  /// Of members that were accused in this view: who watches them.
  std::map<std::uint32_t, std::vector<std::uint32_t>> watchers_;
  std::vector<member_id> confirmed_;
  bool unstable_ = false;
  int doubts_ = 0;
  std::uint32_t stamp_ = 0; ///< of our newest note; grows with every one
  nanoseconds beat_at_ = 0;
  nanoseconds late_until_ = 0; ///< a heartbeat of ours was late, lately
  nanoseconds ticked_at_ = 0;
  nanoseconds patient_until_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace shoal::core::cluster
