// tests/transport/tls/admission_test.cpp -- the door, with a clock of our own.
#include "transport/tls/admission.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <set>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(admissions)

namespace {

using namespace std::chrono_literals;
using progress = admission::progress;

admission_limits small() {
  admission_limits l;
  l.unproved = 8;
  l.unproved_per_address = 4;
  l.handshakes_burst = 2;
  l.handshakes_per_second = 10;
  return l;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_address_over_its_share_pushes_out_its_own) {
  admission a(small());
  BOOST_TEST(!a.arrive(1, "member"));
  for (admission::ticket t = 2; t < 6; ++t)
    BOOST_TEST(!a.arrive(t, "stranger"));
  for (admission::ticket t = 6; t < 100; ++t)
    BOOST_TEST((a.arrive(t, "stranger") == t - 4));
  BOOST_TEST(a.places() == 5);
}

BOOST_AUTO_TEST_CASE(without_free_places_the_largest_address_loses_one) {
  admission a(small());
  admission::ticket t = 0;
  for (int i = 0; i < 4; ++i)
    a.arrive(++t, "crowd");
  for (int i = 0; i < 3; ++i)
    a.arrive(++t, "few");
  a.arrive(++t, "one");
  BOOST_TEST((a.arrive(++t, "member") == 1u)); // the oldest of the crowd
  BOOST_TEST(a.places() == 8);
  // Three and three: the group that holds the most counts as the crowd.
  const auto gone = a.arrive(++t, "another");
  BOOST_TEST((gone == 2u || gone == 5u));
}

// If groups are equal, the address does not matter, only the progress.
BOOST_AUTO_TEST_CASE(of_equal_addresses_the_least_progress_is_closed) {
  for (int silent = 1; silent <= 8; ++silent) {
    admission a(small());
    for (int i = 1; i <= 8; ++i) {
      const auto who = static_cast<admission::ticket>(i);
      a.arrive(who, std::string(1, static_cast<char>('a' + i)));
      if (i != silent)
        a.advance(who, progress::secured);
    }
    BOOST_TEST((a.arrive(9, "z") == static_cast<admission::ticket>(silent)));
    // All others have come as far: the oldest.
    a.advance(9, progress::secured);
    BOOST_TEST((a.arrive(10, "y") == (silent == 1 ? 2u : 1u)));
  }
}

BOOST_AUTO_TEST_CASE(the_most_progress_is_closed_last) {
  admission a(small());
  for (admission::ticket t = 1; t <= 4; ++t)
    a.arrive(t, "here");
  a.advance(1, progress::speaking);
  a.advance(2, progress::secured);
  BOOST_TEST((a.arrive(5, "here") == 3u));
  BOOST_TEST((a.arrive(6, "here") == 4u));
  BOOST_TEST((a.arrive(7, "here") == 5u));
  a.advance(6, progress::speaking);
  a.advance(7, progress::speaking);
  BOOST_TEST((a.arrive(8, "here") == 1u)); // all speak: the oldest of them
}

BOOST_AUTO_TEST_CASE(handshakes_begin_at_a_bounded_rate) {
  admission a(small());
  for (admission::ticket t = 1; t <= 4; ++t) {
    a.arrive(t, "here");
    a.ask(t);
  }
  BOOST_TEST((a.next(5s) == 1u));
  BOOST_TEST((a.next(5s) == 2u));
  BOOST_TEST(!a.next(5s));
  BOOST_TEST((a.due() == 5s + 100ms));
  BOOST_TEST(!a.next(5s + 99ms));
  BOOST_TEST((a.next(5s + 100ms) == 3u));
  BOOST_TEST(!a.next(5s + 100ms));
  BOOST_TEST((a.next(10s) == 4u));
  BOOST_TEST(!a.due());
}

BOOST_AUTO_TEST_CASE(turns_stop_while_they_have_cost_too_much) {
  auto l = small();
  l.handshakes_burst = 100;
  l.work_permille = 100;
  l.work_burst = 10ms;
  admission a(l);
  for (admission::ticket t = 1; t <= 2; ++t) {
    a.arrive(t, "here");
    a.ask(t);
  }
  BOOST_TEST((a.next(1s) == 1u));
  a.spend(9ms);
  BOOST_TEST((a.next(1s) == 2u)); // there is a millisecond left
  a.spend(5ms);
  // Two that continue need no new handshake, only time.
  a.ask(2);
  a.ask(1);
  a.ask(2);
  BOOST_TEST(!a.next(1s));
  BOOST_TEST((a.due() == 1s + 40ms + 1ns));
  BOOST_TEST(!a.next(1s + 40ms));
  BOOST_TEST((a.next(*a.due()) == 2u));
  BOOST_TEST((a.next(1s + 50ms) == 1u));
  BOOST_TEST(!a.next(100s)); // each asked once
  BOOST_TEST(!a.due());
  // What was not used is not saved beyond the burst.
  a.spend(11ms);
  a.ask(1);
  BOOST_TEST(!a.next(100s));
  a.spend(std::chrono::hours(1'000'000));
  a.spend(-1s);
  BOOST_TEST(!a.next(200s));
  BOOST_TEST((a.next(*a.due()) == 1u));
}

BOOST_AUTO_TEST_CASE(progress_never_decreases) {
  admission a(small());
  for (admission::ticket t = 1; t <= 4; ++t)
    a.arrive(t, "here");
  a.advance(1, progress::secured);
  a.advance(1, progress::speaking); // it has sent more
  for (admission::ticket t = 2; t <= 4; ++t)
    a.advance(t, progress::speaking);
  BOOST_TEST((a.arrive(5, "here") == 2u));
}

BOOST_AUTO_TEST_CASE(addresses_take_turns) {
  auto l = small();
  l.unproved = 100;
  l.unproved_per_address = 50;
  l.handshakes_burst = 1;
  admission a(l);
  for (admission::ticket t = 1; t <= 40; ++t) {
    a.arrive(t, "crowd");
    a.ask(t);
  }
  a.arrive(41, "member");
  a.ask(41);
  BOOST_TEST((a.next(0s) == 1u));
  BOOST_TEST((a.next(1s) == 41u)); // behind one of the crowd, not behind all
  BOOST_TEST((a.next(2s) == 2u));
}

BOOST_AUTO_TEST_CASE(a_closed_connection_has_no_turn) {
  admission a(small());
  a.arrive(1, "here");
  a.ask(1);
  a.leave(1);
  a.leave(1);
  a.advance(1, progress::secured);
  BOOST_TEST(!a.next(0s));
  BOOST_TEST(!a.due());
  BOOST_TEST(a.places() == 0);
}

// A member dials again whenever it is sent away; 5,000 strangers a second come
// from its own address, each speaking at once: the worst there is.
BOOST_AUTO_TEST_CASE(a_member_gets_in_through_a_flood_of_its_own_address) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      admission a(admission_limits{});
      admission::ticket last = 0, member = 0;
      bool in = false;
      const auto come = [&](bool is_member) {
        const auto who = ++last;
        const auto gone = a.arrive(who, "one address");
        if (gone == member)
          member = 0;
        if (is_member)
          member = who;
        a.advance(who, progress::speaking);
        a.ask(who);
      };
      admission::time now{0};
      for (int i = 0; i < 10 * 5000 && !in; ++i) { // ten seconds
        now += std::chrono::nanoseconds(random() % 400'000);
        come(false);
        if (member == 0)
          come(true);
        while (const auto who = a.next(now)) {
          in = in || who == member;
          a.leave(*who); // strangers fail their proof
        }
        BOOST_REQUIRE(a.places() <= admission_limits{}.unproved_per_address);
      }
      BOOST_TEST(in);
    }
  }
}

// in all cases.
BOOST_AUTO_TEST_CASE(the_limits_hold_in_any_order_of_events) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      admission a(small());
      std::map<admission::ticket, std::string> here;
      std::deque<admission::time> begun;
      std::set<admission::ticket> known; // connections that have begun
      admission::time spent{0}, dearest{0};
      admission::ticket last = 0;
      admission::time now{0};
      for (int i = 0; i < 2000; ++i) {
        now += std::chrono::milliseconds(random() % 20);
        if (random() % 3 != 0) {
          const auto address = std::to_string(random() % 5);
          if (const auto gone = a.arrive(++last, address))
            BOOST_REQUIRE(here.erase(*gone) == 1);
          here[last] = address;
          if (random() % 2 == 0) {
            a.advance(last, progress::speaking);
            a.ask(last);
          }
        } else if (!here.empty()) {
          auto at = here.begin();
          std::advance(at, static_cast<std::ptrdiff_t>(random() % here.size()));
          a.leave(at->first);
          here.erase(at);
        }
        while (const auto who = a.next(now)) {
          BOOST_REQUIRE(here.contains(*who));
          if (known.insert(*who).second)
            begun.push_back(now);
          const admission::time cost{
            static_cast<std::int64_t>(random() % 8'000'000)};
          a.spend(cost);
          spent += cost;
          dearest = std::max(dearest, cost);
          BOOST_REQUIRE(spent <= dearest + admission_limits{}.work_burst
                                   + now * 80 / 1000);
          if (random() % 2 == 0)
            a.ask(*who); // it has sent more
        }
        while (!begun.empty() && begun.front() <= now - 1s)
          begun.pop_front();
        BOOST_REQUIRE(begun.size() <= 12);
        BOOST_REQUIRE(here.size() <= 8);
        BOOST_REQUIRE(a.places() == here.size());
        std::map<std::string, int> count;
        for (const auto& [who, address] : here)
          BOOST_REQUIRE(++count[address] <= 4);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::transport::tls
