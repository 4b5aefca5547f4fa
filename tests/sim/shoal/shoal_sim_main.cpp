// tests/sim/shoal/shoal_sim_main.cpp -- runs simulated shoals from a command
// line.
//
//   shoal_sim [--seed N] [--seeds N] [--peers N] [--calm] [--print]
//             [--plant 1..17]
//
// --seed is the first seed, --seeds how many follow it. A single seed prints
// its trace hash. Exit code 1 and the command that repeats the run if one
// fails.
#include "tests/sim/shoal/shoal_sim.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace shoal::sim;

namespace {

int usage(const char* why) {
  std::fprintf(stderr,
               "shoal_sim: %s\nusage: shoal_sim [--seed N] [--seeds N] "
               "[--peers 3..8] [--calm] [--print] [--plant 1..17]\n",
               why);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  shoal_options o;
  std::uint64_t seeds = 1;
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
    if (is("--calm")) {
      o.calm = true;
    } else if (is("--print")) {
      o.print = true;
    } else if (is("--seed") || is("--seeds") || is("--peers")
               || is("--plant")) {
      if (i + 1 == argc)
        return usage("a value is missing");
      char* end = nullptr;
      const std::uint64_t value = std::strtoull(argv[i + 1], &end, 10);
      if (*end != 0 || end == argv[i + 1])
        return usage("not a number");
      if (is("--seed"))
        o.seed = value;
      else if (is("--seeds"))
        seeds = value;
      else if (is("--peers"))
        o.peers = int(value);
      else if (value < std::uint64_t(planted_count))
        o.bug = planted(value);
      else
        return usage("no such bug");
      ++i;
    } else {
      return usage(argv[i]);
    }
  }
  shoal_result sum;
  std::uint64_t failed = 0;
  std::uint64_t stuck = 0;
  for (std::uint64_t last = o.seed + seeds; o.seed < last; ++o.seed) {
    const shoal_result r = run_shoal(o);
    sum.simulated += r.simulated;
    sum.ended_after = std::max(sum.ended_after, r.ended_after);
    sum.events += r.events;
    sum.views += r.views;
    sum.steps += r.steps;
    sum.kills += r.kills;
    sum.losses += r.losses;
    stuck += r.stuck;
    sum.trace = r.trace;
    if (r.failure.empty())
      continue;
    ++failed;
    std::printf("seed %llu: %s\n  repeat: shoal_sim --seed %llu --print%s",
                (unsigned long long)o.seed, r.failure.c_str(),
                (unsigned long long)o.seed, o.calm ? " --calm" : "");
    if (o.peers > 0)
      std::printf(" --peers %d", o.peers);
    if (o.bug != planted::nothing)
      std::printf(" --plant %d", int(o.bug));
    std::printf("\n");
    std::fflush(stdout);
  }
  const double cpu = double(std::clock()) / CLOCKS_PER_SEC;
  const double simulated = double(sum.simulated) / 1e9;
  std::printf(
    "%llu seeds, %llu failed; %llu events, %llu views, %llu steps, "
    "%llu kills, steps lost %llu times, quorum gone in %llu, ended after "
    "at most %.1f s\n",
    (unsigned long long)seeds, (unsigned long long)failed,
    (unsigned long long)sum.events, (unsigned long long)sum.views,
    (unsigned long long)sum.steps, (unsigned long long)sum.kills,
    (unsigned long long)sum.losses, (unsigned long long)stuck,
    double(sum.ended_after) / 1e9);
  std::printf("trace %016llx; %.0f simulated seconds in %.1f of CPU: %.0f "
              "times real time\n",
              (unsigned long long)sum.trace, simulated, cpu, simulated / cpu);
  return failed > 0 ? 1 : 0;
}
