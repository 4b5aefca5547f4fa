// tests/sim/cluster_sim_main.cpp -- runs simulated shoals from a command line.
//
//   cluster_sim [--seed N] [--seeds N] [--peers N] [--calm] [--scales] [--print]
//               [--mutant 1..5] [--twice]
//
// --seed is the first seed, --seeds how many follow it. --twice runs each
// again, which must give the same trace. Exit code 1 and the command that
// repeats the run if one fails.
#include "cluster_sim.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int usage(const char* why) {
  std::fprintf(stderr,
               "cluster_sim: %s\nusage: cluster_sim [--seed N] [--seeds N] "
               "[--peers 1..9] [--calm] [--print] [--mutant 1..5] [--twice]\n",
               why);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  shoal::sim::cluster_options o;
  std::uint64_t seeds = 1;
  bool twice = false;
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
    if (is("--calm")) {
      o.calm = true;
    } else if (is("--scales")) {
      o.scales = true;
    } else if (is("--print")) {
      o.print = true;
    } else if (is("--twice")) {
      twice = true;
    } else if (is("--seed") || is("--seeds") || is("--peers")
               || is("--mutant")) {
      if (i + 1 == argc)
        return usage("a value is missing");
      char* end = nullptr;
      std::uint64_t value = std::strtoull(argv[i + 1], &end, 10);
      if (*end != 0 || end == argv[i + 1])
        return usage("not a number");
      if (is("--seed"))
        o.seed = value;
      else if (is("--seeds"))
        seeds = value;
      else if (is("--peers"))
        o.peers = int(value);
      else
        o.bug = shoal::sim::mutant(value);
      ++i;
    } else {
      return usage(argv[i]);
    }
  }
  std::uint64_t failed = 0;
  std::uint64_t gone = 0;
  std::uint64_t apart = 0;
  std::uint64_t revocations = 0;
  std::uint64_t events = 0;
  std::uint64_t views = 0;
  std::uint64_t crashes = 0;
  std::uint64_t merges = 0;
  shoal::core::nanoseconds longest = 0;
  for (std::uint64_t last = o.seed + seeds; o.seed < last; ++o.seed) {
    auto r = shoal::sim::run_cluster(o);
    if (twice && r.failure.empty()
        && shoal::sim::run_cluster(o).trace != r.trace)
      r.failure = "another trace, run again";
    events += r.events;
    views += r.views;
    crashes += r.crashes;
    merges += r.merges;
    gone += r.quorum_gone;
    apart += r.apart_by_key;
    revocations += r.revocations;
    longest = std::max(longest, r.settled_after);
    if (r.failure.empty())
      continue;
    ++failed;
    std::printf("seed %llu: %s\n  repeat: cluster_sim --seed %llu --print",
                (unsigned long long)o.seed, r.failure.c_str(),
                (unsigned long long)o.seed);
    if (o.peers > 0)
      std::printf(" --peers %d", o.peers);
    if (o.bug != shoal::sim::mutant::nothing)
      std::printf(" --mutant %d", int(o.bug));
    std::printf("%s%s\n", o.calm ? " --calm" : "", o.scales ? " --scales" : "");
    std::fflush(stdout);
  }
  std::printf("%llu seeds, %llu failed; %llu events, %llu views, %llu merges, "
              "%llu crashes, %llu revocations (%llu apart), quorum gone in "
              "%llu, settled after at most %.3f s\n",
              (unsigned long long)seeds, (unsigned long long)failed,
              (unsigned long long)events, (unsigned long long)views,
              (unsigned long long)merges, (unsigned long long)crashes,
              (unsigned long long)revocations, (unsigned long long)apart,
              (unsigned long long)gone, double(longest) / 1e9);
  return failed > 0 ? 1 : 0;
}
