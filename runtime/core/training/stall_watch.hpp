// runtime/core/training/stall_watch.hpp -- finds out who holds a job up.
//
// One for each job and peer, told at every tick what can be seen here: a mark
// that changes whenever anything of the job moves, and how long the device has
// been at its piece of work. A peer may stand still for so long:
//
//   budget = budget_factor x the longest time without a change of late; while
//            too little of that is known, and where state is moved, x what the
//            plan predicts, if that is more; budget_min at least
//
// While it *loads* (state comes from disks, or the job's data from others'
// stores) each byte that a disk or the exchange of blobs has moved is a change
// too, and
//
//   budget = budget_factor x the largest piece of work in hand (a file, a unit)
//            at the slowest rate at which the disk has moved any; loading_min
//            at least. Where jobs share the device, x what the plan predicts
//
// A link is no such piece: what comes over it comes in chunks, each of which is
// asked of another holder long before (blob_exchange::tries_max).
//
// One that has stood still for longer asks all who seal the assignment, and
// they answer what they see. From the same answers all come to the same end:
//
//   somebody does not answer        -> it is hung: expel
//   a device is over its budget     -> it is hung: expel
//   so is a device or disk of one
//   who loads, and nothing moved
//   there for half of that budget   -> it is hung: expel
//   somebody loads                  -> patience: what it waits for is found
//                                      where that hangs, or fetched elsewhere
//   a peer has moved since, or its
//   device is within its budget     -> patience: it is slow
//   all wait for each other         -> something is lost on its way: retry, a
//                                      new assignment of the same; after
//                                      retries_max at one step, expel an end of
//                                      the link that is stuck
//
// A verdict is a wish for another view, like any other: who is expelled comes
// back as a new member, or ends if its work can not be stopped (`hung`). No view
// mends a disk: a peer ends, too, where its own has been at one piece for longer
// than the budget while loading, with no byte moved and no step of the job
// committed meanwhile. Whatever it does then, others may wait for what it alone
// holds. While steps are committed nobody waits for a disk.
//
// SW-1: nobody is expelled by who hears none of two or more others.
// SW-2: a verdict is of one view: if another comes first, it is void, and the
//       same is found again after another budget.
// SW-3: who loads is expelled for its silence or its own piece of work alone,
//       never for what it waits for.
//
// Threads: none. Cost: nothing but a comparison while the job moves.
#pragma once

#include "runtime/core/training/job_messages.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::core {

class stall_watch {
public:
  static constexpr nanoseconds budget_min = 3'000'000'000;
  static constexpr nanoseconds budget_max = 3'600'000'000'000; ///< an hour
  static constexpr nanoseconds budget_factor = 10;
  /// While it loads: twice what blob_exchange takes to pass over a holder that
  /// is silent (16 s), and some more.
  static constexpr nanoseconds loading_min = 40'000'000'000;
  /// Of a disk that has not been measured: a memory card.
  static constexpr std::uint64_t assumed_disk_bytes_per_s = 20'000'000;
  /// The longest wait is of the latest changes, so many to twice as many.
  static constexpr std::uint32_t changes_kept = 256;
  /// Fewer changes than this say nothing yet.
  static constexpr std::uint32_t changes_min = 32;
  static constexpr nanoseconds ask_every = 500'000'000;
  /// Who has been asked for so long and is silent is hung.
  static constexpr nanoseconds answer_max = 3'000'000'000;
  static constexpr std::uint32_t retries_max = 2;
  /// What has not stopped so long after it had to can not be stopped: twice
  /// what fabrics may take to let go of the memory of lost peers.
  static constexpr nanoseconds halt_min = 8'000'000'000;

  /// What this peer sees of a job.
  struct sight {
    job_header on;                ///< digest 0: it has no assignment
    std::vector<peer_id> sealers; ///< of it, this peer among them or not
    bool active = false;          ///< it should move: not gated, done, ...
    bool halting = false;         ///< it stops, and then seals
    bool steady = false;    ///< it runs steps: no state is moved, and no other
                            ///< job shares the device
    bool loading = false;   ///< state or data come from disks and stores
    std::uint64_t step = 0; ///< in progress
    std::uint64_t mark = 0;
    nanoseconds computing = 0; ///< the device is at one piece for so long
    nanoseconds predicted = 0; ///< longest time without a change, by the plan;
                               ///< while it loads: if others use the device
    nanoseconds disk = 0; ///< the disk is at one piece, no byte of which has
                          ///< moved for so long; 0: nobody could take over
    nanoseconds disk_predicted = 0;  ///< the largest piece, as rates are
    std::uint64_t committed = 0;     ///< newest step known
    std::vector<peer_id> sending_to; ///< transfers there have begun, not ended
    std::string where;               ///< for people: "voting", ...
  };

  struct send {
    peer_id to{};
    stall_report report;
  };
  /// This peer stands still, and asks: once for each stall. Keep what is known.
  struct stalled {
    std::string why; ///< for people
  };
  /// Somebody else asks first, under this assignment: keep what is known.
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
  /// The work of this peer can not be stopped.
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

  /// What the disk takes for so many bytes. @param bytes_per_s 0: not known
  [[nodiscard]] static nanoseconds
  piece_time(std::uint64_t bytes, std::uint64_t bytes_per_s);
  /// Whether it has stood still for longer than it may.
  [[nodiscard]] bool asking() const { return asking_.has_value(); }
  /// So long may this peer stand still.
  [[nodiscard]] nanoseconds budget(const sight& now_here) const;
  /// And so long its disk at one piece, while no step is committed.
  [[nodiscard]] static nanoseconds disk_budget(const sight& now_here);

private:
  struct answer {
    stall_report report;
    nanoseconds at = 0;
  };

  void look(const sight& s, nanoseconds now);
  void moved(nanoseconds now);
  void ask(const sight& s, nanoseconds now, actions& out);
  [[nodiscard]] stall_report
  report(const sight& s, nanoseconds now, bool asks) const;
  void judge(const sight& s, nanoseconds now, actions& out);
  void judge_waiting(const sight& s, nanoseconds now, actions& out);

  peer_id self_{};
  job_header on_;
  std::uint64_t mark_ = 0;
  std::uint64_t step_ = 0;
  nanoseconds moved_ = 0;              ///< when the mark changed
  std::optional<nanoseconds> halting_; ///< since, whatever the assignment
  bool active_ = false;
  bool loading_ = false;
  std::optional<std::uint64_t> committed_;
  nanoseconds committed_at_ = 0;

  // How long it took to change: the longest of this window and the last one.
  std::array<nanoseconds, 2> longest_{};
  std::uint32_t changes_ = 0; ///< in this window
  bool full_ = false;         ///< the last window is

  // While it stands still.
  std::optional<nanoseconds> asking_; ///< since
  nanoseconds asked_ = 0;             ///< lately
  std::optional<nanoseconds> judged_; ///< lately
  std::map<peer_id, answer> answers_;
  std::uint64_t known_ = 0;   ///< digest of which it was said that it stalls
  std::uint32_t retries_ = 0; ///< at step_
  bool said_hung_ = false;
};

/// What people are told of a verdict. It changes the view, so without a quorum
/// nothing comes of it: then that is what the text says.
/// @param name of the peer
[[nodiscard]] std::string
to_text(const stall_watch::expel& e, const std::string& name, bool quorum);
[[nodiscard]] std::string to_text(const stall_watch::retry& r, bool quorum);
/// Of a peer that ends itself.
[[nodiscard]] std::string
to_text(const stall_watch::hung& h, const std::string& name, bool quorum);

} // namespace shoal::core
