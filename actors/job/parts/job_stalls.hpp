// actors/job/parts/job_stalls.hpp -- what one peer sees of a job that does not
// move, and its reaction.
//
// The shell of core::stall_watch: shows it what moves here (work of the queues,
// bytes of links and disk), passes on its questions and verdicts, and carries
// out what it decides. Every member of the view writes its flight record: the
// peer that finds the stall and those that it asks at once, all others when
// they hear the verdict.
//
// Part of a job actor: see job_context.hpp. Unlike other parts it also uses the
// node itself, whose links and queues it watches.
//
// Threads: the owner's.
// Errors:  a flight record that cannot be written is reported in the node's
//          log.
#pragma once

#include "actors/job/parts/job_context.hpp"
#include "actors/job/parts/job_remarks.hpp"
#include "actors/job/parts/job_text.hpp"
#include "runtime/context.hpp"
#include "runtime/core/training/stall_watch.hpp"
#include "runtime/links/links.hpp"

#include <optional>
#include <string>
#include <vector>

namespace shoal::actors {

class job_stalls {
public:
  /// All arguments outlive this object.
  job_stalls(const job_context& here, runtime::context& node,
             job_remarks& remarks, const job_text& text)
    : here_(here), node_(node), remarks_(remarks), text_(text),
      watch_(here.self) {}

  /// Adds an input of the core to the node's latest events.
  void record(const core::job_input& input);
  /// The view or the place is another one. @pre there is a place
  void predict();
  /// @param looking for checkpoints on the disk: the core gets no input
  void tick(bool looking);
  void received(const core::peer_id& from, const core::stall_report& r,
                bool looking);

private:
  core::stall_watch::sight sight(bool looking);
  void see_disk(core::stall_watch::sight& s, bool looking);
  void carry_out(const core::stall_watch::actions& actions);
  void tell_verdict(const std::string& text);
  void keep_flight(std::string why);
  void write_flight();
  void list_transfers(const std::vector<runtime::link_hub::pending>& all);

  const job_context& here_;
  runtime::context& node_;
  job_remarks& remarks_;
  const job_text& text_;
  core::stall_watch watch_;
  core::nanoseconds predicted_ = 0; ///< longest time without a change
  bool alone_ = true;               ///< no other job shares the devices
  bool listing_ = false;            ///< a list of transfers has been requested
  std::vector<core::peer_id> sending_to_;
  std::vector<std::string> under_way_;     ///< transfers, as text
  std::string flight_why_;                 ///< of a pending flight record
  int flight_ticks_ = 0;                   ///< since then
  std::optional<std::uint64_t> flight_at_; ///< newest step at the last stall
};

} // namespace shoal::actors
