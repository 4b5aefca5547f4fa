// tests/transport/loopback/simulation_test.cpp -- the simulated loopback
// network.
#include "transport/loopback/fabric.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <string>

namespace shoal::transport::loopback {
BOOST_AUTO_TEST_SUITE(simulation)

namespace {

using namespace std::chrono_literals;

/// Appends all that happens, with the time, to one text.
class diary final : public fabric_handler {
public:
  diary(network& net, std::string name) : net_(net), name_(std::move(name)) {}
  void up(const peer_info& peer) override {
    note("up " + std::to_string(peer.id[0]));
  }
  void down(const peer_id& peer, std::error_code) override {
    note("down " + std::to_string(peer[0]));
    if (on_down)
      on_down();
  }
  void message(const peer_id&, std::span<const std::byte> bytes) override {
    note("message " + std::to_string(std::to_integer<int>(bytes[0])));
    order.push_back(std::to_integer<int>(bytes[0]));
  }
  void connect_failed(const std::string& address, std::error_code) override {
    note("no " + address);
  }
  void note(const std::string& what) {
    text +=
      std::to_string(net_.now().count()) + " " + name_ + " " + what + "\n";
  }

  std::string text;
  std::vector<int> order;
  std::function<void()> on_down;

private:
  network& net_;
  std::string name_;
};

struct pair {
  explicit pair(std::uint64_t seed, faults f = {})
    : net(seed, f), da(net, "a"), db(net, "b"),
      a(std::make_unique<fabric>(net, config{"a", {1}}, da)),
      b(std::make_unique<fabric>(net, config{"b", {2}}, db)) {}
  void join() {
    a->connect("b");
    net.run_until(net.now() + 1s);
    BOOST_REQUIRE(a->traffic_with({2}).sent_bytes == 0);
  }
  void say(int what) {
    const std::byte bytes[]{static_cast<std::byte>(what)};
    BOOST_REQUIRE(!a->send({2}, bytes));
  }

  network net;
  diary da, db;
  std::unique_ptr<fabric> a, b;
};

struct result {
  int runs = 0;
  std::error_code error;
  completion done() {
    return {[](void* self, std::error_code e) noexcept {
              ++static_cast<result*>(self)->runs;
              static_cast<result*>(self)->error = e;
            },
            this};
  }
};

const faults slow{.delay_min = 1ms, .delay_max = 20ms};

std::string history(std::uint64_t seed) {
  auto f = slow;
  f.loss = 0.2;
  f.reorder = true;
  pair p(seed, f);
  p.join();
  for (int i = 0; i < 50; ++i)
    p.say(i);
  p.net.run_until(2s);
  p.net.kill("b");
  p.net.run_until(3s);
  return p.da.text + p.db.text;
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_history) {
  BOOST_TEST(history(1) == history(1));
  BOOST_TEST(history(1) != history(2));
}

BOOST_AUTO_TEST_CASE(nothing_happens_unless_time_passes) {
  pair p(1, slow);
  p.a->connect("b");
  p.net.run_until(0s);
  BOOST_TEST(p.da.text.empty());
  BOOST_TEST(p.net.step());
  BOOST_TEST(!p.da.text.empty());
  BOOST_TEST((p.net.now() >= 1ms && p.net.now() <= 20ms));
  while (p.net.step()) {
  }
  BOOST_TEST(!p.net.step());
}

BOOST_AUTO_TEST_CASE(scheduled_work_runs_at_its_time) {
  pair p(1);
  std::vector<std::int64_t> when;
  for (const auto delay : {3ms, 1ms, 2ms})
    p.net.schedule(delay, [&] { when.push_back(p.net.now().count()); });
  p.net.run_until(2ms);
  BOOST_TEST(when.size() == 2u);
  p.net.run_until(9ms);
  BOOST_TEST((when == std::vector<std::int64_t>{1000000, 2000000, 3000000}));
}

BOOST_AUTO_TEST_CASE(delay_keeps_the_order_and_reordering_does_not) {
  pair p(3, slow);
  p.join();
  for (int i = 0; i < 100; ++i)
    p.say(i);
  p.net.run_until(2s);
  BOOST_TEST(p.db.order.size() == 100u);
  BOOST_TEST(std::is_sorted(p.db.order.begin(), p.db.order.end()));
  p.db.order.clear();
  p.net.settings().reorder = true;
  for (int i = 0; i < 100; ++i)
    p.say(i);
  p.net.run_until(4s);
  BOOST_TEST(p.db.order.size() == 100u);
  BOOST_TEST(!std::is_sorted(p.db.order.begin(), p.db.order.end()));
}

BOOST_AUTO_TEST_CASE(loss_takes_its_share_of_messages) {
  auto f = slow;
  f.loss = 0.5;
  pair p(4, f);
  p.join();
  for (int i = 0; i < 200; ++i)
    p.say(i);
  p.net.run_until(2s);
  BOOST_TEST(p.db.order.size() > 60u);
  BOOST_TEST(p.db.order.size() < 140u);
}

BOOST_AUTO_TEST_CASE(a_cut_is_one_way_and_delays_bulk) {
  pair p(5, slow);
  p.join();
  p.net.cut("a", "b");
  p.say(1);
  const std::byte two[]{std::byte{2}};
  BOOST_REQUIRE(!p.b->send({1}, two));
  std::array<std::byte, 4> from{std::byte{7}}, into{};
  result in, out;
  BOOST_REQUIRE(!p.b->post_receive({1}, {}, into, in.done()));
  BOOST_REQUIRE(!p.a->send_bulk({2}, {}, from, out.done()));
  p.net.run_until(2s);
  BOOST_TEST(p.db.order.empty());
  BOOST_TEST((p.da.order == std::vector<int>{2}));
  BOOST_TEST((in.runs == 0 && out.runs == 0));
  p.net.heal_all();
  p.say(3);
  p.net.run_until(3s);
  BOOST_TEST((p.db.order == std::vector<int>{3})); // 1 is lost for good
  BOOST_TEST((in.runs == 1 && out.runs == 1 && !in.error && !out.error));
  BOOST_TEST((into == from));
  p.net.cut("b", "a");
  p.a->connect("c");
  p.net.run_until(4s);
  BOOST_TEST(p.da.text.find("no c") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_corrupted_transfer_is_reported_to_both) {
  auto f = slow;
  f.corrupt = 1;
  pair p(6, f);
  p.join();
  std::array<std::byte, 4> from{}, into{};
  result in, out;
  BOOST_REQUIRE(!p.b->post_receive({1}, {}, into, in.done()));
  BOOST_REQUIRE(!p.a->send_bulk({2}, {}, from, out.done()));
  p.net.run_until(2s);
  BOOST_TEST(in.error == errc::corrupt);
  BOOST_TEST(out.error == errc::corrupt);
}

BOOST_AUTO_TEST_CASE(the_dead_say_nothing_and_their_peers_learn_of_it) {
  auto f = slow;
  f.death_notice = 500ms;
  pair p(7, f);
  p.join();
  std::array<std::byte, 4> from{}, into{};
  result in, out, dead;
  BOOST_REQUIRE(!p.a->post_receive({2}, {}, into, in.done()));
  BOOST_REQUIRE(!p.a->send_bulk({2}, {}, from, out.done()));
  BOOST_REQUIRE(!p.b->post_receive({1}, {9, 9, 9}, into, dead.done()));
  p.net.kill("b");
  const auto before = p.db.text;
  p.say(1);
  p.net.run_until(p.net.now() + 499ms);
  BOOST_TEST(p.da.text.find("down") == std::string::npos);
  p.net.run_until(p.net.now() + 1ms);
  BOOST_TEST(p.da.text.find("down 2") != std::string::npos);
  BOOST_TEST(in.error == errc::peer_lost);
  BOOST_TEST(out.error == errc::peer_lost);
  const std::byte one[]{std::byte{1}};
  BOOST_TEST(p.b->send({1}, one) == errc::peer_lost);
  p.net.run_until(p.net.now() + 1s);
  BOOST_TEST(p.db.text == before);
  BOOST_TEST(dead.runs == 0);
  p.b.reset();
  BOOST_TEST(dead.runs == 1);
  BOOST_TEST(p.db.text == before);
}

BOOST_AUTO_TEST_CASE(a_restart_under_the_same_name_is_down_then_up) {
  auto f = slow;
  f.death_notice = -1ns; // not noticed
  pair p(8, f);
  p.join();
  p.net.kill("b");
  p.net.run_until(p.net.now() + 10s);
  BOOST_TEST(p.da.text.find("down") == std::string::npos);
  diary again(p.net, "b2");
  fabric fresh(p.net, config{"b", {2}, peer_role::member, 2}, again);
  fresh.connect("a");
  p.net.run_until(p.net.now() + 1s);
  const auto down = p.da.text.find("down 2");
  BOOST_TEST(down != std::string::npos);
  BOOST_TEST(p.da.text.find("up 2", down) != std::string::npos);
  BOOST_TEST(again.text.find("up 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(
  what_is_canceled_has_ended_when_its_peer_is_down_or_it_is_closed) {
  for (const bool closes : {false, true}) {
    result received, sent;
    std::byte bytes[8] = {};
    pair p(1);
    p.join();
    BOOST_REQUIRE(!p.a->post_receive({2}, {7, 0, 0}, bytes, received.done()));
    BOOST_REQUIRE(!p.a->send_bulk({2}, {7, 1, 0}, bytes, sent.done()));
    p.da.on_down = [&] { BOOST_TEST(received.runs + sent.runs == 2); };
    if (!closes) // the peer is lost in the same moment, but before
      p.b->close();
    p.a->cancel(7);
    if (closes)
      p.a->close();
    else
      p.net.run_until(1s);
    BOOST_TEST(received.runs == 1);
    BOOST_TEST(sent.runs == 1);
    BOOST_TEST(received.error == make_error_code(errc::canceled));
    BOOST_TEST(sent.error == make_error_code(errc::canceled));
    while (p.net.step()) {
    }
    BOOST_TEST(received.runs + sent.runs == 2);
  }
}

BOOST_AUTO_TEST_CASE(a_name_or_id_is_used_by_one_live_fabric) {
  pair p(9);
  diary d(p.net, "x");
  BOOST_CHECK_THROW(fabric(p.net, config{"a", {3}}, d), std::invalid_argument);
  BOOST_CHECK_THROW(fabric(p.net, config{"c", {1}}, d), std::invalid_argument);
  p.a->close();
  BOOST_CHECK_NO_THROW(fabric(p.net, config{"a", {1}}, d));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::loopback
