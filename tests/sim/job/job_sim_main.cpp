// tests/sim/job/job_sim_main.cpp -- runs simulated jobs from a command line.
//
//   job_sim [--seeds N] [--first N]   runs N seeds from the first on, with
//   counts job_sim --seed N                  runs one and prints each step to
//   stderr --mutant B                        with a bug (job_mutant), to be
//   found
//   --twice                           runs each again: its trace must be the
//                                     same
//
// Exit code 1 and the command that repeats the run if one fails.
#include "tests/sim/job/job_sim.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int usage() {
  std::fprintf(stderr, "usage: job_sim [--seeds N] [--first N] | --seed N, "
                       "--mutant B, --twice\n");
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t count = 500;
  bool trace = false;
  bool twice = false;
  auto bug = shoal::sim::job_mutant::nothing;
  for (int i = 1; i < argc; i += 2) {
    if (std::strcmp(argv[i], "--twice") == 0) {
      twice = true;
      --i;
      continue;
    }
    char* end = nullptr;
    std::uint64_t n = 0;
    if (i + 1 < argc)
      n = std::strtoull(argv[i + 1], &end, 10);
    if (end == nullptr || end == argv[i + 1] || *end != 0)
      return usage();
    if (std::strcmp(argv[i], "--seed") == 0) {
      first = n;
      count = 1;
      trace = true;
    } else if (std::strcmp(argv[i], "--first") == 0) {
      first = n;
    } else if (std::strcmp(argv[i], "--mutant") == 0) {
      bug = static_cast<shoal::sim::job_mutant>(n);
    } else if (std::strcmp(argv[i], "--seeds") == 0) {
      count = n;
    } else {
      return usage();
    }
  }
  shoal::sim::job_sim_result sum;
  std::uint64_t failed = 0;
  for (std::uint64_t s = first; s < first + count; ++s) {
    auto r = shoal::sim::run_job_sim(s, trace, bug);
    if (twice && r.ok
        && shoal::sim::run_job_sim(s, false, bug).trace != r.trace) {
      r.ok = false;
      r.error = "seed " + std::to_string(s) + ": another trace, run again";
    }
    if (!r.ok) {
      ++failed;
      std::printf("%s\n  repeat: job_sim --seed %llu\n", r.error.c_str(),
                  (unsigned long long)s);
    }
    sum.steps += r.steps;
    sum.views += r.views;
    sum.crashes += r.crashes;
    sum.losses += r.losses;
    sum.bad += r.bad;
    sum.diverged += r.diverged;
    sum.reverts += r.reverts;
    sum.forwards += r.forwards;
    sum.arrivals += r.arrivals;
    sum.arrived += r.arrived;
    sum.overtaken += r.overtaken;
  }
  std::printf("%llu seeds, %llu failed; %llu steps, %llu views, %llu crashes, "
              "%llu losses, %llu units reverted, %llu rolled forward, "
              "%llu units arrived (%llu overtaken, %llu views)\n",
              (unsigned long long)count, (unsigned long long)failed,
              (unsigned long long)sum.steps, (unsigned long long)sum.views,
              (unsigned long long)sum.crashes, (unsigned long long)sum.losses,
              (unsigned long long)sum.reverts, (unsigned long long)sum.forwards,
              (unsigned long long)sum.arrivals,
              (unsigned long long)sum.overtaken,
              (unsigned long long)sum.arrived);
  return failed == 0 ? 0 : 1;
}
