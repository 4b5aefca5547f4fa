// runtime/core/training/stall_watch.hpp -- finds out which peer stalls a job.
//
// One instance for each job and peer. At every tick it gets what this peer can
// see: a mark that changes whenever anything of the job moves, and how long the
// device has been at its present piece of work. A peer may stand still for this
// long:
//
//   budget = budget_factor x the longest recent time without a change; while
//            too few changes are known, and while state is moved, x what the
//            plan predicts, if that is more; at least budget_min
//
// Times count when a step is committed after them. Those of the step in progress
// may be parts of a stall that something else has interrupted (a checkpoint was
// written): a stall must not lengthen its own budget tenfold. Only
// unproven_factor x the longest of these is granted, for steps that get slower.
//
// While a peer *loads* (state comes from disks, or the job's data from other
// stores), each byte moved by a disk or by the exchange of blobs counts as a
// change, too, and
//
//   budget = budget_factor x the largest piece of work in hand (a file, a unit)
//            at the slowest rate measured on the disk; at least loading_min.
//            Where jobs share the device, x what the plan predicts
//
// A link is no such piece of work: its data comes in chunks, and each chunk is
// requested from another holder much earlier (blob_exchange::tries_max).
//
// A peer that stood still for longer asks all sealers of the assignment, and
// each answers with what it sees. From the same answers all draw the same
// conclusion:
//
//   a peer does not answer         -> it is hung: expel
//   a device is over its budget    -> its peer is hung: expel
//   a peer loads, its device or
//   disk is over its budget, and
//   nothing moved there for half
//   of that budget                 -> it is hung: expel
//   some peer loads                -> patience: a hang is found at the peer
//                                     that it waits for, or the data comes
//                                     from elsewhere
//   a peer has moved since, or its
//   device is within its budget    -> patience: it is slow
//   all wait for each other        -> a message is lost: retry, a new
//                                     assignment with the same content; after
//                                     retries_max at one step, expel an end of
//                                     the stuck link; in a chain that is the
//                                     first one in the order of the work, and
//                                     the end that was at stuck links more often
//
// A verdict is a wish for another view, like any other. An expelled peer comes
// back as a new member, or ends if its work cannot be stopped (`hung`). No view
// repairs a disk: a peer also ends if, while loading, its own disk has been at
// one piece for longer than the budget, with no byte moved and no step of the
// job committed meanwhile. Otherwise other peers could wait for ever for what
// it alone holds. While steps are committed no peer waits for a disk.
//
// SW-1: a peer that hears none of two or more others expels no peer.
// SW-2: a verdict applies to one view: if another view comes first, the verdict
//       is void, and is found again after another budget.
// SW-3: a peer that loads is expelled only for its silence or its own piece of
//       work, never for what it waits for.
//
// Threads: none. Cost: a comparison while the job moves.
#pragma once

#include "runtime/core/training/job_messages.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::core {

class stall_watch {
public:
  static constexpr nanoseconds budget_min = 3'000'000'000;
  static constexpr nanoseconds budget_max = 3'600'000'000'000; ///< an hour
  static constexpr nanoseconds budget_factor = 10;
  static constexpr nanoseconds unproven_factor = 3;
  /// While loading: twice the time in which blob_exchange passes over a silent
  /// holder (16 s), and some more.
  static constexpr nanoseconds loading_min = 40'000'000'000;
  /// Assumed for a disk that has not been measured: a memory card.
  static constexpr std::uint64_t assumed_disk_bytes_per_s = 20'000'000;
  /// The longest wait is taken over the latest changes: this many to twice as
  /// many.
  static constexpr std::uint32_t changes_kept = 256;
  /// Fewer changes than this prove nothing.
  static constexpr std::uint32_t changes_min = 32;
  static constexpr nanoseconds ask_every = 500'000'000;
  /// A peer that was asked this long ago and is silent is hung.
  static constexpr nanoseconds answer_max = 3'000'000'000;
  static constexpr std::uint32_t retries_max = 2;
  /// Work that has not stopped this long after it was told to cannot be
  /// stopped: twice the time that fabrics may take to release the memory of
  /// lost peers.
  static constexpr nanoseconds halt_min = 8'000'000'000;

  /// What this peer sees of a job.
  struct sight {
    job_header header;            ///< digest 0: it has no assignment
    std::vector<peer_id> sealers; ///< of it, perhaps this peer
    bool active = false;          ///< something should move: not gated, done,
                                  ///< ...
    bool halting = false;         ///< it stops, and seals afterwards
    bool steady = false;    ///< it runs steps: no state is moved, and no other
                            ///< job uses the device
    bool loading = false;   ///< state or data come from disks and stores
    std::uint64_t step = 0; ///< in progress; 0: a job without steps
    /// Of a job without steps: retries count as those at one step while this
    /// number stays.
    std::uint64_t period = 0;
    /// Work goes from each of `sealers` to the next one, and `sending_to` says for
    /// whom a peer waits.
    bool chain = false;
    std::uint64_t mark = 0;
    nanoseconds computing = 0; ///< time of the device at its present piece of
                               ///< work
    nanoseconds predicted = 0; ///< longest time without a change, by the plan;
                               ///< while loading: if other jobs use the device
    nanoseconds disk = 0; ///< time of the disk at its present piece without a
                          ///< byte moved; 0: no other peer could take over
    nanoseconds disk_predicted = 0;  ///< for the largest piece, at the measured
                                     ///< rates
    std::uint64_t committed = 0;     ///< newest step known
    std::vector<peer_id> sending_to; ///< peers with unfinished transfers from
                                     ///< here
    std::string where;               ///< for users: "voting", ...
  };

  struct send {
    peer_id to{};
    stall_report report;
  };
  /// This peer stands still, and asks: once for each stall. Record the state.
  struct stalled {
    std::string why; ///< for users
  };
  /// Another peer asks first, under this assignment: record the state.
  struct asked {
    peer_id by{};
  };
  struct expel {
    peer_id peer{};
    std::string why;
  };
  struct retry {
    epoch since = 0; ///< of the assignment
    std::string why;
  };
  /// The work of this peer cannot be stopped.
  struct hung {
    std::string why;
  };
  using action = std::variant<send, stalled, asked, expel, retry, hung>;
  using actions = std::vector<action>;

  explicit stall_watch(peer_id self) : self_(self) {}

  [[nodiscard]] actions tick(const sight& now_here, nanoseconds now);
  /// @param now_here as at a tick
  [[nodiscard]] actions received(const peer_id& from, const stall_report& r,
                                 const sight& now_here, nanoseconds now);

  /// The time that the disk takes for a number of bytes. @param bytes_per_s 0:
  /// unknown
  [[nodiscard]] static nanoseconds
  piece_time(std::uint64_t bytes, std::uint64_t bytes_per_s);
  /// Whether the peer has stood still for longer than its budget.
  [[nodiscard]] bool asking() const { return asking_.has_value(); }
  /// How long this peer may stand still.
  [[nodiscard]] nanoseconds budget(const sight& now_here) const;
  /// How long its disk may be at one piece while no step is committed.
  [[nodiscard]] static nanoseconds disk_budget(const sight& now_here);

private:
  struct answer {
    stall_report report;
    nanoseconds at = 0;
  };

  void look(const sight& s, nanoseconds now);
  void moved(nanoseconds now);
  void prove();
  void ask(const sight& s, nanoseconds now, actions& out);
  [[nodiscard]] stall_report
  report(const sight& s, nanoseconds now, bool asks) const;
  void judge(const sight& s, nanoseconds now, actions& out);
  void judge_waiting(const sight& s, nanoseconds now, actions& out);
  /// The end that is to be expelled, and the other one.
  using link = std::pair<peer_id, peer_id>;
  [[nodiscard]] std::optional<link> stuck_link(const sight& s);
  [[nodiscard]] std::optional<link> stuck_in_chain(const sight& s);

  peer_id self_{};
  job_header header_;
  std::uint64_t mark_ = 0;
  std::uint64_t step_ = 0;
  nanoseconds moved_ = 0;              ///< when the mark changed
  std::optional<nanoseconds> halting_; ///< since when, whatever the assignment
  bool active_ = false;
  bool loading_ = false;
  std::optional<std::uint64_t> committed_;
  nanoseconds committed_at_ = 0;

  // The longest times between changes: in this window and in the last one.
  std::array<nanoseconds, 2> longest_{};
  std::uint32_t changes_ = 0; ///< in this window
  bool full_ = false;         ///< the last window is complete
  // The same since the newest step was committed: they do not count yet.
  nanoseconds unproven_longest_ = 0;
  std::uint32_t unproven_changes_ = 0;

  // While this peer stands still.
  std::optional<nanoseconds> asking_; ///< since
  nanoseconds asked_ = 0;             ///< last time
  std::optional<nanoseconds> judged_; ///< last time
  std::map<peer_id, answer> answers_;
  std::uint64_t known_ = 0;   ///< digest of the assignment reported as stalled
  std::uint32_t retries_ = 0; ///< at step_
  std::map<peer_id, std::uint32_t>
    stuck_; ///< ends of stuck links in chains, at
            ///< step_
  bool hung_reported_ = false;
};

/// The text that users get about a verdict. A verdict changes the view, so
/// without a quorum it has no effect: then the text says that.
/// @param name of the peer
[[nodiscard]] std::string
to_text(const stall_watch::expel& e, const std::string& name, bool quorum);
[[nodiscard]] std::string to_text(const stall_watch::retry& r, bool quorum);
/// The same about a peer that ends itself.
[[nodiscard]] std::string
to_text(const stall_watch::hung& h, const std::string& name, bool quorum);

} // namespace shoal::core
