// tests/transport/ucx/devices_test.cpp -- the devices that UCX may open and
// keep.
#include "tests/conformance/fixture.hpp"
#include "transport/ucx/devices.hpp"
#include "transport/ucx/fabric.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>

#include <csignal>

using namespace shoal::transport;
using namespace shoal::transport::conformance;

BOOST_AUTO_TEST_SUITE(ucx_process)

// What the crash of a program does is its own business, not the library's.
BOOST_AUTO_TEST_CASE(ucx_keeps_no_signal_handler) {
  board notes;
  recorder heard(notes);
  ucx::config c;
  c.self[0] = 1;
  const ucx::fabric node(c, heard);
  for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    Dl_info where{};
    if (dladdr(reinterpret_cast<void*>(now.sa_handler), &where) != 0)
      BOOST_TEST((std::strstr(where.dli_fname, "libucs") == nullptr));
  }
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

BOOST_AUTO_TEST_CASE(an_invalid_network_is_refused) {
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
