// actors/job/job_state_digests.cpp -- digests of units, taken while a step is
// computed.
#include "actors/job/job_actor.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/work/device_queue.hpp"

namespace shoal::actors {

using namespace core::job_action;

namespace {

constexpr std::size_t differing_told_max = 4; ///< units in one notice

} // namespace

/// Runs beside the computation, which only reads the state; the step's
/// gradients are applied only after that.
void job_actor::take_digests(const run_step& a) {
  digests_.clear();
  if (a.digests.empty())
    return;
  std::vector<std::pair<std::uint32_t, unit_ptr>> units;
  for (const std::uint32_t u : a.digests)
    units.emplace_back(u, world_->units.at(u));
  const auto out = std::make_shared<std::vector<core::unit_digest>>();
  state_reading();
  node().reductions().submit(
    [units, out, step = a.step, trace = &node().trace()](kernels::backend&) {
      const runtime::timeline_span span(*trace,
                                        runtime::timeline::queue::reductions,
                                        "hash state", {{"step", step}});
      for (const auto& [u, unit] : units)
        out->push_back({u, digest_of(*unit)});
    },
    [this, post = here_.post, a, out] {
      post([this, a, out] {
        if (a.digest == digest() && a.step == core_.step_in_progress())
          digests_ = *out;
        state_read();
      });
    },
    {config_.entry.id});
}

void job_actor::act(const state_differs& a) {
  std::string what;
  for (std::size_t i = 0; i < a.units.size() && i < differing_told_max; ++i) {
    const core::differing_unit& d = a.units[i];
    what += (i > 0 ? ", unit " : " unit ") + std::to_string(d.unit) + " on "
            + remarks_.name_of(d.at) + " as of step " + std::to_string(d.step);
  }
  if (a.units.size() > differing_told_max)
    what +=
      " and " + std::to_string(a.units.size() - differing_told_max) + " more";
  remarks_.note(
    a.units.front().step,
    "state differed from that of other peers:" + what
      + "; it is taken from them (memory or arithmetic has failed there)");
}

} // namespace shoal::actors
