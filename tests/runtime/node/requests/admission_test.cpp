// tests/runtime/node/requests/admission_test.cpp -- which keys and peers the
// transport admits, and what becomes of invites and revocations.
#include "runtime/control/invite.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/node/requests/admission.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/node/requests/asked_host.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace shoal::tests {

namespace admission_of_peers {

namespace {

namespace cl = core::cluster;
using namespace std::chrono_literals;
using runtime::admission;
using transport::tls::refusal;

class node_of_tests final : public asked_host<runtime::admission_host> {
public:
  std::string listener() const override { return "127.0.0.1:4711"; }
  void use(transport::tls::keyring ring, bool others_go) override {
    rings.push_back(std::move(ring));
    others_went = others_go;
  }
  bool among_others() const override { return others; }
  bool ending() const override { return ends; }
  void end(const std::string& why) override { ended.push_back(why); }

  std::vector<transport::tls::keyring> rings;
  bool others_went = false;
  bool others = false;
  bool ends = false;
  std::vector<std::string> ended;
};

core::cluster_key key(std::uint8_t byte) {
  core::cluster_key k{};
  k.fill(byte);
  return k;
}

/// Node 1 of a shoal, and all that its admission is made of.
struct fixture {
  node_of_tests node;
  runtime::known_nodes nodes{"shoal", 0};
  runtime::waiting_requests requests;
  test::folder home;
  admission admits{{numbered_peer(1), "shoal", {key(1), {}, {}}, home.path},
                   node,
                   nodes,
                   requests};

  /// The view takes effect. @returns what it answers
  std::vector<runtime::waiting_requests::answer> adopt(const core::view& v) {
    node.now = std::make_shared<core::view>(v);
    auto waited = requests.adopted(v);
    admits.adopt(v);
    return waited.answers;
  }
};

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

} // namespace admission_of_peers

BOOST_FIXTURE_TEST_SUITE(admission_of_peers, admission_of_peers::fixture)

BOOST_AUTO_TEST_CASE(a_view_names_the_peers_that_are_admitted) {
  core::view v = two_members();
  v.lapsed = {numbered_peer(9)};
  v.revoked = {numbered_peer(8), numbered_peer(7)};
  v.invites = {{key(5), 100, numbered_peer(6)}};
  adopt(v);
  BOOST_TEST_REQUIRE(node.rings.size() == 1);
  const transport::tls::keyring& ring = node.rings[0];
  BOOST_TEST((ring.current == key(1)));
  BOOST_TEST(
    (ring.known
     == std::vector{numbered_peer(1), numbered_peer(2), numbered_peer(9)}));
  BOOST_TEST((ring.revoked == std::vector{numbered_peer(7), numbered_peer(8)}));
  BOOST_TEST_REQUIRE(ring.invites.size() == 1);
  BOOST_TEST((ring.invites[0].key == key(5)));
  BOOST_TEST(!node.others_went);
}

BOOST_AUTO_TEST_CASE(peers_go_when_a_view_names_the_new_key) {
  core::view v = two_members();
  v.key = runtime::codec::key_digest(key(1));
  adopt(v);
  admits.use_keys({key(2), {}, {key(1)}});
  BOOST_TEST(!node.others_went); // the view names the old one
  BOOST_TEST((node.rings.back().current == key(2)));
  BOOST_TEST((node.rings.back().replaced == std::vector{key(1)}));
  v.key = runtime::codec::key_digest(key(2));
  adopt(v);
  BOOST_TEST(node.others_went);
  adopt(v);
  BOOST_TEST(!node.others_went); // once
}

BOOST_AUTO_TEST_CASE(a_new_key_is_kept_on_disk) {
  admits.use_keys({key(1), {key(3)}, {}}); // pending: not in use
  BOOST_TEST(node.said.empty());
  BOOST_TEST(!std::filesystem::exists(runtime::own_key_file(home.path)));
  admits.use_keys({key(2), {}, {key(1)}});
  BOOST_TEST_REQUIRE(node.said.size() == 1);
  BOOST_TEST(says(node.said[0], "was replaced"));
  BOOST_TEST(std::filesystem::exists(runtime::own_key_file(home.path)));
}

BOOST_AUTO_TEST_CASE(a_revoked_node_ends_and_admits_nobody_anew) {
  core::view v = two_members();
  v.revoked = {numbered_peer(1)};
  adopt(v);
  BOOST_TEST(node.rings.empty());
  BOOST_TEST_REQUIRE(node.ended.size() == 1);
  BOOST_TEST(says(node.ended[0], "was revoked"));
}

BOOST_AUTO_TEST_CASE(an_invite_is_a_token_once_a_view_has_it) {
  admits.invite(1, {60});
  BOOST_TEST(says(node.answers[1].why, "no view yet"));
  core::view v = two_members();
  adopt(v);
  admits.invite(2, {60});
  BOOST_TEST(!node.answers.contains(2));
  v.invites = {node.last<cl::add_invite>().invite};
  const auto answers = adopt(v);
  BOOST_TEST_REQUIRE(answers.size() == 1);
  BOOST_TEST(answers[0].token == 2);
  const auto token = runtime::parse_token(answers[0].what.text);
  BOOST_TEST_REQUIRE(token.has_value());
  BOOST_TEST((token->key == v.invites[0].key));
  BOOST_TEST((token->inviter == numbered_peer(1)));
  BOOST_TEST((token->addresses == std::vector<std::string>{"127.0.0.1:4711"}));
}

BOOST_AUTO_TEST_CASE(an_invite_that_was_given_up_is_known_by_its_key) {
  core::view v = two_members();
  adopt(v);
  admits.invite(2, {60});
  BOOST_TEST(
    (requests.give_up(2).what == runtime::waiting_requests::waited_for::invite));
  v.invites = {node.last<cl::add_invite>().invite};
  const auto next = requests.adopted(v);
  BOOST_TEST(next.answers.empty());
  BOOST_TEST((next.unused == std::vector{v.invites[0].key}));
}

BOOST_AUTO_TEST_CASE(an_invite_lets_one_peer_in) {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  core::view v = two_members();
  v.invites = {
    {key(5), far, {}}, {key(6), 1, {}}, {key(7), far, numbered_peer(4)}};
  adopt(v);
  admits.redeem(1, {key(5), {}});
  BOOST_TEST(says(node.answers[1].why, "only a joining peer"));
  admits.redeem(2, {key(9), numbered_peer(3)});
  BOOST_TEST(says(node.answers[2].why, "unknown here"));
  admits.redeem(3, {key(6), numbered_peer(3)});
  BOOST_TEST(says(node.answers[3].why, "expired"));
  admits.redeem(4, {key(7), numbered_peer(3)});
  BOOST_TEST(says(node.answers[4].why, "another peer"));
  BOOST_TEST(node.told.empty());
  admits.redeem(5, {key(5), numbered_peer(3)});
  admits.redeem(6, {key(5), numbered_peer(4)});
  BOOST_TEST((node.last<cl::redeem_invite>().peer == numbered_peer(4)));
  v.invites[0].used_by = numbered_peer(3);
  auto answers = adopt(v);
  BOOST_TEST_REQUIRE(answers.size() == 2);
  std::ranges::sort(answers, {}, &runtime::waiting_requests::answer::token);
  BOOST_TEST(answers[0].what.why.empty());
  BOOST_TEST_REQUIRE(answers[0].what.bytes.size() == key(1).size());
  BOOST_TEST((answers[0].what.bytes[0] == std::byte{1}));
  BOOST_TEST(says(answers[1].what.why, "another peer"));
  BOOST_TEST(answers[1].what.bytes.empty());
  admits.redeem(7, {key(5), numbered_peer(3)}); // its answer was lost
  BOOST_TEST((node.last<cl::redeem_invite>().peer == numbered_peer(3)));
}

BOOST_AUTO_TEST_CASE(a_peer_is_revoked_by_name_or_id) {
  admits.revoke_peer(1, {"bert"});
  BOOST_TEST(says(node.answers[1].why, "no view yet"));
  core::view v = two_members();
  v.lapsed = {numbered_peer(9)};
  adopt(v);
  admits.revoke_peer(2, {"bert"});
  BOOST_TEST((node.last<cl::revoke_peer>().peer == numbered_peer(2)));
  admits.revoke_peer(3, {"09090909"}); // a former member's
  BOOST_TEST((node.last<cl::revoke_peer>().peer == numbered_peer(9)));
  admits.revoke_peer(4, {"0909090"});
  BOOST_TEST(says(node.answers[4].why, "no peer is named"));
  admits.revoke_peer(5, {core::to_hex(numbered_peer(7))}); // never seen here
  BOOST_TEST((node.last<cl::revoke_peer>().peer == numbered_peer(7)));
  v.members[0].name = "bert";
  adopt(v);
  admits.revoke_peer(6, {"bert"});
  BOOST_TEST(says(node.answers[6].why, "several peers"));
  v.revoked = {numbered_peer(2)};
  const auto answers = adopt(v);
  BOOST_TEST_REQUIRE(answers.size() == 1);
  BOOST_TEST(answers[0].token == 2);
  BOOST_TEST(
    answers[0].what.text.starts_with(core::to_hex(numbered_peer(2)) + "\n"));
  v.members.pop_back();
  adopt(v);
  admits.revoke_peer(7, {"02020202"}); // the digits that messages show
  BOOST_TEST(says(node.answers[7].why, "revoked already"));
}

BOOST_AUTO_TEST_CASE(a_second_process_with_this_identity_ends) {
  const admission::clock::time_point start{};
  const auto refused_at = [&](admission::clock::duration after) {
    admits.refused(refusal::duplicate, "10.0.0.2:1", 0, start + after);
  };
  refused_at(0s);
  refused_at(3s);
  BOOST_TEST(node.said.size() == 1); // once
  BOOST_TEST(node.ended.empty());    // the other may have died just now
  BOOST_TEST(node.told.size() == 2); // the core doubts each time
  refused_at(4s);
  BOOST_TEST_REQUIRE(node.ended.size() == 1);
  BOOST_TEST(says(node.ended[0], "another process"));
}

BOOST_AUTO_TEST_CASE(an_old_doubt_does_not_count) {
  const admission::clock::time_point start{};
  admits.refused(refusal::duplicate, "10.0.0.2:1", 0, start);
  admits.refused(refusal::duplicate, "10.0.0.2:1", 0, start + 11s);
  BOOST_TEST(node.said.size() == 2);
  BOOST_TEST(node.ended.empty());
}

BOOST_AUTO_TEST_CASE(the_process_that_the_others_know_stays) {
  const admission::clock::time_point start{};
  node.others = true;
  for (const auto after : {0s, 4s, 8s})
    admits.refused(refusal::duplicate, "10.0.0.2:1", 0, start + after);
  BOOST_TEST(node.ended.empty());
  node.others = false;
  node.ends = true; // for another reason: that one is kept
  admits.refused(refusal::duplicate, "10.0.0.2:1", 0, start + 9s);
  BOOST_TEST(node.ended.empty());
}

BOOST_AUTO_TEST_CASE(a_peer_that_has_gone_is_revoked_by_its_name) {
  const core::view v = two_members();
  adopt(v);
  nodes.adopted(nullptr, node.now, 0);
  core::view alone = v;
  alone.members.pop_back();
  adopt(alone);
  nodes.adopted(&v, node.now, 1);
  admits.revoke_peer(1, {"bert"});
  BOOST_TEST((node.last<cl::revoke_peer>().peer == numbered_peer(2)));
}

// One that had left came back with the old key, though nobody was to have it.
BOOST_AUTO_TEST_CASE(a_revocation_names_those_that_may_come_back) {
  core::view v = two_members();
  v.members[1].name = "carl";
  v.members.push_back(v.members[1]);
  v.members[2].id.peer = numbered_peer(3);
  v.members[2].name = "bert";
  adopt(v);
  nodes.adopted(nullptr, node.now, 0);
  const core::view before = v;
  v.members.pop_back();
  v.lapsed = {numbered_peer(9), numbered_peer(3)};
  adopt(v);
  nodes.adopted(&before, node.now, 1);
  admits.revoke_peer(1, {"carl"});
  v.members.pop_back();
  v.revoked = {numbered_peer(2)};
  const auto answers = adopt(v);
  BOOST_TEST_REQUIRE(answers.size() == 1);
  BOOST_TEST(says(answers[0].what.text, "09090909, bert (03030303)"),
             answers[0].what.text);
}

// The question whether one is sure was asked about a name that nobody has.
BOOST_AUTO_TEST_CASE(whom_it_would_revoke_can_be_asked_first) {
  adopt(two_members());
  const auto told = node.told.size();
  admits.revoke_peer(1, {"bert", true});
  BOOST_TEST(node.answers[1].why == "");
  BOOST_TEST(node.answers[1].text == "bert (02020202)");
  admits.revoke_peer(2, {"berta", true});
  BOOST_TEST(says(node.answers[2].why, "no peer is named 'berta'"));
  admits.revoke_peer(3, {core::to_hex(numbered_peer(1)), true});
  BOOST_TEST(says(node.answers[3].why, "cannot revoke itself"));
  BOOST_TEST(node.told.size() == told); // nothing is done
}

// A typing error had success, and the peer that was meant stayed.
BOOST_AUTO_TEST_CASE(an_id_that_nobody_has_is_doubted) {
  core::view v = two_members();
  adopt(v);
  std::string wrong = core::to_hex(numbered_peer(2));
  wrong.back() = 'f';
  admits.revoke_peer(1, {wrong});
  BOOST_TEST(says(node.answers[1].why, "that of bert begins alike"));
  BOOST_TEST(node.told.empty());
  admits.revoke_peer(2, {core::to_hex(numbered_peer(7))});
  v.revoked = {numbered_peer(7)};
  const auto answers = adopt(v);
  BOOST_TEST_REQUIRE(answers.size() == 1);
  BOOST_TEST(says(answers[0].what.text, "no peer that this node knows"));
}

BOOST_AUTO_TEST_CASE(a_peer_that_says_revoked_is_named_at_the_end) {
  adopt(two_members());
  nodes.adopted(nullptr, node.now, 0);
  admits.refused(refusal::revoked, "10.0.0.2:18372", 1, {});
  BOOST_TEST(node.last<cl::turned_away>().address == "10.0.0.2:18372");
  admits.shut_out();
  BOOST_TEST_REQUIRE(node.ended.size() == 1);
  BOOST_TEST(says(node.ended[0], "10.0.0.2:18372"));
  BOOST_TEST(says(node.ended[0], "revoked"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
