// tests/runtime/links/links_test.cpp -- transfers end once, whole, whatever
// the fabrics do.
#include "tests/runtime/links/link_world.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

BOOST_AUTO_TEST_SUITE(links)

using namespace shoal;
using namespace shoal::test;
using namespace std::chrono_literals;
using transport::errc;

namespace {

constexpr std::byte canary{0xa5};
constexpr std::size_t canary_bytes = 64;

/// Both ends of one transfer, with memory that detects unexpected writes.
struct exchange {
  exchange(bulk_tag t, std::size_t bytes, std::uint64_t seed)
    : tag(t), size(bytes), source(bytes), memory(bytes + 2 * canary_bytes) {
    std::mt19937_64 random(seed);
    for (auto& b : source)
      b = static_cast<std::byte>(random());
    std::fill(memory.begin(), memory.end(), canary);
  }

  runtime::shared_bytes into() {
    return {keep, std::span(memory).subspan(canary_bytes, size)};
  }
  runtime::shared_bytes out() { return {keep, std::span(source)}; }

  auto on_received() {
    return [this](std::error_code result) {
      received = result;
      snapshot = memory;
      ++receives;
    };
  }
  auto on_sent() {
    return [this](std::error_code result) {
      sent = result;
      ++sends;
    };
  }

  void check() const {
    BOOST_TEST(receives == 1);
    BOOST_TEST(sends == 1);
    for (std::size_t i = 0; i < canary_bytes; ++i)
      BOOST_REQUIRE(
        (memory[i] == canary && memory[size + canary_bytes + i] == canary));
    BOOST_TEST((memory == snapshot), "memory was written after done");
    if (!received)
      BOOST_TEST((std::equal(source.begin(), source.end(),
                             memory.begin() + canary_bytes)));
    if (!sent)
      BOOST_TEST(!received);
    BOOST_TEST(keep.use_count() == 1, "the hub still holds the buffer");
  }

  bulk_tag tag;
  std::size_t size;
  std::vector<std::byte> source;
  std::vector<std::byte> memory;
  std::vector<std::byte> snapshot;
  std::shared_ptr<void> keep = std::make_shared<int>(0);
  std::error_code received = std::make_error_code(std::errc::timed_out);
  std::error_code sent = std::make_error_code(std::errc::timed_out);
  int receives = 0;
  int sends = 0;
};

/// Simulated nodes that all know each other.
struct world {
  explicit world(std::size_t count, std::uint64_t seed = 1,
                 loopback::faults f = {}, transport::limits limits = {})
    : tls(seed, f), ucx(seed + 1, f) {
    for (std::size_t i = 0; i < count; ++i)
      hosts.push_back(std::make_unique<host>(i, tls, ucx, limits));
  }

  void connect(fabric_kind kind) {
    for (std::size_t a = 0; a < hosts.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        at(a).fabric(kind).connect(std::to_string(b));
  }
  void connect_all() {
    connect(fabric_kind::tls);
    connect(fabric_kind::shm);
    run(1ms);
  }
  void run(std::chrono::nanoseconds time) {
    const auto end = now + time;
    while (now < end) {
      now = std::min(now + 20us, end);
      tls.run_until(now);
      ucx.run_until(now);
      if (now >= next_tick) {
        for (auto& h : hosts)
          h->links().tick();
        next_tick = now + 100us;
      }
    }
  }
  host& at(std::size_t i) { return *hosts[i]; }
  exchange& make(bulk_tag tag, std::size_t bytes) {
    return exchanges.emplace_back(tag, bytes, exchanges.size());
  }
  void expect(std::size_t to, std::size_t from, exchange& x) {
    at(to).links().expect(id_of(from), x.tag, x.into(), x.on_received());
  }
  void send(std::size_t from, std::size_t to, exchange& x) {
    at(from).links().send(id_of(to), x.tag, x.out(), x.on_sent());
  }

  std::deque<exchange> exchanges; // outlive the hosts
  loopback::network tls;
  loopback::network ucx;
  std::vector<std::unique_ptr<host>> hosts;
  std::chrono::nanoseconds now{0};
  std::chrono::nanoseconds next_tick{0};
};

std::string fabric_used(host& at) {
  const auto stats = at.links().stats();
  return stats.size() == 1 ? stats.front().fabric : "several";
}

} // namespace

BOOST_AUTO_TEST_CASE(the_best_fabric_carries_whatever_comes_first) {
  world w(2);
  w.connect_all();
  auto& a = w.make({1, 1, 1}, 5000);
  auto& b = w.make({1, 1, 2}, 0);
  w.expect(1, 0, a);
  w.send(0, 1, b);
  w.run(1ms);
  BOOST_TEST(a.receives + b.sends == 0);
  w.send(0, 1, a);
  w.expect(1, 0, b);
  w.run(1ms);
  for (const auto* x : {&a, &b}) {
    x->check();
    BOOST_TEST(!x->received);
    BOOST_TEST(!x->sent);
  }
  BOOST_TEST(fabric_used(w.at(0)) == "shm");
  BOOST_TEST(w.at(1).links().stats().front().received_bytes == 5000u);
}

BOOST_AUTO_TEST_CASE(a_transfer_to_this_node_is_one_copy) {
  world w(1);
  auto& a = w.make({1, 1, 1}, 4097);
  w.send(0, 0, a);
  BOOST_TEST(a.sends == 0);
  w.expect(0, 0, a);
  a.check();
  BOOST_TEST(!a.sent);
  BOOST_TEST(fabric_used(w.at(0)) == "local");
  auto& b = w.make({2, 1, 1}, 10);
  w.expect(0, 0, b);
  w.at(0).links().cancel(2);
  BOOST_TEST((b.received == errc::canceled));
  w.send(0, 0, b);
  w.at(0).links().close();
  BOOST_TEST((b.sent == errc::canceled));
  b.check();
}

BOOST_AUTO_TEST_CASE(a_transfer_that_starts_early_waits_for_the_peer) {
  world w(2);
  auto& a = w.make({1, 1, 1}, 100);
  w.expect(1, 0, a);
  w.send(0, 1, a);
  w.run(5ms);
  BOOST_TEST(a.receives + a.sends == 0);
  w.connect(fabric_kind::tls);
  w.run(1ms);
  a.check();
  BOOST_TEST(!a.sent);
  BOOST_TEST(fabric_used(w.at(1)) == "tls");
}

// A connection that breaks without suspicion of any peer changes no view, so
// nothing else would end these transfers.
BOOST_AUTO_TEST_CASE(transfers_outlive_a_broken_connection) {
  world w(2);
  w.connect(fabric_kind::tls);
  auto& in = w.make({1, 1, 1}, 100);
  auto& out = w.make({1, 1, 2}, 100);
  w.expect(0, 1, in);
  w.send(0, 1, out);
  w.run(1ms);
  w.at(0).fabric(fabric_kind::tls).drop(id_of(1));
  w.run(1ms);
  BOOST_TEST(in.receives + out.sends == 0);
  w.connect(fabric_kind::tls);
  w.send(1, 0, in);
  w.expect(1, 0, out);
  w.run(5ms);
  in.check();
  out.check();
  BOOST_TEST(!in.received);
  BOOST_TEST(!out.sent);
}

BOOST_AUTO_TEST_CASE(a_lost_peer_s_transfers_end_with_their_plan) {
  world w(2);
  w.connect_all();
  auto& in = w.make({1, 1, 1}, 100);
  auto& out = w.make({1, 1, 2}, 100);
  w.expect(0, 1, in);
  w.send(0, 1, out);
  w.run(1ms);
  w.tls.kill("1");
  w.ucx.kill("1");
  w.run(1ms);
  BOOST_TEST(in.receives + out.sends == 0);
  w.at(0).links().cancel(1);
  w.run(1ms);
  BOOST_TEST((in.received == errc::canceled));
  BOOST_TEST((out.sent == errc::canceled));
  BOOST_TEST(in.receives + out.sends == 2);
}

BOOST_AUTO_TEST_CASE(a_lost_fabric_is_replaced_by_the_other) {
  world w(2);
  w.connect_all();
  auto& a = w.make({1, 1, 1}, 100);
  w.expect(1, 0, a);
  w.run(1ms);
  w.at(1).fabric(fabric_kind::shm).drop(id_of(0));
  w.run(1ms);
  w.send(0, 1, a);
  w.run(1ms);
  a.check();
  BOOST_TEST(!a.sent);
  BOOST_TEST(fabric_used(w.at(0)) == "tls");
}

// The other side never hears of it: the way between them is cut.
BOOST_AUTO_TEST_CASE(a_failure_that_only_one_end_sees_converges) {
  for (const std::size_t sees : {0u, 1u})
    BOOST_TEST_CONTEXT("end " << sees) {
      world w(2);
      w.connect_all();
      auto& granted = w.make({1, 1, 1}, 100);
      auto& flying = w.make({1, 1, 2}, 100);
      w.expect(1, 0, granted);
      w.expect(1, 0, flying);
      w.run(1ms);
      w.ucx.cut("0", "1");
      w.ucx.cut("1", "0");
      w.send(0, 1, flying);
      w.run(1ms);
      w.at(sees).fabric(fabric_kind::shm).drop(id_of(1 - sees));
      w.run(1ms);
      w.send(0, 1, granted);
      w.run(20ms);
      for (const auto* x : {&granted, &flying}) {
        x->check();
        BOOST_TEST(!x->sent);
        BOOST_TEST(!x->received);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_has_it_all_says_so_again) {
  world w(2);
  w.connect_all();
  auto& x = w.make({1, 1, 1}, 100);
  w.expect(1, 0, x);
  w.run(1ms);
  w.ucx.cut("1", "0"); // the answer is lost
  w.send(0, 1, x);
  w.run(1ms);
  BOOST_TEST(x.receives == 1);
  BOOST_TEST(x.sends == 0);
  w.at(0).fabric(fabric_kind::shm).drop(id_of(1));
  w.run(1ms);
  x.check();
  BOOST_TEST(!x.sent);
}

// The receiver's fabric is up and the sender's is not: a grant waits for it a
// while, then the other fabric is asked for.
BOOST_AUTO_TEST_CASE(a_fabric_that_comes_up_on_one_side_only_is_given_up) {
  world w(2);
  w.connect_all();
  w.at(0).links().peer_down(fabric_kind::shm, id_of(1)); // as its node sees it
  auto& x = w.make({1, 1, 1}, 100);
  w.expect(1, 0, x);
  w.send(0, 1, x);
  w.run(500us);
  BOOST_TEST(x.sends == 0);
  w.run(10ms);
  x.check();
  BOOST_TEST(!x.sent);
  BOOST_TEST(fabric_used(w.at(1)) == "tls");
}

BOOST_AUTO_TEST_CASE(a_corrupt_transfer_is_granted_again_a_few_times) {
  world w(2, 5, {.corrupt = 0.3});
  w.connect_all();
  int whole = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    auto& x = w.make({1, 1, i}, 10);
    w.expect(1, 0, x);
    w.send(0, 1, x);
  }
  w.run(20ms);
  for (const auto& x : w.exchanges) {
    x.check();
    whole += !x.sent;
    BOOST_TEST((!x.received || x.received == errc::corrupt));
  }
  BOOST_TEST(whole >= 190);
  BOOST_TEST(whole < 200);
}

BOOST_AUTO_TEST_CASE(sizes_that_differ_are_reported_to_both) {
  world w(2);
  w.connect_all();
  auto& a = w.make({1, 1, 1}, 100);
  auto& b = w.make({1, 1, 1}, 99);
  w.expect(1, 0, a);
  w.send(0, 1, b);
  w.run(1ms);
  BOOST_TEST((a.received == errc::size_mismatch));
  BOOST_TEST((b.sent == errc::size_mismatch));
}

BOOST_AUTO_TEST_CASE(the_same_tag_twice_is_refused) {
  world w(2);
  auto& a = w.make({1, 1, 1}, 1);
  auto& b = w.make({1, 1, 1}, 1);
  for (auto* x : {&a, &b}) {
    w.expect(1, 0, *x);
    w.send(0, 1, *x);
  }
  BOOST_TEST((b.received == std::errc::invalid_argument));
  BOOST_TEST((b.sent == std::errc::invalid_argument));
  w.connect_all();
  a.check();
  BOOST_TEST(!a.received);
}

BOOST_AUTO_TEST_CASE(a_full_fabric_only_delays) {
  transport::limits tight;
  tight.bulk_sends = 3;
  tight.receives = 4;
  tight.messages = 2;
  world w(2, 1, {.delay_min = 1us, .delay_max = 50us}, tight);
  w.connect_all();
  for (std::uint32_t i = 0; i < 300; ++i) {
    auto& x = w.make({1, 1, i}, 100 + i);
    w.expect(1, 0, x);
    w.send(0, 1, x);
  }
  w.run(100ms);
  for (const auto& x : w.exchanges) {
    x.check();
    BOOST_TEST(!x.sent);
  }
}

BOOST_AUTO_TEST_CASE(credits_of_a_cancelled_plan_are_dropped_until_used_again) {
  world w(2);
  w.connect_all();
  auto& a = w.make({1, 1, 1}, 10);
  auto& b = w.make({1, 1, 1}, 10);
  w.at(0).links().cancel(1);
  w.expect(1, 0, a); // its grant is dropped over there
  w.run(1ms);
  w.at(1).links().cancel(1);
  w.run(1ms);
  BOOST_TEST((a.received == errc::canceled));
  w.send(0, 1, b);
  w.expect(1, 0, b);
  w.run(1ms);
  b.check();
  BOOST_TEST(!b.sent);
}

namespace {

struct trouble {
  bool ucx = false;    ///< drops, cuts and reconnects
  bool tls = false;    ///< the same, so that peers are lost
  bool cancel = false; ///< plans come and go
};

/// Random transfers between three nodes while `t` happens; then peace, and
/// all plans are cancelled.
void random_history(std::uint64_t seed, trouble t) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  transport::limits tight;
  tight.bulk_sends = 4;
  tight.receives = 6;
  world w(3, seed, {.delay_min = 1us, .delay_max = 120us, .corrupt = 0.002},
          tight);
  w.connect_all();
  std::vector<std::function<void()>> later;
  std::uint64_t plan = 1;
  for (int round = 0; round < 150; ++round) {
    for (auto n = below(4); n > 0; --n) {
      const auto from = below(3), to = below(3);
      auto& x = w.make({plan, static_cast<std::uint32_t>(below(5)),
                        static_cast<std::uint32_t>(w.exchanges.size())},
                       below(3000));
      later.push_back([&w, &x, from, to] { w.expect(to, from, x); });
      later.push_back([&w, &x, from, to] { w.send(from, to, x); });
    }
    std::shuffle(later.begin(), later.end(), random);
    for (auto n = below(8); n > 0 && !later.empty(); --n) {
      later.back()();
      later.pop_back();
    }
    if (t.cancel && below(30) == 0) {
      for (std::size_t i = 0; i < 3; ++i)
        later.push_back([&w, i, plan] { w.at(i).links().cancel(plan); });
      ++plan;
    }
    for (const auto kind : {fabric_kind::shm, fabric_kind::tls}) {
      if (!(kind == fabric_kind::shm ? t.ucx : t.tls) || below(8) != 0)
        continue;
      auto& net = kind == fabric_kind::shm ? w.ucx : w.tls;
      const auto a = below(3), b = (a + 1 + below(2)) % 3;
      if (kind == fabric_kind::shm && below(2) == 0) {
        net.cut(std::to_string(a), std::to_string(b));
        net.cut(std::to_string(b), std::to_string(a));
      }
      w.at(a).fabric(kind).drop(id_of(b));
      later.push_back([&w, &net, kind, a, b] {
        net.heal_all();
        w.at(a).fabric(kind).connect(std::to_string(b));
      });
    }
    w.run(std::chrono::microseconds(below(200)));
  }
  for (const auto& step : later)
    step();
  w.tls.heal_all();
  w.ucx.heal_all();
  w.connect_all();
  w.run(60ms);
  if (!t.tls && !t.cancel)
    for (const auto& x : w.exchanges) {
      BOOST_TEST(!x.received, x.received.message() << " " << x.receives);
      BOOST_TEST(!x.sent, x.sent.message() << " " << x.sends);
    }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::uint64_t p = 1; p <= plan; ++p)
      w.at(i).links().cancel(p);
  w.run(5ms);
  for (const auto& x : w.exchanges)
    x.check();
}

} // namespace

BOOST_AUTO_TEST_CASE(without_the_fast_fabric_everything_still_arrives) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      random_history(seed, {.ucx = true});
    }
}

BOOST_AUTO_TEST_CASE(every_transfer_ends_once_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      random_history(seed, {seed % 2 == 0, true, seed % 3 != 0});
    }
}

BOOST_AUTO_TEST_CASE(threads_and_progress_threads_may_call_at_once) {
  constexpr std::uint32_t count = 400;
  struct shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t ends = 0;
    std::size_t failures = 0;
  } all;
  std::deque<exchange> exchanges;
  loopback::network tls, ucx;
  std::vector<std::unique_ptr<host>> hosts;
  for (std::size_t i = 0; i < 3; ++i)
    hosts.push_back(std::make_unique<host>(i, tls, ucx));
  for (const auto kind : {fabric_kind::tls, fabric_kind::shm})
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = 0; b < a; ++b)
        hosts[a]->fabric(kind).connect(std::to_string(b));
  for (std::uint32_t i = 0; i < 3 * count; ++i)
    exchanges.emplace_back(bulk_tag{1, i % 3, i}, 1000 + i, i);
  const auto ended = [&all](std::error_code result) {
    std::lock_guard lock(all.mutex);
    ++all.ends;
    all.failures += static_cast<bool>(result);
    all.changed.notify_all();
  };
  std::vector<std::thread> threads;
  for (std::uint32_t me = 0; me < 3; ++me)
    threads.emplace_back([&, me] {
      for (std::uint32_t i = 0; i < 3 * count; ++i) {
        auto& x = exchanges[i];
        const auto from = i % 3, to = (i / 3) % 3;
        if (from == me)
          hosts[me]->links().send(id_of(to), x.tag, x.out(),
                                  [&, ended](std::error_code e) {
                                    x.on_sent()(e);
                                    ended(e);
                                  });
        if (to == me)
          hosts[me]->links().expect(id_of(from), x.tag, x.into(),
                                    [&, ended](std::error_code e) {
                                      x.on_received()(e);
                                      ended(e);
                                    });
      }
    });
  for (auto& t : threads)
    t.join();
  {
    std::unique_lock lock(all.mutex);
    const bool finished =
      all.changed.wait_for(lock, 60s, [&] { return all.ends == 6 * count; });
    BOOST_TEST(finished);
    BOOST_TEST(all.failures == 0u);
  }
  hosts.clear();
  for (const auto& x : exchanges)
    x.check();
}

BOOST_AUTO_TEST_SUITE_END()
