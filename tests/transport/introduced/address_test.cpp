// tests/transport/introduced/address_test.cpp -- addresses that nodes send each
// other.
#include "tests/conformance/fixture.hpp"
#include "transport/introduced/address.hpp"

BOOST_AUTO_TEST_SUITE(introduced_address)

using namespace shoal::transport;
using shoal::transport::conformance::pattern;

BOOST_AUTO_TEST_CASE(a_formatted_address_parses_back) {
  introduced::node_address a;
  a.over = introduced::medium::rdma;
  a.host = {"boot", 7, 1u << 31};
  a.pid = 99;
  a.peer.fill(200);
  a.role = peer_role::client;
  a.instance = ~std::uint64_t{0};
  a.capabilities = 5;
  a.token = 0x0123456789abcdef;
  a.way = pattern(333, 1);
  BOOST_TEST((introduced::parse_address(introduced::format_address(a)) == a));
}

BOOST_AUTO_TEST_CASE(no_other_text_is_an_address) {
  introduced::node_address a;
  a.host.boot_id = "boot";
  a.way = pattern(50, 1);
  const auto text = introduced::format_address(a);
  for (std::size_t n = 0; n < text.size(); ++n)
    BOOST_TEST(!introduced::parse_address(text.substr(0, n)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto changed = text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    BOOST_TEST(!introduced::parse_address(changed));
  }
  BOOST_TEST(!introduced::parse_address(text + "00"));
  // Lengths over their limits are refused although the checksum agrees.
  a.way = pattern(introduced::way_bytes_max + 1, 1);
  BOOST_TEST(!introduced::parse_address(introduced::format_address(a)));
  a.way.clear();
  BOOST_TEST(!introduced::parse_address(introduced::format_address(a)));
  a.way = pattern(50, 1);
  a.host.boot_id.assign(introduced::boot_id_bytes_max + 1, 'x');
  BOOST_TEST(!introduced::parse_address(introduced::format_address(a)));
  a.host.boot_id = "boot";
  a.role = peer_role::member;
  a.over = static_cast<introduced::medium>(5);
  BOOST_TEST(!introduced::parse_address(introduced::format_address(a)));
  a.over = introduced::medium::tcp;
  a.role = static_cast<peer_role>(3);
  BOOST_TEST(!introduced::parse_address(introduced::format_address(a)));
}

BOOST_AUTO_TEST_SUITE_END()
