// runtime/core/training/job/state/step_reports.hpp -- reports each committed step
// once, in order, and asks for steps that were missed.
//
// A peer that was away for a while, or that joins, hears of a new step before
// the steps between. The report of the new step waits until other peers have
// sent those, or until some were asked in vain. Only the report waits: the step
// counts as committed at once, and the reporter broadcasts it at once. With a step
// that is sent again goes its held-out loss, if it was evaluated.
//
// J-3: each step is reported exactly once, in order; after a loss the reports
//      go back once, and say to where.
//
// Threads: none. Cost: a call takes the logarithm of the records kept, a loss
// all of them.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/resume.hpp"

#include <map>
#include <optional>
#include <vector>

namespace shoal::core {

class step_reports {
public:
  static constexpr std::size_t records_kept_max = 1024;
  /// Records sent at every resume, at least; more where a seal lacks more.
  static constexpr std::size_t records_told_min = 64;
  /// Peers that are asked for missed steps before those steps are left out.
  static constexpr std::uint32_t records_tries_max = 4;

  /// @param last the newest step that an earlier process here has reported
  /// @param top the largest step among them; see seal
  step_reports(const step_record& last, std::uint64_t top)
    : last_(last), reported_(last.version), top_(top) {}

  /// Stores a committed step, and reports it when its turn has come.
  /// @param measured what the reporter has measured of it
  void publish(const duty& d, const step_record& r, const progress& measured,
               nanoseconds now, job_actions& out);
  /// Reports everything, whatever is still missing.
  void report_all(job_actions& out);

  /// The run goes on at `to.version`: reports what is lost of the steps that
  /// seals or this peer know. If peers that went on since then have seen the
  /// loss, they report it.
  /// @param interval steps between checkpoints; 0: none are made
  void resume(const duty& d, const resume_decision& to, std::uint64_t interval,
              job_actions& out);
  /// Some sealer may have missed steps. The reporter sends them again, to all
  /// `members`, or, if it has missed some itself, the first peer that has not.
  /// @pre d.place, and one seal at least
  void tell_again(const duty& d, const std::map<peer_id, seal>& seals,
                  const std::vector<peer_id>& members, job_actions& out) const;

  /// Keeps the held-out loss of a step. @returns whether it is news
  bool keep(const eval_result& r);

  /// Answers a peer that misses steps.
  void answer(const duty& d, const peer_id& from, const records_wanted& m,
              job_actions& out) const;
  /// Asks again for steps that are missing here.
  void repeat(const duty& d, nanoseconds now, job_actions& out);

  /// The newest step known; version 0: none.
  [[nodiscard]] const step_record& last() const noexcept { return last_; }
  /// See seal.
  [[nodiscard]] std::uint64_t top() const noexcept;
  /// The newest committed steps, by age.
  [[nodiscard]] const std::vector<step_record>& records() const noexcept {
    return records_;
  }

private:
  void remember(const step_record& r);
  [[nodiscard]] const eval_result* eval_of(const step_record& r) const;
  void report(const step_record& r, const progress& measured, job_actions& out);
  [[nodiscard]] std::optional<peer_id> next_to_ask(const duty& d) const;
  void ask(const duty& d, nanoseconds now, job_actions& out);

  step_record last_;
  state_version reported_; ///< the newest reported here
  std::uint64_t top_ = 0;
  std::vector<step_record> records_;
  /// Held-out losses, by age of their steps.
  std::map<std::pair<epoch, std::uint64_t>, eval_result> evals_;
  /// Known but not reported yet, by age: some steps before them were missed.
  std::map<std::pair<epoch, std::uint64_t>, std::pair<step_record, progress>>
    ahead_;
  std::uint32_t asked_ = 0; ///< peers asked for the missed steps
  nanoseconds asked_at_ = 0;
  state_version resumed_; ///< where the run last went on
  epoch resumed_in_ = 0;  ///< the assignment of that
};

} // namespace shoal::core
