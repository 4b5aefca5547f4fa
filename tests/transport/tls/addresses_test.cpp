// tests/transport/tls/addresses_test.cpp -- TLS with addresses of all kinds.
#include "tests/transport/tls/strangers.hpp"
#include "transport/tls/fabric.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <fstream>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(tls_addresses)

namespace {

using namespace conformance;

/// A fabric that listens on all addresses of both families.
struct both {
  explicit both(const std::string& listen = "[::]:0") : heard(notes) {
    config c;
    c.identity = make_private_key();
    c.cluster_key = key;
    c.instance = 1;
    c.listen = listen;
    node = std::make_unique<fabric>(c, heard);
  }
  ~both() { node->close(); }
  std::string at(const std::string& host) const {
    const auto where = node->local_address();
    return host + where.substr(where.rfind(':'));
  }
  /// Dials it from a fabric of its own.
  void is_reached_at(const std::string& host) {
    config c;
    c.identity = make_private_key();
    c.cluster_key = key;
    c.instance = 2;
    recorder other(notes);
    fabric peer(c, other);
    peer.connect(at(host));
    BOOST_TEST(notes.wait([&] { return other.ups[node->id()] == 1; }), host);
    BOOST_TEST(notes.wait([&] { return heard.ups[peer.id()] == 1; }), host);
    from = heard.last[peer.id()].remote_address;
    peer.close();
  }

  board notes;
  recorder heard;
  shared_key key = make_shared_key();
  std::unique_ptr<fabric> node;
  std::string from; ///< of the last that came
};

bool knows_ipv6() {
  return std::ifstream("/proc/net/if_inet6").good();
}

/// "fe80::1", "eth0" of this machine; empty if it has none.
std::pair<std::string, std::string> own_link_local() {
  std::pair<std::string, std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    return out;
  for (const ifaddrs* i = list; i; i = i->ifa_next)
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6) {
      const auto* a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr);
      char text[INET6_ADDRSTRLEN] = {};
      if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr))
        out = {inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text),
               i->ifa_name};
    }
  freeifaddrs(list);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_listener_takes_both_families) {
  if (!knows_ipv6()) {
    BOOST_TEST_MESSAGE("skipped: no IPv6 here");
    return;
  }
  both b;
  BOOST_TEST(b.node->local_address().starts_with("[::]:"));
  b.is_reached_at("127.0.0.1");
  BOOST_TEST(b.from.starts_with("127.0.0.1:")); // and not as [::ffff:...]
  b.is_reached_at("[::1]");
  BOOST_TEST(b.from.starts_with("[::1]:"));
}

BOOST_AUTO_TEST_CASE(a_link_local_address_needs_no_interface) {
  const auto [address, interface] = own_link_local();
  if (address.empty()) {
    BOOST_TEST_MESSAGE("skipped: no link-local address here");
    return;
  }
  both b;
  b.is_reached_at("[" + address + "%" + interface + "]");
  b.is_reached_at("[" + address + "]");
  BOOST_TEST(b.from.starts_with("[fe80:"));
  both scoped("[" + address + "%" + interface + "]:0");
  scoped.is_reached_at("[" + address + "]");
}

// A node's first lines were of link-local addresses that nobody has.
BOOST_AUTO_TEST_CASE(
  a_link_local_address_is_not_said_to_be_unreachable_at_first) {
  const auto own = own_link_local().first;
  const std::string local = "[" + (own.empty() ? "fe80::1" : own) + "]:1";
  const std::string named = "[fe80::1%nowhere]:1";
  board notes;
  recorder heard(notes);
  std::string lines;
  config c;
  c.identity = make_private_key();
  c.cluster_key = make_shared_key();
  c.instance = 1;
  c.log = [&](std::string_view line) {
    notes.post([&] { lines += std::string(line) + "\n"; });
  };
  fabric node(c, heard);
  for (const std::string& address :
       {local, named, std::string("127.0.0.1:1")}) {
    node.connect(address);
    BOOST_TEST(notes.wait([&] {
      return !heard.failed.empty() && heard.failed.back().first == address;
    }),
               address);
  }
  node.close();
  BOOST_TEST(lines.find("127.0.0.1:1: ") != std::string::npos, lines);
  BOOST_TEST(lines.find(local) == std::string::npos, lines);
  BOOST_TEST(lines.find(named + ": ") != std::string::npos, lines);
}

BOOST_AUTO_TEST_CASE(a_peer_is_reported_also_by_another_name) {
  both b("127.0.0.1:0");
  config c;
  c.identity = make_private_key();
  c.cluster_key = b.key;
  c.instance = 2;
  recorder other(b.notes);
  fabric peer(c, other);
  using answers = std::vector<std::pair<std::string, peer_id>>;
  answers want;
  for (const char* host : {"127.0.0.1", "[::ffff:127.0.0.1]"}) {
    peer.connect(b.at(host));
    want.emplace_back(b.at(host), b.node->id());
    BOOST_TEST(b.notes.wait([&] { return other.reached_at == want; }), host);
  }
  BOOST_TEST(other.ups[b.node->id()] == 1);
  BOOST_TEST(other.failed.empty());
  peer.close();
}

// Each start of a node said on the others that a connection was closed.
BOOST_AUTO_TEST_CASE(a_second_way_to_a_peer_is_closed_without_a_line) {
  if (!knows_ipv6()) {
    BOOST_TEST_MESSAGE("skipped: no IPv6 here");
    return;
  }
  board notes;
  recorder heard(notes), other(notes);
  std::string lines;
  config c;
  c.identity = make_private_key();
  c.cluster_key = make_shared_key();
  c.instance = 1;
  c.listen = "[::]:0";
  c.log = [&](std::string_view line) {
    notes.post([&] { lines += std::string(line) + "\n"; });
  };
  fabric node(c, heard);
  const auto where = node.local_address();
  const auto port = where.substr(where.rfind(':'));
  c.identity = make_private_key();
  c.instance = 2;
  c.listen.clear();
  c.log = {};
  fabric peer(c, other);
  peer.connect("127.0.0.1" + port);
  BOOST_TEST(notes.wait([&] { return heard.ups[peer.id()] == 1; }));
  peer.connect("[::1]" + port);
  BOOST_TEST(notes.wait([&] { return other.reached_at.size() == 2; }));
  { // the end of the second connection came before that of this one
    const raw_socket stranger(port);
  }
  BOOST_TEST(notes.wait(
    [&] { return lines.find("closed the connection") != std::string::npos; }));
  peer.close();
  node.close();
  BOOST_TEST(lines.find("[::1]") == std::string::npos, lines);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::transport::tls
