// tests/runtime/core/cluster/detector_test.cpp -- the choice of watchers, the
// number of accusers for a death, and the conclusions of a peer that was
// stopped.
#include "runtime/core/cluster/detector.hpp"
#include "runtime/core/random.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

BOOST_AUTO_TEST_SUITE(cluster_detector)

using namespace shoal::core;
using namespace shoal::core::cluster;

namespace {

constexpr nanoseconds ms = 1'000'000;

view shoal_of(std::size_t n) {
  view v;
  cluster::random r(n);
  v.number = 1;
  v.members.resize(n);
  for (member& m : v.members) {
    for (auto& b : m.id.peer)
      b = std::uint8_t(r.next());
    m.id.incarnation = 1;
  }
  std::ranges::sort(v.members, {}, [](const member& m) { return m.id.peer; });
  return v;
}

/// Number of deaths that the first member confirms when this many watchers
/// accuse one member that it does not watch itself, unless all watch all.
std::size_t confirmed_by(std::size_t accusers, const view& v) {
  rings all;
  all.follow(v, v.members[0].id.peer);
  std::uint32_t subject = std::uint32_t(v.members.size() - 1);
  while (!all.all_watch()
         && std::ranges::binary_search(all.subjects(), subject))
    --subject;
  detector d({v.members[0].id.peer});
  d.follow(v, 0);
  for (std::uint32_t w : all.watchers(subject))
    if (w != 0 && accusers > 0) {
      d.on_alerts(v.members[w].id.peer, {{w, subject, 1, true}});
      --accusers;
    }
  return d.confirmed().size();
}

} // namespace

BOOST_AUTO_TEST_CASE(every_member_has_ten_watchers_and_all_agree_on_them) {
  for (std::size_t n : {12u, 40u, 64u}) {
    view v = shoal_of(n);
    std::vector<rings> of(n);
    for (std::size_t i = 0; i < n; ++i)
      of[i].follow(v, v.members[i].id.peer);
    for (std::uint32_t i = 0; i < n; ++i) {
      auto watchers = of[0].watchers(i);
      BOOST_TEST(watchers.size() == rings_max);
      for (std::uint32_t w = 0; w < n; ++w)
        BOOST_TEST(std::ranges::binary_search(watchers, w)
                   == std::ranges::binary_search(of[w].subjects(), i));
    }
  }
}

BOOST_AUTO_TEST_CASE(few_voters_watch_everybody) {
  view v = shoal_of(30);
  for (std::size_t i = 3; i < 30; ++i)
    v.members[i].voter = false;
  rings r;
  r.follow(v, v.members[1].id.peer);
  BOOST_TEST(r.subjects().size() == 29u);
  BOOST_TEST(r.watchers(20).size() == 3u);
  r.follow(v, v.members[9].id.peer);
  BOOST_TEST(r.subjects().empty());
}

BOOST_AUTO_TEST_CASE(seven_of_ten_or_more_than_half_of_few_confirm) {
  view large = shoal_of(40);
  BOOST_TEST(confirmed_by(6, large) == 0u);
  BOOST_TEST(confirmed_by(7, large) == 1u);
  view small = shoal_of(6); // four others watch the last one, beside us
  BOOST_TEST(confirmed_by(2, small) == 0u);
  BOOST_TEST(confirmed_by(3, small) == 1u);
}

BOOST_AUTO_TEST_CASE(an_opinion_counts_from_its_owner_only_and_the_newest) {
  view v = shoal_of(4);
  detector d({v.members[0].id.peer});
  d.follow(v, 0);
  const peer_id& one = v.members[1].id.peer;
  const peer_id& two = v.members[2].id.peer;
  d.on_alerts(one, {{1, 3, 5, true}, {2, 3, 5, true}, {1, 999, 5, true}});
  BOOST_TEST(d.confirmed().empty());
  d.on_alerts(two, {{2, 3, 1, true}});
  BOOST_TEST(d.confirmed().size() == 1u);
  d.on_alerts(one, {{1, 3, 4, false}}); // overtaken on its way
  BOOST_TEST(d.confirmed().size() == 1u);
  d.on_alerts(one, {{1, 3, 6, false}});
  BOOST_TEST(d.confirmed().empty());
}

BOOST_AUTO_TEST_CASE(a_peer_that_was_stopped_doubts_itself_first) {
  view v = shoal_of(5);
  detector d({v.members[0].id.peer});
  actions out;
  d.follow(v, 0);
  for (std::size_t i = 1; i < 5; ++i)
    d.link_up(v.members[i].id.peer, 0, out);
  d.on_tick(ms, out);
  d.on_tick(5000 * ms, out); // nothing heard, but we were away
  BOOST_TEST(d.doubts() > 0);
  for (nanoseconds t = 5100; t < 5000 + 1600; t += 100)
    d.on_tick(t * ms, out);
  for (std::size_t i = 1; i < 5; ++i) // the plain deadline has passed
    BOOST_TEST(!d.suspects(v.members[i].id.peer));
  BOOST_TEST(d.doubts() > 2); // most are silent: is it us?
  for (nanoseconds t = 6600; t < 17'000; t += 100)
    d.on_tick(t * ms, out);
  for (std::size_t i = 1; i < 5; ++i) // but not for ever
    BOOST_TEST(d.suspects(v.members[i].id.peer));
}

/// Time until the first of four suspects the last, while `answering` of the
/// others answer each heartbeat. @param late delay of its own heartbeats
nanoseconds suspects_after(std::size_t answering, nanoseconds late) {
  view v = shoal_of(4);
  detector d({v.members[0].id.peer});
  actions out;
  d.follow(v, 0);
  for (std::size_t i = 1; i < 4; ++i)
    d.link_up(v.members[i].id.peer, 0, out);
  nanoseconds now = 0;
  const auto silent_from = 5000 * ms;
  for (;; now = d.deadline() + late) {
    out.clear();
    d.on_tick(now, out);
    for (const action& a : out)
      if (const auto* s = std::get_if<send>(&a))
        if (const auto* h = std::get_if<heartbeat>(&s->what))
          for (std::size_t i = 1; i < 4; ++i)
            if (i <= answering || now < silent_from)
              d.on_ack(v.members[i].id.peer, h->sequence, now + ms, out);
    if (d.suspects(v.members[3].id.peer))
      return now - silent_from;
  }
}

/// When half of a shoal leaves, most of the members that one of the rest
/// watches are silent; but one answers, and its own answers are not late.
BOOST_AUTO_TEST_CASE(a_peer_that_gets_answers_blames_itself_little) {
  BOOST_TEST(suspects_after(2, 0) < 1800 * ms);
  BOOST_TEST(suspects_after(1, 0) < 2600 * ms);
  BOOST_TEST(suspects_after(0, 0) > 7000 * ms);        // is it us?
  BOOST_TEST(suspects_after(1, 200 * ms) > 7000 * ms); // it may be
}

/// Time that the first of three waits for the last before it suspects it, after
/// answers with these round-trip times.
nanoseconds patience_after(std::vector<nanoseconds> round_trips) {
  view v = shoal_of(3);
  detector d({v.members[0].id.peer});
  actions out;
  d.follow(v, 0);
  for (std::size_t i = 1; i < 3; ++i)
    d.link_up(v.members[i].id.peer, 0, out);
  struct answer {
    std::size_t from = 0;
    nanoseconds at = 0;
    std::uint64_t sequence = 0;
  };
  std::vector<answer> on_their_way;
  nanoseconds last = 0;
  std::size_t beats = 0;
  for (nanoseconds now = 0;; now += 5 * ms) {
    out.clear();
    d.on_tick(now, out);
    for (const action& a : out)
      if (const auto* s = std::get_if<send>(&a))
        if (const auto* h = std::get_if<heartbeat>(&s->what)) {
          const nanoseconds rtt = round_trips[beats++ % round_trips.size()];
          on_their_way.push_back({1, now + rtt, h->sequence});
          if (now < 30'000 * ms)
            on_their_way.push_back({2, now + rtt, h->sequence});
        }
    for (auto a = on_their_way.begin(); a != on_their_way.end();)
      if (a->at <= now) {
        d.on_ack(v.members[a->from].id.peer, a->sequence, now, out);
        if (a->from == 2)
          last = now;
        a = on_their_way.erase(a);
      } else {
        ++a;
      }
    BOOST_TEST_REQUIRE(!d.suspects(v.members[1].id.peer));
    if (d.suspects(v.members[2].id.peer))
      return now - last;
  }
}

/// 3 intervals of 250 ms, two round trips and four deviations, and not less
/// than the floor.
BOOST_AUTO_TEST_CASE(deadlines_follow_measured_round_trips_above_the_floor) {
  auto about = [](nanoseconds x, nanoseconds wanted) {
    return x >= wanted - 20 * ms && x <= wanted + 20 * ms;
  };
  BOOST_TEST(about(patience_after({0}), 1500 * ms));
  BOOST_TEST(about(patience_after({ms}), 1500 * ms));
  BOOST_TEST(about(patience_after({300 * ms}), 1500 * ms));
  BOOST_TEST(about(patience_after({600 * ms}), 1950 * ms));
  BOOST_TEST(about(patience_after({1200 * ms}), 3150 * ms));
  // As long on average, but it varies.
  BOOST_TEST(
    patience_after({300 * ms, 300 * ms, 300 * ms, 900 * ms, 900 * ms, 900 * ms})
    > 2200 * ms);
}

BOOST_AUTO_TEST_CASE(no_deadline_is_longer_than_the_ceiling) {
  view v = shoal_of(2);
  detector d({v.members[0].id.peer});
  actions out;
  d.follow(v, 0);
  d.link_up(v.members[1].id.peer, 0, out);
  d.on_tick(ms, out);
  d.on_ack(v.members[1].id.peer, 1, 9000 * ms, out);
  BOOST_TEST(d.round_trip() > 9000 * ms);
  for (nanoseconds t = 9100; t < 9000 + 9900; t += 100)
    d.on_tick(t * ms, out);
  BOOST_TEST(!d.suspects(v.members[1].id.peer));
  for (nanoseconds t = 9000 + 9900; t < 9000 + 10'400; t += 100)
    d.on_tick(t * ms, out);
  BOOST_TEST(d.suspects(v.members[1].id.peer));
}

BOOST_AUTO_TEST_CASE(the_first_round_trip_counts_in_full) {
  view v = shoal_of(2);
  detector d({v.members[0].id.peer});
  actions out;
  d.follow(v, 0);
  d.link_up(v.members[1].id.peer, 0, out);
  BOOST_TEST(d.round_trip() == 0);
  d.on_tick(ms, out);
  d.on_ack(v.members[1].id.peer, 1, 401 * ms, out);
  BOOST_TEST(d.round_trip() == 400 * ms + 4 * 200 * ms);
}

BOOST_AUTO_TEST_SUITE_END()
