// tests/transport/tls/proof_test.cpp -- identities and the proof of the key.
#include "transport/tls/identity.hpp"
#include "transport/tls/proof.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(proof)

namespace {

template <class Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (const auto b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

// RFC 8032, section 7.1, test 1; its hash by sha256sum.
BOOST_AUTO_TEST_CASE(a_private_key_is_the_seed_of_rfc_8032) {
  const private_key key{0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60,
                        0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
                        0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19,
                        0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
  BOOST_TEST(hex(public_of(key))
             == "d75a980182b10ab7d54bfed3c964073a"
                "0ee172f3daa62325af021a68f707511a");
  BOOST_TEST((id_of_private(key) == id_of_public(public_of(key))));
  BOOST_TEST(hex(id_of_private(key))
             == "21fe31dfa154a261626bf854046fd227"
                "1b7bed4b6abe45aa58877ef47f9721b9");
}

BOOST_AUTO_TEST_CASE(new_keys_differ) {
  BOOST_TEST((make_private_key() != make_private_key()));
  BOOST_TEST((make_shared_key() != make_shared_key()));
  BOOST_TEST(make_instance() != make_instance());
}

BOOST_AUTO_TEST_CASE(a_proof_holds_for_its_key_binding_side_and_id_only) {
  const auto key = make_shared_key();
  const exporter binding{1, 2, 3};
  const peer_id id{9};
  const claim said{peer_role::client, 77, 5, 0, 6};
  const auto frame = make_proof(key, binding, side::dialler, id, said);
  claim got;
  BOOST_TEST(!check_proof(key, binding, side::dialler, id, frame, got));
  BOOST_TEST((got.role == peer_role::client));
  BOOST_TEST(got.instance == 77u);
  BOOST_TEST(got.capabilities == 5u);
  BOOST_TEST(got.planner == 6u);
  BOOST_TEST(
    check_proof(make_shared_key(), binding, side::dialler, id, frame, got));
  BOOST_TEST(check_proof(key, {1, 2, 4}, side::dialler, id, frame, got));
  BOOST_TEST(check_proof(key, binding, side::acceptor, id, frame, got));
  BOOST_TEST(check_proof(key, binding, side::dialler, {8}, frame, got));
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    auto wrong = frame;
    wrong[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    BOOST_TEST(check_proof(key, binding, side::dialler, id, wrong, got));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
