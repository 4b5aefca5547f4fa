// actors/job/parts/job_rescue.hpp -- saves the state that is here when the node
// ends and no quorum can agree to that.
//
// The other peers of the job are dead or out of reach, so there is no step to
// finish and no vote on a checkpoint. But what is here may be the whole state: a
// peer follows others. Then this peer writes all of it, unit after unit, and
// publishes the checkpoint to itself. When it returns, its seal names that
// checkpoint.
//
// Part of a job actor: see job_context.hpp.
//
// Threads: the owner's; files are written on the disk's thread.
// Errors:  state that is not here as a whole, or that the disk refuses, is
//          reported in the job's log with the step that the run goes on from.
#pragma once

#include "actors/job/parts/job_context.hpp"
#include "actors/job/parts/job_remarks.hpp"
#include "actors/job/parts/job_saving.hpp"
#include "actors/training/buffers.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::actors {

class job_rescue {
public:
  /// All arguments outlive this object.
  job_rescue(const job_context& here, job_remarks& remarks, job_saving& saving)
    : here_(here), remarks_(remarks), saving_(saving) {}

  /// Saves what is here.
  /// @param lease released at the end
  void begin(std::shared_ptr<void> lease);
  /// Has begun: a late vote or view must not change what is being saved.
  bool begun() const noexcept { return begun_; }

private:
  struct state;
  void save_when_still(std::shared_ptr<void> lease);
  void save_all(std::shared_ptr<void> lease);
  std::optional<core::state_version> newest_whole() const;
  void save_next(const std::shared_ptr<state>& all);
  void write_next(const std::shared_ptr<state>& all, const buffer& copy);
  void publish(const std::shared_ptr<state>& all);
  void say_lost(const std::string& why);

  const job_context& here_;
  job_remarks& remarks_;
  job_saving& saving_;
  bool begun_ = false;
};

} // namespace shoal::actors
