// tests/sim/shoal/shoal_sim_main.cpp -- runs simulated shoals from a command
// line.
//
//   shoal_sim [--seed N] [--seeds N] [--peers N] [--jobs N] [--islands N]
//             [--cancel] [--calm] [--print] [--mutant 1..24] [--twice] [--speed]
//             [--traces]
//
// --seed is the first seed, --seeds how many follow it. A single seed prints
// its trace hash; --traces prints those of all, to compare two builds. --twice
// runs each again, which must give the same trace. --speed: 8 peers and, by
// default, speed_seeds; prints the ratio of simulated time to processor time.
// Exit code 1 and the command that repeats the run if one fails, or if too many
// lose their quorum.
#include "tests/sim/shoal/shoal_sim.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

using namespace shoal::sim;

namespace {

constexpr std::uint64_t speed_seeds = 40;

/// Runs in which a quorum has gone on without the others, so that the job
/// cannot end, should be rare. The share is a guess, not measured: set it from
/// 500 seeds. Checked only for at least this many seeds.
constexpr double stuck_share_max = 0.02;
constexpr std::uint64_t stuck_seeds_min = 100;

struct arguments {
  shoal_options run;
  std::uint64_t seeds = 0; ///< 0: not given
  bool twice = false;
  bool speed = false;
  bool traces = false;
};

struct sums {
  shoal_result all; ///< sums, or maxima
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::vector<std::uint64_t> stuck; ///< seeds
  std::vector<double> rates;        ///< simulated seconds per second of
                                    ///< processor time
};

int usage(const char* why) {
  std::fprintf(
    stderr,
    "shoal_sim: %s\nusage: shoal_sim [--seed N] [--seeds N] "
    "[--peers 3..8] [--jobs 1..4] [--islands 1..4] [--cancel] [--calm] "
    "[--print] [--mutant 1..24] [--twice] [--speed] [--traces]\n",
    why);
  return 2;
}

/// @returns the error, or nullptr.
const char* parse(int argc, char** argv, arguments& out) {
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
    if (is("--calm")) {
      out.run.calm = true;
    } else if (is("--cancel")) {
      out.run.cancel = true;
    } else if (is("--print")) {
      out.run.print = true;
    } else if (is("--twice")) {
      out.twice = true;
    } else if (is("--speed")) {
      out.speed = true;
    } else if (is("--traces")) {
      out.traces = true;
    } else if (is("--seed") || is("--seeds") || is("--peers") || is("--jobs")
               || is("--islands") || is("--mutant")) {
      if (i + 1 == argc)
        return "a value is missing";
      char* end = nullptr;
      const std::uint64_t value = std::strtoull(argv[i + 1], &end, 10);
      if (*end != 0 || end == argv[i + 1])
        return "not a number";
      if (is("--seed"))
        out.run.seed = value;
      else if (is("--seeds"))
        out.seeds = value;
      else if (is("--peers"))
        out.run.peers = int(value);
      else if (is("--jobs") && value >= 1 && value <= jobs_at_once_max)
        out.run.jobs = int(value);
      else if (is("--islands") && value >= 1 && value <= islands_at_once_max)
        out.run.islands = int(value);
      else if (!is("--mutant"))
        return "out of range";
      else if (value < std::uint64_t(mutant_count))
        out.run.bug = mutant(value);
      else
        return "no such bug";
      ++i;
    } else {
      return argv[i];
    }
  }
  if (out.seeds == 0)
    out.seeds = out.speed ? speed_seeds : 1;
  if (out.speed && out.run.peers == 0)
    out.run.peers = nodes_max;
  return nullptr;
}

double processor_seconds() {
  return double(std::clock()) / CLOCKS_PER_SEC;
}

void add(sums& to, const shoal_options& o, const shoal_result& r) {
  ++to.seeds;
  to.all.simulated += r.simulated;
  to.all.ended_after = std::max(to.all.ended_after, r.ended_after);
  to.all.events += r.events;
  to.all.views += r.views;
  to.all.steps += r.steps;
  to.all.kills += r.kills;
  to.all.losses += r.losses;
  to.all.trace = r.trace;
  to.all.buffer_bytes_most =
    std::max(to.all.buffer_bytes_most, r.buffer_bytes_most);
  to.all.transfers_most = std::max(to.all.transfers_most, r.transfers_most);
  if (r.stuck)
    to.stuck.push_back(o.seed);
  if (r.failure.empty())
    return;
  ++to.failed;
  std::printf("seed %llu: %s\n  repeat: shoal_sim --seed %llu --print%s",
              (unsigned long long)o.seed, r.failure.c_str(),
              (unsigned long long)o.seed, o.calm ? " --calm" : "");
  if (o.peers > 0)
    std::printf(" --peers %d", o.peers);
  if (o.jobs > 1)
    std::printf(" --jobs %d", o.jobs);
  if (o.islands > 1)
    std::printf(" --islands %d", o.islands);
  if (o.cancel)
    std::printf(" --cancel");
  if (o.bug != mutant::nothing)
    std::printf(" --mutant %d", int(o.bug));
  std::printf("\n");
  std::fflush(stdout);
}

void print(const sums& s) {
  const double cpu = processor_seconds();
  const double simulated = double(s.all.simulated) / 1e9;
  std::printf(
    "%llu seeds, %llu failed; %llu events, %llu views, %llu steps, "
    "%llu kills, steps lost %llu times, quorum gone in %zu, ended after "
    "at most %.1f s; at most %zu transfers open and %zu bytes in buffers\n",
    (unsigned long long)s.seeds, (unsigned long long)s.failed,
    (unsigned long long)s.all.events, (unsigned long long)s.all.views,
    (unsigned long long)s.all.steps, (unsigned long long)s.all.kills,
    (unsigned long long)s.all.losses, s.stuck.size(),
    double(s.all.ended_after) / 1e9, s.all.transfers_most,
    s.all.buffer_bytes_most);
  std::printf("trace %016llx; %.0f simulated seconds in %.1f of CPU: %.0f "
              "times real time\n",
              (unsigned long long)s.all.trace, simulated, cpu, simulated / cpu);
  if (!s.stuck.empty()) {
    std::printf("quorum gone: seeds");
    for (const std::uint64_t seed : s.stuck)
      std::printf(" %llu", (unsigned long long)seed);
    std::printf("\n");
  }
}

void print_speed(std::vector<double> rates, int peers) {
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  std::vector<double> off;
  for (const double r : rates)
    off.push_back(std::abs(r - median));
  std::ranges::sort(off);
  std::printf("%d peers: %.0f times real time, median of %zu seeds, MAD %.0f, "
              "slowest %.0f\n",
              peers, median, rates.size(), off[off.size() / 2], rates.front());
}

} // namespace

int main(int argc, char** argv) {
  arguments a;
  if (const char* why = parse(argc, argv, a))
    return usage(why);
  shoal_options& o = a.run;
  sums s;
  for (const std::uint64_t last = o.seed + a.seeds; o.seed < last; ++o.seed) {
    const double before = processor_seconds();
    shoal_result r = run_shoal(o);
    s.rates.push_back(double(r.simulated) / 1e9
                      / std::max(processor_seconds() - before, 1e-6));
    if (a.twice && r.failure.empty() && run_shoal(o).trace != r.trace)
      r.failure = "another trace, run again";
    add(s, o, r);
    if (a.traces)
      std::printf("seed %llu: trace %016llx\n", (unsigned long long)o.seed,
                  (unsigned long long)r.trace);
  }
  print(s);
  if (a.speed)
    print_speed(s.rates, o.peers);
  const bool many_stuck =
    o.bug == mutant::nothing && s.seeds >= stuck_seeds_min
    && double(s.stuck.size()) > stuck_share_max * double(s.seeds);
  if (many_stuck)
    std::printf("FAILS: more than %.0f %% of the runs have no quorum at the "
                "end\n",
                stuck_share_max * 100);
  return s.failed > 0 || many_stuck ? 1 : 0;
}
