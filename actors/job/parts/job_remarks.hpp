// actors/job/parts/job_remarks.hpp -- a job's log on one peer: committed steps,
// evaluations, views and notices.
//
// A notice that every peer of the job derives by itself is logged there, and its
// reporter also sends it to the members that are no peers of the job. A notice
// that only one peer knows goes from there to all members. What the job waits
// for is repeated for members that join later.
//
// Part of a job actor: see job_context.hpp.
//
// Threads: the owner's.
// Errors:  a notice that a lost link drops is not repeated; a wait is.
// Limits:  remark_bytes_max each. The log drops a notice that it already has
//          for the same step.
#pragma once

#include "actors/job/parts/job_context.hpp"
#include "runtime/jobs/job_log.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace shoal::actors {

class job_remarks {
public:
  /// @param here outlives this object
  explicit job_remarks(const job_context& here) : here_(here) {}

  /// An earlier process of this peer has logged steps up to this one.
  void begin_after(std::uint64_t step) { last_step_ = step; }

  // Notices.

  /// Logs a line that every peer of the job derives by itself.
  void note(std::uint64_t step, const std::string& text);
  /// Logs a line that only this peer knows, and sends it to all members.
  void note_own(std::uint64_t step, const std::string& text);
  /// Logs a line on this peer only.
  void note_here(std::uint64_t step, const std::string& text);
  /// The same, unless it has been logged under this sub-plan.
  void note_once(const std::string& text);
  /// note(), unless one that begins with the same words, up to a colon, has
  /// been logged under this sub-plan: several peers find the same, in different
  /// words.
  void note_verdict(const std::string& text);
  /// Logs what the job waits for, until wait_over().
  /// @param wanted digest of bytes that a follower can upload; zero: none
  void note_wait(std::uint64_t step, const std::string& why,
                 const core::blob_digest& wanted = {});
  void wait_over() { wait_.reset(); }
  /// Logs, once, that the job ends after the step under way. Every member
  /// derives this, and what say_if_slow() logs, from the view.
  void say_that_it_ends();
  /// Names the network that steps wait for, once for each.
  void say_if_slow(const core::island_place& place);
  /// Says, once, if this peer computes in float32 instead of bfloat16.
  void say_if_wider(const core::island_place& place);
  /// Logs another peer's notice.
  void take(const core::remark& r);

  // Other entries.

  /// Logs a view in which the job has another place; `before` may be null.
  void log_view(const core::view* before, const core::assignment& job,
                const core::island_place& place);
  /// @param bubble thousandths of the step's computing phase
  void log_step(const core::step_record& r, std::uint32_t bubble);
  void log_eval(const core::eval_result& r);
  void log_checkpoint(const core::checkpoint_ref& c);
  /// The newest committed step in the log.
  std::uint64_t last_step() const noexcept { return last_step_; }

  /// Remembers the names of the newest view's members.
  void learn_names();
  /// Also of a former member.
  std::string name_of(const core::peer_id& peer) const;

  /// The sub-plan ends.
  void halt() { noted_.clear(); }
  void tick();

private:
  void log(runtime::job_event e);
  void log_if_bad(const core::step_record& r);
  void tell_members(const core::remark& r);
  bool reports() const;
  core::remark remark_of(std::uint64_t step, const std::string& text) const;

  const job_context& here_;
  core::epoch logged_since_ = 0; ///< of the place that was logged last
  std::uint64_t last_step_ = 0;
  std::optional<core::remark> wait_;           ///< what the job waits for
  std::set<std::string> noted_;                ///< texts under this sub-plan
  std::map<core::peer_id, std::string> names_; ///< also of former members
  bool end_said_ = false;
  bool wider_said_ = false;
  std::string slow_said_; ///< of the network that steps wait for
  unsigned ticks_ = 0;
};

} // namespace shoal::actors
