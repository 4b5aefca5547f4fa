// runtime/control/missed_events.hpp -- steps and evaluations of a job that one
// node's log lacks, collected from the logs of others.
//
// Threads: one. Errors: none; a node that does not answer is passed over.
#pragma once

#include "runtime/wire/client_messages.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace shoal::runtime {

class missed_events {
public:
  /// Of the steps after `last` and before `next`.
  missed_events(core::job_id job, std::uint64_t last, std::uint64_t next)
    : job_(job), last_(last), next_(next) {}

  /// Asks one node. @returns whether it has answered
  using asker = std::function<bool(const ask_events&, client_reply&)>;
  /// Reads its log to its end, or to the first step that is not missed.
  /// @returns whether it has answered each time
  bool read(const asker& ask);
  /// Whether no step is missed any more.
  bool complete() const { return steps_.size() == next_ - last_ - 1; }
  /// In the order of the steps.
  std::vector<job_event> take();

private:
  core::job_id job_;
  std::uint64_t last_, next_;
  std::map<std::tuple<std::uint64_t, int, core::epoch>, job_event> found_;
  std::set<std::uint64_t> steps_;
};

} // namespace shoal::runtime
