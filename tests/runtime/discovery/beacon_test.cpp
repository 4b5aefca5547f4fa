// tests/runtime/discovery/beacon_test.cpp -- beacons tell friends only, and once.
#include "runtime/discovery/beacon_filter.hpp"
#include "runtime/discovery/multicast.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

using namespace std::chrono_literals;
using verdict = beacon_filter::verdict;

static ip_address ip(const std::string& text) {
  const auto a = parse_ip(text);
  BOOST_TEST_REQUIRE(a.has_value(), text);
  return a->address;
}

static beacon some() {
  beacon b;
  b.port = 7001;
  b.sender = {1, 2, 3};
  b.time = 1'700'000'000'000'000;
  b.address = ip("10.0.0.7");
  b.alone = true;
  return b;
}

BOOST_AUTO_TEST_SUITE(beacons)

BOOST_AUTO_TEST_CASE(a_beacon_comes_back_with_the_same_key_and_cluster) {
  transport::tls::shared_key key{9};
  auto b = decode_beacon(encode_beacon(some(), "blue", key), "blue", key);
  BOOST_TEST_REQUIRE(b.has_value());
  BOOST_TEST(b->port == 7001);
  BOOST_TEST(b->alone);
  BOOST_TEST(b->time == some().time);
  BOOST_TEST(bool(b->address == some().address));
  BOOST_TEST(bool(b->sender == some().sender));
}

BOOST_AUTO_TEST_CASE(another_key_or_cluster_hears_nothing) {
  transport::tls::shared_key key{9};
  auto bytes = encode_beacon(some(), "blue", key);
  BOOST_TEST(!decode_beacon(bytes, "red", key));
  BOOST_TEST(!decode_beacon(bytes, "blue", transport::tls::shared_key{8}));
}

BOOST_AUTO_TEST_CASE(a_changed_byte_spoils_it) {
  transport::tls::shared_key key{9};
  auto bytes = encode_beacon(some(), "blue", key);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    BOOST_TEST(!decode_beacon(changed, "blue", key));
    BOOST_TEST(!decode_beacon(std::span(bytes).first(i), "blue", key));
  }
}

BOOST_AUTO_TEST_CASE(a_beacon_of_no_place_is_malformed) {
  transport::tls::shared_key key{9};
  for (const char* nowhere : {"0.0.0.0", "::", "224.0.0.1", "ff02::1"}) {
    beacon b = some();
    b.address = ip(nowhere);
    BOOST_TEST(!decode_beacon(encode_beacon(b, "blue", key), "blue", key),
               nowhere);
  }
}

BOOST_AUTO_TEST_SUITE_END()

struct filtering {
  verdict hear(const beacon& b) { return hear(b, {b.address, false}); }
  verdict hear(const beacon& b, const beacon_filter::origin& from) {
    return filter.judge(b, from, false, now);
  }
  beacon later(std::uint64_t us) {
    beacon b = some();
    b.time += us;
    return b;
  }
  beacon_filter filter;
  beacon_filter::time now = 1h;
};

BOOST_FIXTURE_TEST_SUITE(beacon_filters, filtering)

BOOST_AUTO_TEST_CASE(a_repeated_beacon_has_no_effect) {
  BOOST_TEST((hear(some()) == verdict::dial));
  for (int i = 0; i < 100; ++i) {
    now += 5s;
    BOOST_TEST((hear(some()) == verdict::old));
  }
  BOOST_TEST((hear(later(1)) == verdict::dial));
  BOOST_TEST(filter.counts().old == 100u);
}

BOOST_AUTO_TEST_CASE(a_beacon_from_another_place_has_no_effect) {
  BOOST_TEST((hear(some(), {ip("10.0.0.8"), false}) == verdict::elsewhere));
  BOOST_TEST((hear(some(), {ip("10.0.0.7"), false}) == verdict::dial));
}

BOOST_AUTO_TEST_CASE(loopback_is_offered_on_loopback_only) {
  for (const char* own : {"127.0.0.1", "::1"}) {
    beacon b = some();
    b.address = ip(own);
    BOOST_TEST((hear(b, {ip(own), false}) == verdict::elsewhere));
    // Without an IPv4 address of its own the interface has this one.
    BOOST_TEST((hear(b, {ip("0.0.0.0"), true}) == verdict::dial));
  }
  BOOST_TEST((hear(some(), {ip("127.0.0.1"), true}) == verdict::elsewhere));
}

BOOST_AUTO_TEST_CASE(where_a_sender_was_before_is_not_dialled) {
  beacon moved = later(beacon_filter::reorder_window_us + 1);
  moved.address = ip("10.0.0.9");
  BOOST_TEST((hear(moved) == verdict::dial));
  BOOST_TEST((hear(some()) == verdict::old));
}

BOOST_AUTO_TEST_CASE(interfaces_of_different_speed_are_all_heard) {
  beacon six = later(1);
  six.address = ip("fe80::7");
  BOOST_TEST((hear(six) == verdict::dial));
  BOOST_TEST((hear(some()) == verdict::dial)); // sent before, heard after
  BOOST_TEST((hear(some()) == verdict::old));
  BOOST_TEST((hear(six) == verdict::old));
}

BOOST_AUTO_TEST_CASE(any_clock_will_do) {
  beacon b = some();
  b.time = 1; // 1970
  BOOST_TEST((hear(b) == verdict::dial));
  // One that was ahead is heard again when it is forgotten.
  beacon ahead = some();
  ahead.sender = {9};
  ahead.address = ip("10.0.0.9");
  ahead.time = ~std::uint64_t{0} - 1;
  BOOST_TEST((hear(ahead) == verdict::dial));
  ahead.time = some().time;
  now += beacon_filter::sender_memory;
  BOOST_TEST((hear(ahead) == verdict::old));
  now += 1s;
  BOOST_TEST((hear(ahead) == verdict::dial));
}

BOOST_AUTO_TEST_CASE(an_address_is_dialled_once_in_a_pause) {
  BOOST_TEST((hear(later(0)) == verdict::dial));
  BOOST_TEST((hear(later(1)) == verdict::paused));
  now += beacon_filter::dial_pause;
  BOOST_TEST((hear(later(2)) == verdict::dial));
}

BOOST_AUTO_TEST_CASE(dials_of_a_second_are_bounded) {
  beacon b = some();
  const auto dials = [&] {
    std::size_t n = 0;
    for (unsigned i = 0; i < 2 * beacon_filter::dials_max; ++i) {
      ++b.sender[4];
      b.sender[5] = std::uint8_t(b.sender[5] + (b.sender[4] == 0));
      ++b.port;
      n += hear(b) == verdict::dial;
    }
    return n;
  };
  BOOST_TEST(dials() == beacon_filter::dials_max);
  now += 1s;
  BOOST_TEST(dials() == beacon_filter::dials_max);
}

BOOST_AUTO_TEST_CASE(a_connected_sender_costs_no_dial) {
  BOOST_TEST((filter.judge(some(), {some().address, false}, true, now)
              == verdict::connected));
  BOOST_TEST((hear(later(1)) == verdict::dial));
}

// Members send with an old key, too: a new node called them strangers.
BOOST_AUTO_TEST_CASE(where_this_clusters_beacons_come_from_is_remembered) {
  beacon six = some();
  six.address = ip("fe80::7");
  BOOST_TEST(!filter.is_home(six.address, now));
  hear(six, {ip("10.0.0.8"), false}); // not sent from there
  BOOST_TEST(!filter.is_home(six.address, now));
  BOOST_TEST(!filter.is_home(ip("10.0.0.8"), now));
  hear(six);
  BOOST_TEST(filter.is_home(six.address, now));
  now += beacon_filter::sender_memory + 1s;
  BOOST_TEST(!filter.is_home(six.address, now));
  for (unsigned i = 0; i < 2 * beacon_filter::senders_max; ++i) {
    beacon b = later(i);
    b.sender[4] = b.address[14] = std::uint8_t(i >> 8);
    b.sender[5] = b.address[15] = std::uint8_t(i);
    now += 1ms;
    hear(b);
    BOOST_TEST(filter.is_home(b.address, now));
  }
  beacon first = some();
  first.address[14] = first.address[15] = 0;
  BOOST_TEST(!filter.is_home(first.address, now));
}

BOOST_AUTO_TEST_CASE(one_source_cannot_take_the_place_of_others) {
  const auto loud = ip("10.0.0.1");
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < 10 * beacon_filter::beacons_of_source_max; ++i)
    looked_at += filter.admits(loud, now);
  BOOST_TEST(looked_at == beacon_filter::beacons_of_source_max);
  BOOST_TEST(filter.admits(ip("10.0.0.2"), now));
  BOOST_TEST(filter.counts().crowded
             == 9 * beacon_filter::beacons_of_source_max);
  now += 1s;
  BOOST_TEST(filter.admits(loud, now));
}

BOOST_AUTO_TEST_CASE(many_sources_are_bounded_together) {
  std::size_t looked_at = 0;
  ip_address a = ip("fe80::1");
  for (unsigned i = 0; i < 100'000; ++i) {
    a[13] = std::uint8_t(i >> 16);
    a[14] = std::uint8_t(i >> 8);
    a[15] = std::uint8_t(i);
    looked_at += filter.admits(a, now);
  }
  // Those that found no place share one.
  BOOST_TEST(looked_at
             == beacon_filter::sources_max
                  + beacon_filter::beacons_of_source_max);
  BOOST_TEST(looked_at <= beacon_filter::beacons_max);
}

BOOST_AUTO_TEST_CASE(memory_of_senders_is_bounded) {
  beacon b = some();
  for (unsigned i = 0; i < 2 * beacon_filter::senders_max; ++i) {
    b.sender[4] = std::uint8_t(i);
    b.sender[5] = std::uint8_t(i >> 8);
    now += 1ms;
    BOOST_TEST((hear(b) != verdict::old));
  }
  BOOST_TEST((hear(b) == verdict::old)); // the newest is
  b.sender[4] = b.sender[5] = 0;
  BOOST_TEST((hear(b) != verdict::old)); // the oldest is not
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(addresses)

BOOST_AUTO_TEST_CASE(text_comes_back) {
  for (const std::string text : {"10.0.0.1:7", "[::1]:7", "[fd83::2]:65535",
                                 "[fe80::1]:7", "[fe80::1%lo]:7"}) {
    const auto a = parse_ip(host_of(text));
    BOOST_TEST_REQUIRE(a.has_value(), text);
    BOOST_TEST(
      to_text(*a, std::uint16_t(std::stoul(text.substr(text.rfind(':') + 1))))
      == text);
  }
  BOOST_TEST(to_text(*parse_ip("fe80::1%1"), 7) == "[fe80::1%lo]:7");
}

BOOST_AUTO_TEST_CASE(a_text_that_is_no_address_is_refused) {
  for (const char* wrong : {"", "a", "1.2.3", "fe80::1%", "fe80::1%no-such",
                            "fd00::1%lo", "127.0.0.1%lo", "[::1]"})
    BOOST_TEST(!parse_ip(wrong), wrong);
  for (const char* wrong : {"", ":7", "::1:7", "[::1]", "host", "[]:7"})
    BOOST_TEST(host_of(wrong) == "", wrong);
}

BOOST_AUTO_TEST_CASE(addresses_for_others_name_no_interface) {
  BOOST_TEST(without_interface("[fe80::1%eth0]:7") == "[fe80::1]:7");
  BOOST_TEST(without_interface("[fd00::1]:7") == "[fd00::1]:7");
  BOOST_TEST(without_interface("10.0.0.1:7") == "10.0.0.1:7");
}

/// Loopback, a network of both families, one of IPv6 alone, and a tunnel.
static std::vector<network_interface> machine() {
  return {{1, true, true, {ip("127.0.0.1"), ip("::1")}},
          {2, false, true, {ip("10.0.0.1"), ip("fd83::1"), ip("fe80::1")}},
          {3, false, true, {ip("fe80::2")}},
          {4, false, false, {ip("10.9.0.1")}}};
}

static std::string
offers(const std::string& host, const std::vector<network_interface>& all) {
  std::string out;
  for (const beacon_way& w : ways_to(*parse_ip(host), all))
    out += (out.empty() ? "" : " ") + std::to_string(w.interface)
           + (w.v6 ? "/6 " : "/4 ") + host_of(to_text({w.offered, 0}, 1));
  return out;
}

BOOST_AUTO_TEST_CASE(a_listener_is_offered_where_it_is_reached) {
  BOOST_TEST(offers("::", machine())
             == "1/4 127.0.0.1 2/4 10.0.0.1 2/6 fe80::1 3/6 fe80::2");
  BOOST_TEST(offers("0.0.0.0", machine()) == "1/4 127.0.0.1 2/4 10.0.0.1");
  BOOST_TEST(offers("10.0.0.1", machine()) == "2/4 10.0.0.1");
  BOOST_TEST(offers("fd83::1", machine()) == "2/6 fd83::1");
  BOOST_TEST(offers("fe80::2", machine()) == "3/6 fe80::2");
}

BOOST_AUTO_TEST_CASE(a_loopback_listener_stays_on_loopback) {
  BOOST_TEST(offers("127.0.0.1", machine()) == "1/4 127.0.0.1");
  BOOST_TEST(offers("::1", machine()) == "1/4 ::1");
  // No IPv4 at all: IPv4 carries it all the same.
  std::vector<network_interface> six{{1, true, true, {ip("::1")}}};
  BOOST_TEST(offers("::1", six) == "1/4 ::1");
  BOOST_TEST(offers("::", six) == "1/4 ::1");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
