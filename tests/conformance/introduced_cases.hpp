// tests/conformance/introduced_cases.hpp -- which peers fabrics accept whose
// nodes are introduced.
//
// Not a header of its own: a test file includes it within a suite, after
//   node, node_config              the fabric and what it is made from
//   constexpr std::size_t host_fields   of a host_id that peers must share
// It tests the promises of transport/introduced/fabric.hpp.

using namespace shoal::transport;
using namespace shoal::transport::conformance;
using namespace shoal::transport::introduced;

static node_config config_of(std::uint8_t who) {
  node_config c;
  c.self[0] = who;
  c.instance = who;
  c.hello_timeout = std::chrono::milliseconds(emulated() ? 5000 : 200);
  return c;
}

/// Two nodes that have not met.
struct strangers {
  bool failed(recorder& at) {
    return notes.wait([&] { return !at.failed.empty(); });
  }
  board notes;
  recorder heard_a{notes}, heard_b{notes};
  node a{config_of(1), heard_a}, b{config_of(2), heard_b};
};

BOOST_AUTO_TEST_CASE(a_node_ignores_peers_not_introduced_to_it) {
  strangers s;
  s.a.connect(s.b.local_address());
  BOOST_REQUIRE(s.failed(s.heard_a));
  BOOST_TEST(s.heard_a.failed.front().second == errc::no_answer);
  BOOST_TEST((s.heard_a.ups.empty() && s.heard_b.ups.empty()));
  // Having failed, both may still meet.
  s.a.connect(s.b.local_address());
  s.b.connect(s.a.local_address());
  BOOST_REQUIRE(s.notes.wait(
    [&] { return s.heard_a.ups.size() == 1 && s.heard_b.ups.size() == 1; }));
  BOOST_TEST(s.heard_a.last.begin()->second.instance == 2u);
}

BOOST_AUTO_TEST_CASE(a_wrong_secret_is_not_believed) {
  strangers s;
  auto wrong = parse_address(s.b.local_address());
  BOOST_REQUIRE(wrong.has_value());
  ++wrong->token;
  s.a.connect(format_address(*wrong));
  s.b.connect(s.a.local_address());
  BOOST_REQUIRE((s.failed(s.heard_a) && s.failed(s.heard_b)));
  BOOST_TEST((s.heard_a.ups.empty() && s.heard_b.ups.empty()));
}

BOOST_AUTO_TEST_CASE(other_hosts_users_and_namespaces_are_unreachable) {
  strangers s;
  const auto right = *parse_address(s.b.local_address());
  std::vector wrong(4, right);
  wrong[0].host.boot_id = "00000000-0000-0000-0000-000000000000";
  ++wrong[1].host.uid;
  ++wrong[2].host.pid_namespace;
  ++wrong[3].host.net_namespace;
  wrong.resize(host_fields, right);
  for (const auto& one : wrong)
    s.a.connect(format_address(one));
  s.a.connect("");
  s.a.connect(s.b.local_address().substr(0, 80));
  BOOST_REQUIRE(
    s.notes.wait([&] { return s.heard_a.failed.size() == wrong.size() + 2; }));
  for (const auto& [address, why] : s.heard_a.failed)
    BOOST_TEST(why == errc::unreachable);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_gone_is_unreachable) {
  strangers s;
  auto gone = *parse_address(s.b.local_address());
  gone.pid = 0x3fffffff; // above every pid_max
  s.a.connect(format_address(gone));
  BOOST_REQUIRE(s.failed(s.heard_a));
  BOOST_TEST(s.heard_a.failed.front().second == errc::unreachable);
}

BOOST_AUTO_TEST_CASE(a_new_process_of_a_peer_takes_its_place) {
  strangers s;
  recorder heard_c(s.notes);
  auto again = config_of(2);
  again.instance = 3;
  node c(again, heard_c);
  const auto id = config_of(2).self;
  s.a.connect(s.b.local_address());
  s.b.connect(s.a.local_address());
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard_a.ups[id] == 1; }));
  s.a.connect(c.local_address());
  c.connect(s.a.local_address());
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard_a.ups[id] == 2; }));
  BOOST_TEST(s.heard_a.order == "udu");
  BOOST_TEST(s.heard_a.last[id].instance == 3u);
}

// Endpoints are closed while the other end lives and moves bytes.
BOOST_AUTO_TEST_CASE(drops_in_the_middle_leave_both_able_to_meet_again) {
  const std::size_t size = emulated() ? 1u << 20 : 8u << 20;
  constexpr std::uint32_t count = 4;
  strangers s;
  const auto sent = pattern(size, 1);
  std::vector<std::vector<std::byte>> got(2 * count);
  const std::array<node*, 2> nodes{&s.a, &s.b};
  const std::array<peer_id, 2> ids{config_of(1).self, config_of(2).self};
  const int rounds = long_run() ? 2000 : emulated() ? 12 : 15;
  for (int round = 1; round <= rounds; ++round) {
    s.a.connect(s.b.local_address());
    s.b.connect(s.a.local_address());
    BOOST_REQUIRE(s.notes.wait([&] {
      return s.heard_a.ups[ids[1]] == round && s.heard_b.ups[ids[0]] == round;
    }));
    std::deque<outcome> all;
    std::size_t started = 0;
    for (std::uint32_t i = 0; i < 2 * count; ++i) {
      const std::size_t to = i % 2;
      got[i].assign(size, std::byte{});
      all.emplace_back(s.notes);
      BOOST_REQUIRE(!nodes[to]->post_receive(ids[1 - to], {1, 0, i}, got[i],
                                             all.back().done()));
    }
    for (std::uint32_t i = 0; i < 2 * count; ++i) {
      all.emplace_back(s.notes);
      BOOST_REQUIRE(!nodes[1 - i % 2]->send_bulk(ids[i % 2], {1, 0, i}, sent,
                                                 all.back().done()));
      ++started;
    }
    // At the beginning, in the middle, at the end; by a, by b, by both: all of
    // these in 15 rounds.
    const auto enough = static_cast<std::size_t>(round % 5) * started / 4;
    BOOST_REQUIRE(s.notes.wait([&] {
      return static_cast<std::size_t>(std::count_if(
               all.begin(), all.end(), [](auto& o) { return o.runs > 0; }))
             >= enough;
    }));
    if (round % 3 != 0)
      s.a.drop(ids[1]);
    if (round % 3 != 1)
      s.b.drop(ids[0]);
    BOOST_REQUIRE(s.notes.wait([&] {
      return s.heard_a.downs[ids[1]] == round
             && s.heard_b.downs[ids[0]] == round;
    }));
    for (auto& o : all) {
      BOOST_REQUIRE(o.runs == 1);
      BOOST_REQUIRE((!o.result || o.result == errc::peer_lost));
    }
    for (auto& bytes : got)
      std::fill(bytes.begin(), bytes.end(), std::byte{7});
  }
  BOOST_TEST((s.heard_a.failed.empty() && s.heard_b.failed.empty()));
}

BOOST_AUTO_TEST_CASE(messages_of_many_fragments_keep_their_order) {
  strangers s;
  s.a.connect(s.b.local_address());
  s.b.connect(s.a.local_address());
  const auto id = config_of(2).self;
  BOOST_REQUIRE(s.notes.wait(
    [&] { return s.heard_a.ups.size() == 1 && s.heard_b.ups.size() == 1; }));
  const std::array<std::size_t, 7> sizes{1u << 20, 0,      70000, 8,
                                         65535,    300000, 4000};
  constexpr std::size_t count = 700;
  for (std::size_t i = 0; i < count; ++i)
    BOOST_REQUIRE(!push(s.a, id, pattern(sizes[i % sizes.size()], i)));
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard_b.received == count; }));
  auto& got = s.heard_b.messages.begin()->second;
  for (std::size_t i = 0; i < count; ++i)
    BOOST_REQUIRE((got[i] == pattern(sizes[i % sizes.size()], i)));
}
