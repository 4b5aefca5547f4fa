// tests/runtime/links/link_prober_test.cpp -- probes measure, with little
// traffic.
//
// Simulated nodes whose requests may be lost and whose fabrics may fail.
#include "runtime/links/link_prober.hpp"
#include "tests/runtime/links/link_world.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

BOOST_AUTO_TEST_SUITE(link_probes)

using namespace shoal;
using namespace shoal::test;
using namespace std::chrono_literals;
using runtime::link_probe;
using runtime::link_prober;

namespace {

struct probing {
  /// Loses some of the requests of one prober.
  struct lossy final : runtime::probe_sender {
    lossy(probing& w, std::size_t i, double share)
      : all(w), number(i), loss(share) {}
    std::error_code
    send_probe(const peer_id& to, const link_probe& p) override {
      if (std::uniform_real_distribution<>(0, 1)(all.random) >= loss)
        all.tls.schedule(10us, [&w = all, i = number, to, p] {
          w.probers[to[0] - 1u]->asked(id_of(i), p, w.time());
        });
      return {};
    }
    probing& all;
    std::size_t number;
    double loss;
  };
  explicit probing(std::size_t count, std::uint64_t seed, double ask_loss = 0)
    : random(seed), tls(seed), ucx(seed + 1) {
    for (std::size_t i = 0; i < count; ++i) {
      hosts.push_back(std::make_unique<host>(i, tls, ucx));
      senders.push_back(std::make_unique<lossy>(*this, i, ask_loss));
      probers.push_back(std::make_unique<link_prober>(
        id_of(i), hosts[i]->links(), *senders[i]));
    }
    for (auto kind : {fabric_kind::tls, fabric_kind::shm})
      connect(kind);
    run(1ms);
  }
  ~probing() {
    for (auto& h : hosts)
      h->links().close();
  }

  void connect(fabric_kind kind) {
    for (std::size_t a = 0; a < hosts.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        hosts[a]->fabric(kind).connect(std::to_string(b));
  }
  link_prober::clock::time_point time() const {
    return link_prober::clock::time_point(now);
  }
  void run(std::chrono::nanoseconds span) {
    for (const auto end = now + span; now < end; now += 50us) {
      tls.run_until(now);
      ucx.run_until(now);
      for (auto& h : hosts)
        h->links().tick();
    }
  }
  /// Like a node: finds unknown values, and ticks.
  void tick(std::size_t at) {
    std::vector<link_prober::pair> unknown;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (i != at) {
        const auto s = stat(at, i);
        unknown.push_back({id_of(i), s.latency_ns == 0, s.bytes_per_s == 0});
      }
    probers[at]->tick(time(), unknown);
  }
  runtime::link_hub::link_stat stat(std::size_t at, std::size_t peer) {
    for (auto& s : hosts[at]->links().stats())
      if (s.peer == id_of(peer) && s.fabric == "shm")
        return s;
    return {};
  }
  std::size_t moved(std::size_t at, std::size_t peer) {
    std::size_t sum = 0;
    for (auto& s : hosts[at]->links().stats())
      if (s.peer == id_of(peer))
        sum += s.sent_bytes;
    return sum;
  }

  std::mt19937_64 random;
  loopback::network tls;
  loopback::network ucx;
  std::vector<std::unique_ptr<host>> hosts;
  std::vector<std::unique_ptr<lossy>> senders;
  std::vector<std::unique_ptr<link_prober>> probers; // before the hosts
  std::chrono::nanoseconds now{0};
};

} // namespace

BOOST_AUTO_TEST_CASE(a_probe_measures_latency_and_bandwidth_once) {
  probing w(2, 1);
  w.tick(0);
  w.run(20ms);
  const auto s = w.stat(0, 1);
  BOOST_TEST(s.latency_ns > 0u);
  BOOST_TEST(s.bytes_per_s > 0u);
  BOOST_TEST(s.sent_bytes
             == link_prober::small_count * link_prober::small_bytes
                  + link_prober::bulk_count * link_prober::bulk_bytes);
  w.tick(0); // nothing is left to know
  w.run(20ms);
  BOOST_TEST(w.stat(0, 1).sent_bytes == s.sent_bytes);
  BOOST_TEST(w.stat(1, 0).sent_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(one_after_another_all_pairs_are_measured) {
  probing w(5, 2);
  for (int round = 0; round < 8; ++round) {
    for (std::size_t i = 0; i < 5; ++i)
      w.tick(i);
    w.run(20ms);
  }
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = 0; b < 5; ++b)
      BOOST_TEST((a == b || w.stat(a, b).bytes_per_s > 0));
}

BOOST_AUTO_TEST_CASE(a_peer_over_its_share_gets_no_answer) {
  probing w(2, 3);
  for (std::uint64_t nonce = 1; nonce < 50; ++nonce)
    w.probers[1]->asked(id_of(0), {nonce, 17, 0}, w.time());
  w.probers[1]->asked(id_of(0), {50, 0, 5}, w.time());
  w.run(1ms);
  w.tick(0); // served at once: none of those wait before it
  w.run(20ms);
  BOOST_TEST(w.stat(0, 1).bytes_per_s > 0u);
}

BOOST_AUTO_TEST_CASE(lost_asks_and_failing_fabrics_stay_within_the_budget) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      probing w(3, seed, 0.4);
      for (int round = 0; round < 40; ++round) {
        const auto a = w.random() % 3;
        const auto b = (a + 1 + w.random() % 2) % 3;
        if (w.random() % 3 == 0)
          w.hosts[a]->fabric(fabric_kind::shm).drop(id_of(b));
        for (std::size_t i = 0; i < 3; ++i)
          w.tick(i);
        w.run(2ms);
        w.connect(fabric_kind::shm);
        w.now += round % 4 == 0 ? 11s : 0s; // what waits is late
      }
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b)
          BOOST_TEST((a == b || w.moved(a, b) <= link_prober::pair_bytes_max));
    }
}

BOOST_AUTO_TEST_SUITE_END()
