// tests/runtime/core/measure/profile_watch_test.cpp -- when a profile is
// replaced.
#include "runtime/core/measure/profile_watch.hpp"
#include "runtime/core/planning/layout/cost.hpp"
#include "runtime/core/text/amounts.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

BOOST_AUTO_TEST_SUITE(profile_watches)

using namespace shoal::core;

namespace {

constexpr nanoseconds ms = 1'000'000;
constexpr std::uint64_t speed = 16'000;

device_profile measured() {
  device_profile d;
  d.mflops = speed;
  return d;
}

/// A peer whose steps should take `expected` at the speed in the view.
struct worker {
  profile_watch watch{measured()};
  std::uint64_t believed = speed;
  nanoseconds now = 1, expected = 300 * ms;
  nanoseconds waiting = 0; ///< in each step, beside what the device does
  int proposals = 0;

  /// Steps at a speed in permille of the speed measured at start.
  /// @returns the steps until a proposal; 0: none
  int run(int steps, std::uint64_t permille, job_id job = 1) {
    for (int i = 1; i <= steps; ++i) {
      const nanoseconds took = expected * 1000 / nanoseconds(permille);
      now += took + waiting;
      // The plan expects what the profile in the view makes of it.
      watch.step(now, job,
                 nanoseconds(muldiv(std::uint64_t(expected), speed, believed)),
                 took, believed);
      if (const auto p = watch.take(now)) {
        believed = p->device.mflops;
        ++proposals;
        return i;
      }
    }
    return 0;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_straggler_is_noticed_within_ten_steps_and_forgiven) {
  worker w;
  BOOST_TEST(w.run(100, 1000) == 0);
  const int slow = w.run(10, 250);
  BOOST_TEST(slow > 0);
  BOOST_TEST(w.believed == rounded(speed / 4));
  BOOST_TEST(w.run(100, 250) == 0); // it is known by now
  BOOST_TEST(w.run(40, 1000) > 0);
  BOOST_TEST(w.believed == rounded(speed));
}

// A run of a tiny model left a machine at a 20th of its speed, for all plans.
BOOST_AUTO_TEST_CASE(what_a_job_showed_is_forgotten_when_none_runs) {
  worker w;
  w.watch.no_job();
  BOOST_TEST(!w.watch.take(w.now)); // nothing to forget
  BOOST_TEST(w.run(100, 1000) == 0);
  BOOST_TEST(w.run(10, 250) > 0);
  w.watch.no_job();
  const auto p = w.watch.take(w.now);
  BOOST_REQUIRE(p);
  BOOST_TEST(p->device.mflops == speed);
  w.believed = speed;
  BOOST_TEST(w.run(100, 250, 2) == 0); // usual for the next one
  BOOST_TEST(w.run(10, 50, 2) > 0);
}

/// With any share of a step in which a device works: one stage of many waits
/// for the others most of the time.
BOOST_AUTO_TEST_CASE(no_straggler_has_ten_steps_that_take_a_tenth_of_a_second) {
  for (const nanoseconds step : {100 * ms, 150 * ms, 300 * ms, 1000 * ms})
    for (const int stages : {1, 2, 4, 8}) {
      worker w;
      w.expected = step / stages;
      w.waiting = step - w.expected;
      BOOST_TEST(w.run(100, 1000) == 0);
      // Two more until another plan is in force.
      const int slow = w.run(20, 250);
      BOOST_TEST(slow > 0);
      BOOST_TEST(slow <= 8, "noticed after " << slow << " steps of "
                                             << step / ms << " ms by one of "
                                             << stages);
      BOOST_TEST(w.believed == rounded(speed / 4));
    }
}

// A machine may be less fast at a job than at what it was measured with.
BOOST_AUTO_TEST_CASE(the_usual_speed_of_a_job_is_no_news) {
  worker w;
  BOOST_TEST(w.run(100, 400) == 0);
  BOOST_TEST(w.run(100, 900, 2) == 0);
  BOOST_TEST(w.run(20, 100) > 0);
  BOOST_TEST(w.believed == rounded(speed / 4)); // a quarter of the usual speed
}

BOOST_AUTO_TEST_CASE(half_of_the_speed_is_news_if_it_lasts) {
  worker w;
  w.run(20, 1000);
  for (int i = 0; i < 10; ++i) { // for some seconds, now and then
    BOOST_TEST(w.run(20, 500) == 0);
    BOOST_TEST(w.run(5, 1000) == 0);
  }
  const nanoseconds since = w.now;
  BOOST_TEST(w.run(200, 500) > 0);
  BOOST_TEST(w.now - since >= profile_watch::speed_off_for);
  BOOST_TEST(w.believed == rounded(speed / 2));
}

BOOST_AUTO_TEST_CASE(a_slow_start_is_not_usual) {
  worker w;
  w.run(4, 450);
  BOOST_TEST(w.run(100, 1000) == 0);
  BOOST_TEST(w.run(10, 250) > 0);
}

BOOST_AUTO_TEST_CASE(steps_after_a_change_of_the_plan_say_nothing) {
  worker w;
  w.run(20, 1000);
  for (int i = 0; i < 20; ++i) {
    w.watch.placed(1);
    BOOST_TEST(w.run(profile_watch::settling_steps, 200) == 0);
  }
  w.watch.placed(1); // a straggler is noticed all the same
  BOOST_TEST(w.run(10, 250) > 0);
}

// Nodes of one machine that hinder each other less than plans count on: when all but
// one had died, that one was taken for a seventh as fast.
BOOST_AUTO_TEST_CASE(steps_with_other_nodes_of_the_machine_are_another_usual) {
  worker w;
  w.watch.placed(1, 3);
  w.run(20, 3000);
  w.watch.placed(1, 1);
  BOOST_TEST(w.run(100, 900) == 0);
  BOOST_TEST(w.run(10, 200) > 0);
}

BOOST_AUTO_TEST_CASE(noise_is_no_news) {
  std::mt19937_64 random(7);
  worker w;
  for (int i = 0; i < 3000; ++i) // one step in four takes up to 8 times as long
    w.run(1, random() % 4 == 0 ? 125 + random() % 800 : 900 + random() % 200);
  BOOST_TEST(w.proposals == 0);
  worker short_steps; // many of them, but all within a moment
  short_steps.expected = 10 * ms;
  short_steps.run(20, 1000);
  BOOST_TEST(short_steps.run(40, 250) == 0);
  BOOST_TEST(short_steps.run(100, 250) > 0);
}

BOOST_AUTO_TEST_CASE(between_two_profiles_there_is_rest) {
  worker w;
  w.run(20, 1000);
  BOOST_TEST(w.run(10, 250) > 0);
  const nanoseconds first = w.now;
  BOOST_TEST(w.run(1000, 2000) > 0);
  BOOST_TEST(w.now - first >= profile_watch::rest);
}

BOOST_AUTO_TEST_CASE(links_are_news_where_the_plan_assumes_otherwise) {
  profile_watch w(measured());
  nanoseconds now = 1;
  const auto look = [&](const char* name, nanoseconds latency,
                        std::uint64_t rate) {
    for (int i = 0; i < 40; ++i) {
      now += 1000 * ms;
      w.network(now, name, latency, rate);
    }
    return w.take(now);
  };
  BOOST_TEST(!look("tls", assumed_hop, assumed_bytes_per_s * 3 / 2));
  BOOST_TEST(!look("host", 0, 0)); // nothing measured yet
  const auto slow = look("tls", 20 * ms, 12'000'000);
  BOOST_REQUIRE(slow);
  BOOST_REQUIRE(slow->networks.size() == 1u);
  BOOST_TEST(slow->why
             == "links by tls carry " + rate_text(rounded(12'000'000))
                  + " (plans counted on 1 GB/s)");
  BOOST_TEST(slow->networks[0].name == "tls");
  BOOST_TEST(slow->networks[0].latency == nanoseconds(rounded(20 * ms)));
  BOOST_TEST(slow->networks[0].bytes_per_s == rounded(12'000'000));
  BOOST_TEST(slow->device.mflops == speed);
  BOOST_TEST(!look("tls", 25 * ms, 15'000'000));
  for (int i = 0; i < 200; ++i) { // slow for a while, now and then: no news
    now += 1000 * ms;
    w.network(now, "tls", 20 * ms, i % 30 < 20 ? 1'000'000 : 12'000'000);
    BOOST_REQUIRE(!w.take(now));
  }
  // Names beyond what a view holds are left out.
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    look(name, 20 * ms, 12'000'000);
  now += profile_watch::rest;
  const auto many = look("tls", 100 * ms, 1'000'000);
  BOOST_REQUIRE(many);
  BOOST_TEST(many->networks.size() <= networks_max);
}

BOOST_AUTO_TEST_CASE(figures_are_rounded_to_eighths_of_a_power_of_two) {
  BOOST_TEST(rounded(0) == 0u);
  BOOST_TEST(rounded(15) == 15u);
  BOOST_TEST(rounded(16'000) == 16'384u);
  BOOST_TEST(rounded(rounded(123'456'789)) == rounded(123'456'789));
  BOOST_TEST(rounded(~std::uint64_t{0}) > ~std::uint64_t{0} / 16 * 15);
}

BOOST_AUTO_TEST_CASE(
  room_on_a_disk_is_worth_a_view_when_it_differs_or_is_refused) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  device_profile d = measured();
  d.disk_bytes = 64 * gib;
  profile_watch w(d);
  const auto offered = [&](std::uint64_t bytes, bool refused) {
    w.disk(bytes, refused);
    const auto p = w.take(0);
    return p ? p->device.disk_bytes : 0;
  };
  BOOST_TEST(offered(60 * gib, false) == 0u);
  BOOST_TEST(offered(79 * gib, false) == 0u);
  BOOST_TEST(offered(56 * gib, false) == 56 * gib);
  BOOST_TEST(offered(71 * gib, false) == 71 * gib);
  BOOST_TEST(offered(70 * gib, true) == 70 * gib); // at once
  // It says that there is room, and refuses all the same.
  const std::uint64_t less = offered(70 * gib, true);
  BOOST_TEST(less < 70 * gib);
  BOOST_TEST(less >= 68 * gib);
  BOOST_TEST(offered(70 * gib, true) < less);
  BOOST_TEST(offered(0, true) == 1u); // 0 would say that it is not known
  BOOST_TEST(rounded_room((std::uint64_t{1} << 40) - 1) % (gib * 4) == 0u);
  profile_watch full(d);
  full.disk(0, true);
  BOOST_TEST(full.take(0)->why
             == "the disk has no room for files of served models (plans "
                "counted on 64 GiB)");
}

BOOST_AUTO_TEST_SUITE_END()
