// tests/sim/cluster_field_test.cpp -- tests of detection and agreement, which
// print the measured figures to stdout.
#include "cluster_field.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

BOOST_AUTO_TEST_SUITE(cluster_field)

using namespace shoal::sim;
using namespace shoal::core;

namespace {

constexpr nanoseconds ms = 1'000'000;
constexpr nanoseconds s = 1000 * ms;

double in_ms(nanoseconds t) {
  return double(t) / 1e6;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_cut_pair_is_listed_and_no_peer_is_expelled) {
  for (int n : {3, 4, 8, 20})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      BOOST_TEST_CONTEXT("peers " << n << ", seed " << seed) {
        field f({.seed = seed, .peers = n});
        BOOST_TEST_REQUIRE(f.gather(20 * s));
        auto listed = [&](std::size_t count) {
          for (int i = 0; i < n; ++i)
            if (f.view_of(i).cuts.size() != count)
              return false;
          return true;
        };
        int other = 1; // a peer that peer 0 watches, or that watches it
        f.cut(0, other);
        auto found = f.until([&] { return listed(1); }, 15 * s);
        if (n <= 11) { // every member watches every other
          BOOST_TEST(found >= 0);
          BOOST_TEST(is_cut(f.view_of(n - 1), f.id_of(0), f.id_of(other)));
        }
        f.run(5 * s);
        BOOST_TEST(f.agreed(std::size_t(n)));
        f.mend(0, other);
        BOOST_TEST(f.until([&] { return listed(0); }, 15 * s) >= 0);
        BOOST_TEST(f.agreed(std::size_t(n)));
      }
    }
}

BOOST_AUTO_TEST_CASE(many_that_die_at_once_leave_in_one_view) {
  for (int n : {9, 24, 64})
    for (bool silent : {false, true}) {
      field f({.seed = std::uint64_t(n), .peers = n});
      BOOST_TEST_REQUIRE(f.gather(20 * s));
      std::size_t views = f.views().size();
      int dead = std::min(10, (n - 1) / 3);
      for (int i = 0; i < dead; ++i)
        silent ? f.vanish(i * 2 + 1) : f.kill(i * 2 + 1);
      auto took =
        f.until([&] { return f.agreed(std::size_t(n - dead)); }, 10 * s);
      std::printf("%d of %d die%s: gone after %.0f ms in %zu views\n", dead, n,
                  silent ? " silently" : "", in_ms(took),
                  f.views().size() - views);
      BOOST_TEST(took >= 0);
      BOOST_TEST(took < 3 * s);
      BOOST_TEST(f.views().size() - views == 1u);
    }
}

/// A number that a longer run may set.
static int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

BOOST_AUTO_TEST_CASE(a_large_shoal_gathers_and_loses_ten_at_once) {
  int n = from_environment("SHOAL_FIELD_PEERS", 128);
  for (bool silent : {false, true}) {
    field f({.seed = 3, .peers = n});
    BOOST_TEST_REQUIRE(f.gather(10 * s));
    std::printf("%d peers: one view after %.0f ms, %zu views, %.1f messages a "
                "pair\n",
                n, in_ms(f.now()), f.views().size(),
                double(f.messages()) / (n * double(n - 1) / 2));
    std::size_t views = f.views().size();
    for (int i = 0; i < 10; ++i)
      silent ? f.vanish(i * 7) : f.kill(i * 7);
    auto took = f.until([&] { return f.agreed(std::size_t(n - 10)); }, 10 * s);
    std::printf("10 of %d die%s: gone after %.0f ms in %zu views\n", n,
                silent ? " silently" : "", in_ms(took),
                f.views().size() - views);
    BOOST_TEST(took >= 0);
    BOOST_TEST(took < 3 * s);
    BOOST_TEST(f.views().size() - views == 1u);
  }
}

BOOST_AUTO_TEST_CASE(traffic_of_a_peer_stops_growing_with_the_shoal) {
  double first = 0;
  for (int n : {16, 64, 160}) {
    field f({.seed = 5, .peers = n});
    BOOST_TEST_REQUIRE(f.gather(30 * s));
    f.run(s);
    auto before = f.messages();
    f.run(4 * s);
    double rate = double(f.messages() - before) / 4 / n;
    std::printf("%d peers: %.1f messages a peer and second\n", n, rate);
    first = first == 0 ? rate : first;
    BOOST_TEST(rate < 1.2 * first);
    BOOST_TEST(rate > 0.8 * first);
  }
}

/// The time of a change while `stopped` of n members are stopped.
static nanoseconds change_time(std::uint64_t seed, int n, int stopped) {
  field f({.seed = seed, .peers = n});
  if (!f.gather(20 * s))
    return -1;
  std::vector<int> by_id(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    by_id[std::size_t(i)] = i;
  std::ranges::sort(by_id, {}, [&](int i) { return f.id_of(i); });
  f.run(nanoseconds(seed % 7) * 100 * ms);
  int victim = by_id[0] == 0 ? by_id[1] : 0; // dies meanwhile
  int still = by_id[std::size_t(stopped)];
  if (still == victim)
    return -2;
  f.kill(victim);
  f.stop(still, s);
  return f.until(
    [&] {
      for (int i = 0; i < n; ++i)
        if (i != still && f.alive(i)
            && f.view_of(i).members.size() != std::size_t(n - 1))
          return false;
      return true;
    },
    5 * s);
}

BOOST_AUTO_TEST_CASE(no_member_is_a_sequencer) {
  const int n = 7;
  const int seeds = 60;
  std::vector<double> means;
  for (int stopped = 0; stopped < n; ++stopped) {
    std::vector<nanoseconds> times;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      if (auto t = change_time(seed, n, stopped); t != -2) {
        BOOST_TEST_REQUIRE(t >= 0);
        times.push_back(t);
      }
    nanoseconds sum = 0;
    for (nanoseconds t : times)
      sum += t;
    means.push_back(in_ms(sum) / double(times.size()));
    std::printf("stopped: member %d by id; the others agree after %.1f ms "
                "(mean), %.1f ms (worst)\n",
                stopped, means.back(), in_ms(std::ranges::max(times)));
  }
  // A turn is 30 ms: if the first turn were always the same member's, its mean
  // would be higher by that; chance alone makes about 2 ms.
  auto [low, high] = std::ranges::minmax(means);
  BOOST_TEST(high - low <= 12, "from " << low << " to " << high << " ms");
}

/// Kills `dead` of five that gather under `o`.
/// @returns the time until the others agree; -1: they do not, or a living peer
/// was expelled
static nanoseconds loss_time(field_options o, int dead, nanoseconds gather) {
  field f(o);
  if (!f.gather(gather))
    return -1;
  f.run(20 * s);
  if (!f.agreed(std::size_t(o.peers)))
    return -1;
  for (int i = 0; i < dead; ++i)
    f.kill(2 * i + 1);
  const auto took =
    f.until([&] { return f.agreed(std::size_t(o.peers - dead)); }, 60 * s);
  f.run(20 * s);
  return f.agreed(std::size_t(o.peers - dead)) ? took : -1;
}

BOOST_AUTO_TEST_CASE(a_far_shoal_agrees_as_a_near_one_does) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      const auto took = loss_time({.seed = seed,
                                   .peers = 5,
                                   .delay_min = 195 * ms,
                                   .delay_max = 205 * ms},
                                  2, 120 * s);
      std::printf("round trip of 400 ms: two of five gone after %.0f ms\n",
                  in_ms(took));
      BOOST_TEST(took >= 0);
      BOOST_TEST(took < 10 * s);
    }
}

BOOST_AUTO_TEST_CASE(slow_disks_delay_a_view_and_no_peer_is_suspected) {
  for (nanoseconds slowest : {400 * ms, 1500 * ms, 3000 * ms})
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      BOOST_TEST_CONTEXT("seed " << seed << ", " << in_ms(slowest) << " ms") {
        const auto took = loss_time({.seed = seed,
                                     .peers = 5,
                                     .write_min = slowest / 2,
                                     .write_max = slowest},
                                    2, 240 * s);
        std::printf("disks that take %.0f ms: two of five gone after %.0f ms\n",
                    in_ms(slowest), in_ms(took));
        BOOST_TEST(took >= 0);
        BOOST_TEST(took < 20 * slowest);
      }
}

BOOST_AUTO_TEST_CASE(slow_watchers_expel_nobody) {
  // Simulated minutes: 1440 is a day.
  int minutes = from_environment("SHOAL_FIELD_MINUTES", 3);
  field f({.seed = 11, .peers = 16, .loss_per_10000 = 100});
  BOOST_TEST_REQUIRE(f.gather(60 * s));
  f.slow(3, 800 * ms);
  f.slow(7, 800 * ms);
  bool all = true;
  for (int m = 0; m < minutes && all; ++m) {
    f.run(60 * s);
    for (int i = 0; i < f.size(); ++i)
      all = all && f.view_of(i).members.size() == 16;
  }
  std::printf("%d minutes, 1 %% loss, two slow watchers: %s\n", minutes,
              all ? "nobody expelled" : "a member was expelled");
  BOOST_TEST(all);
}

BOOST_AUTO_TEST_SUITE_END()
