// tests/runtime/node/beacon_test.cpp -- beacons tell friends only.
#include "runtime/discovery.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(beacons)

static beacon some() {
  beacon b;
  b.port = 7001;
  b.sender = {1, 2, 3};
  b.nonce = {4, 5};
  b.alone = true;
  return b;
}

BOOST_AUTO_TEST_CASE(a_beacon_comes_back_with_the_same_key_and_cluster) {
  transport::tls::shared_key key{9};
  auto b = decode_beacon(encode_beacon(some(), "blue", key), "blue", key);
  BOOST_TEST_REQUIRE(b.has_value());
  BOOST_TEST(b->port == 7001);
  BOOST_TEST(b->alone);
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

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
