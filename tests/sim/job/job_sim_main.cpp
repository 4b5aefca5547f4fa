// tests/sim/job/job_sim_main.cpp -- job_sim [--seed N | --first N --count M]
//
// One seed is told step by step on stderr; many are only counted.
#include "tests/sim/job/job_sim.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t count = 500;
  bool trace = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::uint64_t n = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) {
      first = n;
      count = 1;
      trace = true;
    } else if (std::strcmp(argv[i], "--first") == 0) {
      first = n;
    } else if (std::strcmp(argv[i], "--count") == 0) {
      count = n;
    } else {
      std::fprintf(stderr, "usage: job_sim [--seed N | --first N --count M]\n");
      return 2;
    }
  }
  shoal::sim::job_sim_result sum;
  std::uint64_t failed = 0;
  for (std::uint64_t s = first; s < first + count; ++s) {
    auto r = shoal::sim::run_job_sim(s, trace);
    if (!r.ok) {
      ++failed;
      std::printf("%s\n", r.error.c_str());
    }
    sum.steps += r.steps;
    sum.views += r.views;
    sum.crashes += r.crashes;
    sum.losses += r.losses;
    sum.forwards += r.forwards;
  }
  std::printf("%llu seeds, %llu failed; %llu steps, %llu views, %llu crashes, "
              "%llu losses, %llu rolled forward\n",
              (unsigned long long)count, (unsigned long long)failed,
              (unsigned long long)sum.steps, (unsigned long long)sum.views,
              (unsigned long long)sum.crashes, (unsigned long long)sum.losses,
              (unsigned long long)sum.forwards);
  return failed == 0 ? 0 : 1;
}
