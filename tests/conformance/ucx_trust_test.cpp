// tests/conformance/ucx_trust_test.cpp -- whom the UCX fabric believes.
#include "tests/conformance/fixture.hpp"
#include "transport/ucx/address.hpp"
#include "transport/ucx/devices.hpp"
#include "transport/ucx/fabric.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>

#include <csignal>

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

ucx::config config_of(std::uint8_t who) {
  ucx::config c;
  c.self[0] = who;
  c.instance = who;
  c.hello_timeout = std::chrono::milliseconds(200);
  return c;
}

/// Two nodes that have not met.
struct strangers {
  bool failed(recorder& at) {
    return notes.wait([&] { return !at.failed.empty(); });
  }
  board notes;
  recorder heard_a{notes}, heard_b{notes};
  ucx::fabric a{config_of(1), heard_a}, b{config_of(2), heard_b};
};

} // namespace

BOOST_AUTO_TEST_SUITE(ucx_trust)

BOOST_AUTO_TEST_CASE(a_node_that_was_not_told_of_us_does_not_listen) {
  strangers s;
  s.a.connect(s.b.local_address());
  BOOST_REQUIRE(s.failed(s.heard_a));
  BOOST_TEST(s.heard_a.failed.front().second == errc::unreachable);
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
  auto wrong = ucx::parse_address(s.b.local_address());
  BOOST_REQUIRE(wrong.has_value());
  ++wrong->token;
  s.a.connect(ucx::format_address(*wrong));
  s.b.connect(s.a.local_address());
  BOOST_REQUIRE((s.failed(s.heard_a) && s.failed(s.heard_b)));
  BOOST_TEST((s.heard_a.ups.empty() && s.heard_b.ups.empty()));
}

BOOST_AUTO_TEST_CASE(other_hosts_users_and_namespaces_are_unreachable) {
  strangers s;
  const auto right = *ucx::parse_address(s.b.local_address());
  std::array wrong{right, right, right, right};
  wrong[0].host.boot_id = "00000000-0000-0000-0000-000000000000";
  ++wrong[1].host.uid;
  ++wrong[2].host.pid_namespace;
  ++wrong[3].host.net_namespace;
  for (const auto& one : wrong)
    s.a.connect(ucx::format_address(one));
  s.a.connect("");
  s.a.connect(s.b.local_address().substr(0, 80));
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard_a.failed.size() == 6; }));
  for (const auto& [address, why] : s.heard_a.failed)
    BOOST_TEST(why == errc::unreachable);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_gone_is_unreachable) {
  strangers s;
  auto gone = *ucx::parse_address(s.b.local_address());
  gone.pid = 0x3fffffff; // above every pid_max
  s.a.connect(ucx::format_address(gone));
  BOOST_REQUIRE(s.failed(s.heard_a));
  BOOST_TEST(s.heard_a.failed.front().second == errc::unreachable);
}

BOOST_AUTO_TEST_CASE(a_new_process_of_a_peer_takes_its_place) {
  strangers s;
  recorder heard_c(s.notes);
  auto again = config_of(2);
  again.instance = 3;
  ucx::fabric c(again, heard_c);
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
  constexpr std::size_t size = 8u << 20;
  constexpr std::uint32_t count = 4;
  strangers s;
  const auto sent = pattern(size, 1);
  std::vector<std::vector<std::byte>> got(2 * count);
  const std::array<ucx::fabric*, 2> nodes{&s.a, &s.b};
  const std::array<peer_id, 2> ids{config_of(1).self, config_of(2).self};
  const int rounds = long_run() ? 2000 : 60;
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
    // At the beginning, in the middle, at the end; by a, by b, by both.
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

// What the crash of a program does is its own business, not the library's.
BOOST_AUTO_TEST_CASE(ucx_keeps_no_signal_handler) {
  strangers s;
  for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    Dl_info where{};
    if (dladdr(reinterpret_cast<void*>(now.sa_handler), &where) != 0)
      BOOST_TEST((std::strstr(where.dli_fname, "libucs") == nullptr));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_address)

BOOST_AUTO_TEST_CASE(what_is_formatted_is_parsed_back) {
  ucx::node_address a;
  a.over = ucx::medium::rdma;
  a.host = {"boot", 7, 1u << 31};
  a.pid = 99;
  a.peer.fill(200);
  a.role = peer_role::client;
  a.instance = ~std::uint64_t{0};
  a.capabilities = 5;
  a.token = 0x0123456789abcdef;
  a.worker = pattern(333, 1);
  BOOST_TEST((ucx::parse_address(ucx::format_address(a)) == a));
}

BOOST_AUTO_TEST_CASE(no_other_text_is_an_address) {
  ucx::node_address a;
  a.host.boot_id = "boot";
  a.worker = pattern(50, 1);
  const auto text = ucx::format_address(a);
  for (std::size_t n = 0; n < text.size(); ++n)
    BOOST_TEST(!ucx::parse_address(text.substr(0, n)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto changed = text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    BOOST_TEST(!ucx::parse_address(changed));
  }
  BOOST_TEST(!ucx::parse_address(text + "00"));
  // Lengths over their limits are refused although the checksum agrees.
  a.worker = pattern(ucx::worker_address_bytes_max + 1, 1);
  BOOST_TEST(!ucx::parse_address(ucx::format_address(a)));
  a.worker.clear();
  BOOST_TEST(!ucx::parse_address(ucx::format_address(a)));
  a.worker = pattern(50, 1);
  a.host.boot_id.assign(ucx::boot_id_bytes_max + 1, 'x');
  BOOST_TEST(!ucx::parse_address(ucx::format_address(a)));
  a.host.boot_id = "boot";
  a.role = peer_role::member;
  a.over = static_cast<ucx::medium>(4);
  BOOST_TEST(!ucx::parse_address(ucx::format_address(a)));
  a.over = ucx::medium::tcp;
  a.role = static_cast<peer_role>(3);
  BOOST_TEST(!ucx::parse_address(ucx::format_address(a)));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_devices)

sockaddr_storage socket_address(const char* text) {
  sockaddr_storage out{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
    out.ss_family = AF_INET;
  else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
    out.ss_family = AF_INET6;
  BOOST_TEST_REQUIRE(out.ss_family != 0);
  return out;
}

bool within(const char* network, const char* address) {
  const auto n = ucx::parse_network(network);
  BOOST_TEST_REQUIRE(n.has_value(), network);
  const auto a = socket_address(address);
  return contains(*n, reinterpret_cast<const sockaddr&>(a));
}

BOOST_AUTO_TEST_CASE(a_network_has_the_addresses_with_its_prefix) {
  BOOST_TEST(within("10.1.0.0/16", "10.1.255.7"));
  BOOST_TEST(!within("10.1.0.0/16", "10.2.0.0"));
  BOOST_TEST(within("10.1.128.0/17", "10.1.200.1"));
  BOOST_TEST(!within("10.1.128.0/17", "10.1.100.1"));
  BOOST_TEST(within("10.1.2.3", "10.1.2.3"));
  BOOST_TEST(!within("10.1.2.3", "10.1.2.2"));
  BOOST_TEST(within("0.0.0.0/0", "203.0.113.9"));
  BOOST_TEST(!within("0.0.0.0/0", "fd00::1"));
  BOOST_TEST(within("fd00::/8", "fd12::1"));
  BOOST_TEST(!within("fd00::/8", "fe80::1"));
  BOOST_TEST(!within("::/0", "10.1.2.3"));
}

BOOST_AUTO_TEST_CASE(what_is_no_network_is_refused) {
  for (const char* text :
       {"", "10.1", "10.1.0.0/", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/8x",
        "fd00::/129", "host", "10.1.0.0/16/2", "/8",
        "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/8"})
    BOOST_TEST(!ucx::parse_network(text).has_value(), text);
}

BOOST_AUTO_TEST_CASE(only_interfaces_of_trusted_networks_are_opened) {
  const std::vector loopback{*ucx::parse_network("127.0.0.0/8")};
  const std::vector nowhere{*ucx::parse_network("240.0.0.0/4")};
  BOOST_TEST(ucx::tcp_devices(loopback) == std::vector<std::string>{"lo"},
             boost::test_tools::per_element());
  BOOST_TEST(ucx::tcp_devices(nowhere).empty());
  BOOST_TEST(ucx::tcp_devices({}).empty());
  BOOST_TEST(ucx::rdma_devices(nowhere).empty());
}

BOOST_AUTO_TEST_SUITE_END()
