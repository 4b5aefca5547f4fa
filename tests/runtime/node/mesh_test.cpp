// tests/runtime/node/mesh_test.cpp -- a node's fabrics against odd peers.
//
// The other end is a bare TLS fabric that holds the cluster key and sends
// messages that no correct node would send.
#include "runtime/node/mesh.hpp"
#include "tests/runtime/node/swarm.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/arena.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <future>

namespace shoal::runtime {
BOOST_AUTO_TEST_SUITE(meshes)

namespace {

namespace tls = transport::tls;
using tests::swarm;

class silent final : public transport::fabric_handler {
public:
  void up(const transport::peer_info&) override { is_up = true; }
  void down(const core::peer_id&, std::error_code) override { is_up = false; }
  void message(const core::peer_id&, std::span<const std::byte>) override {
    ++received;
  }
  void connect_failed(const std::string&, std::error_code) override {}
  std::atomic<bool> is_up{false};
  std::atomic<std::size_t> received{0};
};

/// Counts what a mesh tells.
class recorder final : public mesh_handler {
public:
  using peer = core::peer_id;
  void up(const peer&, std::uint64_t) override {}
  void down(const peer&) override { ++downs; }
  void connect_failed(const std::string&, std::error_code) override {}
  void reached(const std::string&, const peer&) override {}
  void refused(tls::refusal, const std::string&) override {}
  void take(const peer&, core::cluster::message&&) override {
    if (on_message)
      on_message();
    ++received;
  }
  void take(const peer&, core::job_message&&) override { ++received; }
  void take(const peer&, core::serve_message&&) override { ++received; }
  void take(const peer&, blob_request&&) override { ++received; }
  void take(const peer&, blob_chunk&&) override { ++received; }
  void take(const peer&, role_message&&) override { ++received; }
  void take(const peer&, client_reply&&) override { ++received; }
  void take(const peer&, client_request&&) override { ++asked; }
  void client_gone(const peer&) override {}
  void say(const std::string& line) override { said.add(line); }

  std::function<void()> on_message; ///< on the thread of TLS
  std::atomic<int> received{0};
  std::atomic<int> asked{0};
  std::atomic<int> downs{0};
  tests::lines said;
};

struct world {
  world() {
    mesh_config c;
    c.listen = "127.0.0.1:0";
    c.identity = tls::make_private_key();
    c.cluster_key = key;
    c.host = "here";
    node = std::make_unique<mesh>(c, told);
    node->open();
    far = std::make_unique<tls::fabric>(another(), heard);
    far->connect(node->address());
    BOOST_TEST_REQUIRE(swarm::until(
      [this] { return heard.is_up && node->peers().size() == 1; }));
  }
  ~world() {
    far->close();
    node->close();
  }
  /// A fabric with the cluster key and an identity of its own.
  tls::config another() const {
    tls::config other;
    other.identity = tls::make_private_key();
    other.cluster_key = key;
    other.planner = core::planner_version;
    return other;
  }
  void send(const envelope& e) {
    BOOST_TEST_REQUIRE(!far->send(node->self(), codec::encode(e)));
  }

  const tls::shared_key key = tls::make_shared_key();
  recorder told;
  silent heard;
  std::unique_ptr<mesh> node;
  std::unique_ptr<tls::fabric> far;
};

paired_address address_of(const core::peer_id& peer) {
  transport::introduced::node_address a;
  a.host.boot_id = "here";
  a.peer = peer;
  a.way.resize(100);
  const auto text = transport::introduced::format_address(a);
  paired_address m{"here", {}};
  for (const char c : text)
    m.address.push_back(static_cast<std::byte>(c));
  return m;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_paired_address_of_another_peer_is_not_used) {
  world w;
  w.node->set_members({w.far->id()});
  core::peer_id victim{};
  victim[0] = 7;
  w.send(address_of(victim));
  BOOST_TEST(!w.told.said.wait_for("an address that is not its own").empty());
}

BOOST_AUTO_TEST_CASE(many_wrong_addresses_write_few_lines) {
  world w;
  w.node->set_members({w.far->id()});
  core::peer_id victim{};
  victim[0] = 7;
  for (int i = 0; i < 300; ++i)
    w.send(address_of(victim));
  w.send(core::cluster::message{}); // the last
  BOOST_TEST(swarm::until([&] { return w.told.received == 1; }));
  const auto said = w.told.said.count("an address that is not its own");
  BOOST_TEST(said >= 1);
  BOOST_TEST(said < 100); // as many at once as there may be, and one a second
}

BOOST_AUTO_TEST_CASE(a_thread_that_stands_still_gives_no_sign_of_life) {
  world w;
  const auto tls = std::make_shared<life_sign>();
  const auto others = std::make_shared<life_sign>();
  w.node->look_for_life(tls, others);
  BOOST_TEST(swarm::until([&] { return tls->given() == 1; }));
  BOOST_TEST(others->given() == 1u);
  std::promise<void> stands, goes_on;
  w.told.on_message = [&] {
    stands.set_value();
    goes_on.get_future().wait();
  };
  w.send(core::cluster::message{});
  stands.get_future().wait();
  w.node->look_for_life(tls, others);
  w.node->look_for_life(tls, others);
  BOOST_TEST(tls->given() == 1u);
  goes_on.set_value();
  BOOST_TEST(swarm::until([&] { return tls->given() == 2; }));
}

BOOST_AUTO_TEST_CASE(roles_hear_members_only) {
  world w;
  w.send(role_message{"role", {}});
  w.send(blob_request{});
  // Sent later, and it does pass: what comes from strangers is what joins.
  w.send(core::cluster::message{});
  BOOST_TEST(swarm::until([&] { return w.told.received == 1; }));
  w.node->set_members({w.far->id()});
  BOOST_TEST(swarm::until([&] { return w.told.received == 3; }));
}

BOOST_AUTO_TEST_CASE(a_peer_asks_for_its_client_only_what_is_handed_on) {
  world w;
  w.send(client_request{1, recover_force{}});
  w.send(client_request{2, use_invite{}});
  w.send(client_request{3, ask_status{}, "another"}); // not twice
  w.send(client_request{4, ask_status{}});
  w.send(core::cluster::message{}); // the last
  BOOST_TEST(swarm::until([&] { return w.told.received == 1; }));
  BOOST_TEST(w.told.asked == 1);
}

/// A view may know of a peer that this node has yet to connect to.
BOOST_AUTO_TEST_CASE(an_early_message_to_a_member_arrives_once_it_is_up) {
  world w;
  silent heard;
  tls::fabric late(w.another(), heard);
  w.node->set_members({late.id()});
  const std::size_t most = mesh::late_messages_max;
  for (std::size_t n = 0; n < most + 3; ++n)
    w.node->send_when_up(late.id(), envelope(core::job_message{}));
  w.node->send_when_up(w.far->id(), envelope(core::job_message{})); // is up
  late.connect(w.node->address());
  BOOST_TEST(swarm::until([&] { return heard.received == most; }));
  w.node->send_when_up(late.id(), envelope(core::job_message{}));
  BOOST_TEST(swarm::until([&] { return heard.received == most + 1; }));
  late.close();
}

BOOST_AUTO_TEST_CASE(a_former_member_gets_no_late_messages) {
  world w;
  silent heard;
  tls::fabric late(w.another(), heard);
  w.node->send_when_up(late.id(), envelope(core::job_message{}));
  w.node->set_members({});
  late.connect(w.node->address());
  BOOST_TEST_REQUIRE(swarm::until([&] { return w.node->peers().size() == 2; }));
  w.node->send_when_up(late.id(), envelope(core::cluster::message{}));
  BOOST_TEST(swarm::until([&] { return heard.received > 0u; }));
  BOOST_TEST(heard.received == 1u);
  late.close();
}

BOOST_AUTO_TEST_CASE(a_dropped_peer_is_down_and_may_return) {
  world w;
  w.node->drop(w.far->id());
  BOOST_TEST_REQUIRE(swarm::until([&] { return w.told.downs == 1; }));
  BOOST_TEST(w.node->peers().empty());
  // Who still takes the other for up has nothing to connect.
  BOOST_TEST_REQUIRE(swarm::until([&] { return !w.heard.is_up; }));
  w.far->connect(w.node->address());
  BOOST_TEST(swarm::until([&] { return w.node->peers().size() == 1; }));
  BOOST_TEST(w.told.downs == 1);
}

/// A node beside others, and how often it was told that one did not answer.
struct neighbour {
  explicit neighbour(const tls::shared_key& key,
                     std::chrono::milliseconds hello_timeout) {
    mesh_config c;
    c.listen = "127.0.0.1:0";
    c.identity = tls::make_private_key();
    c.cluster_key = key;
    c.host = "here";
    c.hello_timeout = hello_timeout;
    node = std::make_unique<mesh>(c, told);
    node->open();
  }
  ~neighbour() { node->close(); }
  void tick(std::chrono::seconds after) {
    node->tick(std::chrono::steady_clock::now() + after);
  }
  bool by_memory() const {
    const auto pairs = node->pairs();
    return pairs.size() == 1 && pairs[0].choice.used == fabric_kind::shm;
  }
  recorder told;
  std::unique_ptr<mesh> node;
};

// A node asks to be admitted and is kept waiting: longer than it waits for an
// answer by shared memory.
BOOST_AUTO_TEST_CASE(a_peer_that_answers_late_is_reached_by_shared_memory) {
  const auto key = tls::make_shared_key();
  neighbour asks(key, std::chrono::milliseconds(300));
  neighbour member(key, std::chrono::milliseconds(300));
  asks.node->connect(member.node->address());
  BOOST_TEST_REQUIRE(swarm::until([&] {
    return asks.node->peers().size() == 1 && member.node->peers().size() == 1;
  }));
  asks.node->set_members({member.node->self()});
  member.tick(std::chrono::seconds(0)); // its offer, which is taken up
  BOOST_TEST(!asks.told.said.wait_for("did not answer").empty());
  member.node->set_members({asks.node->self()});
  std::chrono::seconds later{0};
  BOOST_TEST(swarm::until([&] {
    later += std::chrono::seconds(1);
    asks.tick(later);
    member.tick(later);
    return asks.by_memory() && member.by_memory();
  }));
}

// Unless shared memory is turned off, in any of the possible ways.
BOOST_AUTO_TEST_CASE(tensors_are_in_memory_that_local_peers_can_read) {
  std::vector<fabric_choice> off(3);
  off[0].shared_memory = false;
  off[1].force = "tls";
  off[2].exclude = {"shm"};
  const auto lies_there = [](const fabric_choice& fabrics) {
    recorder told;
    mesh_config c;
    c.identity = tls::make_private_key();
    c.fabrics = fabrics;
    mesh node(std::move(c), told);
    const auto memory = node.links().memory();
    constexpr std::size_t bytes = std::size_t{1} << 20;
    auto* const data = static_cast<std::byte*>(memory->allocate(bytes));
    const auto* arena =
      dynamic_cast<const transport::shm::arena*>(memory.get());
    const bool in_arena = arena && arena->offset_of({data, bytes});
    memory->deallocate(data, bytes);
    return in_arena;
  };
  BOOST_TEST(lies_there({}));
  for (const fabric_choice& fabrics : off)
    BOOST_TEST(!lies_there(fabrics));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
