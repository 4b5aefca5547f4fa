// runtime/core/training/job/state/checkpoint_rounds.hpp -- the checkpoints of one
// assignment: when they begin, which peers make and keep them, and how the last
// one ended.
//
// Votes and seals say which disks refuse. From that and the assignment all
// peers find the same publisher and writers (../shards.hpp). Each peer decides
// by itself whether it keeps a checkpoint, from the publisher's report and from
// what keepers have: a copy too many or too few for a while does no harm.
//
// Threads: none. A call that takes a known_checkpoints reads it, and tells it
// of those that are published.
#pragma once

#include "runtime/core/state/parts.hpp"
#include "runtime/core/training/checkpoint_pace.hpp"
#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/job/state/known_checkpoints.hpp"
#include "runtime/core/training/resume.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shoal::core {

class checkpoint_rounds {
public:
  /// The longest wait at the end for a second store with the last checkpoint.
  static constexpr nanoseconds keep_wait_max = 300'000'000'000;
  /// The same where the disks that could take it refuse. They try again, but the
  /// end does not wait for somebody who makes room.
  static constexpr nanoseconds refused_wait_max = 10'000'000'000;
  /// Rounds of which the peers without a part are remembered.
  static constexpr std::size_t begun_max = 8;

  /// @param every see checkpoint_pace
  /// @param blocks of the model
  checkpoint_rounds(std::uint64_t every, std::uint32_t blocks)
    : every_(every), parts_(part_table(blocks).count()), pace_(every) {}

  /// Another assignment is taken up.
  void halt();
  /// The run goes on at to.version.
  /// @returns whether the checkpoint of that step is in too few stores and is
  ///          to be made again
  bool resume(const resume_decision& to, std::uint64_t origin_step);
  /// A new keeper gets its parts of the checkpoint that the earlier ones had:
  /// their disks may fail next.
  void keep_newest(const duty& d, const resume_decision& to,
                   const known_checkpoints& known, job_actions& out) const;
  /// The state at `step` is in as many stores as wanted.
  void saved(std::uint64_t step) { reported_ = kept_ = step + 1; }

  // Begun.
  /// Whether the pace wants a checkpoint of the step.
  [[nodiscard]] bool due(std::uint64_t step) const noexcept {
    return pace_.due(step);
  }
  /// The checkpoint of the step begins. @param last none follows it
  /// @pre d.place has replicas
  void begin(const duty& d, std::uint64_t step, bool last, job_actions& out);
  /// A step is committed. @param finite its loss and norm are
  /// @pre d.place has replicas
  void note(const duty& d, const std::map<peer_id, vote>& votes,
            std::uint64_t step, bool finite, job_actions& out);
  /// For our vote: we gather a checkpoint that is not published yet.
  [[nodiscard]] bool publishing(const duty& d, std::uint64_t step) const;
  /// For our vote; 0: unknown.
  [[nodiscard]] std::uint64_t lag() const noexcept { return pace_.lag(); }
  /// For our seal; 0: unknown.
  [[nodiscard]] std::uint64_t agreed_lag() const noexcept {
    return pace_.agreed_lag();
  }
  /// Whether others could make the checkpoint of `step`, which nobody has yet,
  /// although our disk refuses it and no vote says so.
  /// @pre d.place has replicas
  [[nodiscard]] bool hands_over(const duty& d, std::uint64_t step) const;

  // Published.
  /// Our checkpoint is complete, or could not be written.
  /// @param current the step in progress, after e.step
  /// @returns false if a later one has made this result void
  bool take(const duty& d, const job_event::checkpointed& e,
            std::uint64_t current, const std::vector<peer_id>& members,
            known_checkpoints& known, nanoseconds now, job_actions& out);
  /// @returns whether the run may end by it; so do the functions below
  bool take(const duty& d, const peer_id& from, const checkpoint_published& m,
            known_checkpoints& known, nanoseconds now, job_actions& out);

  // Kept.
  /// @pre m was made under this assignment
  bool take(const duty& d, const peer_id& from, const have_checkpoint& m,
            known_checkpoints& known, job_actions& out);
  /// Our disk refuses one that we are to keep.
  bool take(const duty& d, const job_event::keep_refused& e, job_actions& out);
  /// Our store has this one, or more parts of it.
  bool held(const duty& d, const checkpoint_ref& c,
            const known_checkpoints& known, job_actions& out);

  // The end of the run.
  /// No step follows: from now on it waits for a second store.
  void wait_for_store(nanoseconds now) { waits_since_ = now; }
  /// Whether the result of the step's checkpoint is known.
  [[nodiscard]] bool told(std::uint64_t step) const noexcept {
    return reported_ > step;
  }
  /// Whether it has reached a second store, or cannot. @pre d.place
  [[nodiscard]] bool
  kept(const duty& d, std::uint64_t step, nanoseconds now) const;
  /// Sends our newest result again.
  void repeat(const duty& d, const std::vector<peer_id>& members,
              job_actions& out) const;

  /// The peers of which it is known that their disks refuse checkpoints;
  /// ascending. A peer that does not vote learns it from the newest checkpoint.
  [[nodiscard]] std::vector<peer_id> refusing(const duty& d) const;

  /// A number that changes when a result or a store is heard of.
  [[nodiscard]] std::uint64_t newest_told() const noexcept { return reported_; }
  [[nodiscard]] std::uint64_t newest_kept() const noexcept { return kept_; }

private:
  /// Checkpoints that are left to others before a disk that refused is tried
  /// again: twice as many each time, since what it cannot take costs a part of the
  /// network each time.
  static constexpr std::uint32_t refused_first = 2;
  static constexpr std::uint32_t refused_most = 64;

  bool
  try_again(const duty& d, const checkpoint_published& m, const peer_id& from,
            const known_checkpoints& known, job_actions& out);
  void result_known(std::uint64_t step, nanoseconds now);
  [[nodiscard]] bool
  newer_told(const job_header& header, std::uint64_t step) const;
  [[nodiscard]] part_set
  share(const duty& d, std::vector<peer_id> unable) const;
  void keep(const part_set& parts, const checkpoint_ref& c, const peer_id& at,
            const known_checkpoints& known, job_actions& out) const;
  [[nodiscard]] std::vector<peer_id> keepers_of_last(const duty& d) const;
  void say_failed(const duty& d, const peer_id& from,
                  const checkpoint_published& m, job_actions& out) const;
  bool say_kept(const duty& d, const checkpoint_ref& newest,
                const known_checkpoints& known, job_actions& out);
  void stored(const duty& d, const checkpoint_ref& c, const peer_id& at,
              const part_set& lacks);

  std::uint64_t every_;
  std::uint32_t parts_; ///< number of them
  checkpoint_pace pace_;
  bool slow_reported_ = false;  ///< checkpoints_slow was emitted
  std::vector<peer_id> unable_; ///< to write, as agreed; ascending
  checkpoint_published last_;   ///< the newest result
  peer_id published_by_{};      ///< the sender of last_
  // Under this assignment.
  /// By step: the peers that have no part in its checkpoint.
  std::map<std::uint64_t, std::vector<peer_id>> left_out_;
  peer_id publisher_{};        ///< of the newest of those
  std::set<peer_id> refusing_; ///< peers that refuse to keep it
  /// If our disk refuses: checkpoints published since it last did, and the number
  /// of them after which it is tried again.
  std::uint32_t left_to_others_ = 0;
  std::uint32_t tried_after_ = refused_first;
  std::uint64_t reported_ = 0; ///< newest step + 1 whose result is known
  std::uint64_t kept_ = 0;     ///< newest step + 1 in a second store
  /// What stores other than the publisher's lack of checkpoints that are not in
  /// enough of them yet.
  std::map<checkpoint_ref, std::map<peer_id, part_set>> stores_;
  nanoseconds waits_since_ = 0;
};

} // namespace shoal::core
