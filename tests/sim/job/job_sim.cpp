// tests/sim/job/job_sim.cpp -- runs a simulated job.
#include "tests/sim/job/job_world.hpp"

#include <exception>

namespace shoal::sim {

namespace {

constexpr std::uint32_t seconds_to_end = 120;

} // namespace

job_sim_result job_world::run() {
  try {
    while (!queue_.empty()) {
      item next = queue_.top();
      queue_.pop();
      now_ = next.at;
      check(now_ < seconds_to_end * 1000 * ms, "the job does not end");
      next.what();
    }
    check(done_, "nothing left to do, but the job has not ended");
    for (auto& [n, p] : up_)
      check(!p->alive || p->over, name(p) + " did not end");
    for (std::size_t i = 0; i < chain_.size(); ++i)
      check(chain_[i].version.step == config_.origin_step + i + 1,
            "the chain has a gap");
    check_rot();
    result_.ok = true;
  } catch (const std::exception& e) {
    result_.error = "seed " + std::to_string(seed_) + ": " + e.what();
  }
  return result_;
}

job_sim_result run_job_sim(std::uint64_t seed, bool trace, job_mutant bug) {
  return job_world(seed, trace, bug).run();
}

} // namespace shoal::sim
