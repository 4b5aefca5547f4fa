// tests/conformance/cases.hpp -- the requirements on every fabric.
//
// Not a header of its own: a test file includes it within a suite, after a
// type `factory` with
//   made make(fabric_handler&, limits);   a node that the others can reach
//   std::string unreachable();            an address where nobody is, or empty
// It tests the promises of transport/fabric.hpp and nothing else.

using namespace shoal::transport;
using namespace shoal::transport::conformance;
using peers = group<factory>;

BOOST_AUTO_TEST_CASE(control_messages_arrive_in_order) {
  peers g(2);
  constexpr std::size_t count = 5000;
  const auto size = [](std::size_t i) { return (i * i) % 300; };
  for (std::size_t i = 0; i < count; ++i)
    BOOST_REQUIRE(!push(g.at(0), g.id(1), pattern(size(i), i)));
  BOOST_REQUIRE(g.notes.wait([&] { return g.heard(1).received == count; }));
  auto& got = g.heard(1).messages[g.id(0)];
  for (std::size_t i = 0; i < count; ++i)
    BOOST_REQUIRE((got[i] == pattern(size(i), i)));
}

BOOST_AUTO_TEST_CASE(the_longest_message_passes_and_a_longer_one_is_refused) {
  peers g(2);
  const auto longest = pattern(g.at(0).message_bytes_max(), 7);
  BOOST_REQUIRE(!g.at(0).send(g.id(1), longest));
  BOOST_REQUIRE(g.notes.wait([&] { return g.heard(1).received == 1; }));
  BOOST_TEST((g.heard(1).messages[g.id(0)].front() == longest));
  const auto more = pattern(longest.size() + 1, 7);
  BOOST_TEST(g.at(0).send(g.id(1), more) == errc::too_large);
}

BOOST_AUTO_TEST_CASE(bulk_of_any_size_arrives_unchanged) {
  peers g(2);
  std::vector<std::size_t> sizes{0,      1,      7,        4097,    262143,
                                 262144, 262145, 1u << 20, 999983u, 64u << 20};
  if (long_run())
    sizes.push_back(std::size_t{1} << 30);
  std::uint32_t sequence = 0;
  for (const auto size : sizes)
    BOOST_TEST_CONTEXT("size " << size)
  g.exchange(0, 1, {1, 2, sequence++}, size);
}

BOOST_AUTO_TEST_CASE(bulk_is_matched_by_tag_not_by_order) {
  peers g(2);
  constexpr std::uint32_t count = 50;
  std::vector<std::vector<std::byte>> sent, got;
  std::deque<outcome> in, out;
  for (std::uint32_t i = 0; i < count; ++i) {
    sent.push_back(pattern(1000 + i * 37, i));
    got.emplace_back(sent.back().size());
    in.emplace_back(g.notes);
    out.emplace_back(g.notes);
  }
  for (std::uint32_t i = count; i-- > 0;)
    BOOST_REQUIRE(
      !g.at(1).post_receive(g.id(0), {9, i, 0}, got[i], in[i].done()));
  for (std::uint32_t i = 0; i < count; ++i)
    BOOST_REQUIRE(
      !g.at(0).send_bulk(g.id(1), {9, i, 0}, sent[i], out[i].done()));
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE((in[i].wait() && out[i].wait()));
    BOOST_TEST(!in[i].result);
    BOOST_TEST((sent[i] == got[i]));
  }
}

BOOST_AUTO_TEST_CASE(bulk_without_a_posted_receive_is_reported) {
  peers g(2);
  const auto sent = pattern(1u << 20, 3);
  outcome out(g.notes);
  BOOST_REQUIRE(!g.at(0).send_bulk(g.id(1), {1, 1, 1}, sent, out.done()));
  BOOST_REQUIRE(out.wait());
  BOOST_TEST(out.result == errc::not_posted);
  g.exchange(0, 1, {1, 1, 2}, 5000);
  BOOST_TEST(out.runs == 1);
}

BOOST_AUTO_TEST_CASE(a_difference_in_size_is_reported_to_both) {
  peers g(2);
  for (const std::size_t posted : {99u, 101u, 0u}) {
    const auto sent = pattern(100, 3);
    std::vector<std::byte> got(posted, std::byte{42});
    const auto before = got;
    outcome in(g.notes), out(g.notes);
    const bulk_tag tag{1, 1, static_cast<std::uint32_t>(posted)};
    BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), tag, got, in.done()));
    BOOST_REQUIRE(!g.at(0).send_bulk(g.id(1), tag, sent, out.done()));
    BOOST_REQUIRE((in.wait() && out.wait()));
    BOOST_TEST(in.result == errc::size_mismatch);
    BOOST_TEST(out.result == errc::size_mismatch);
    BOOST_TEST((got == before));
  }
  g.exchange(0, 1, {2, 1, 2}, 5000);
}

BOOST_AUTO_TEST_CASE(cancel_ends_one_plan_and_no_other) {
  peers g(2);
  std::vector<std::byte> memory(4000);
  outcome a(g.notes), b(g.notes), kept(g.notes), out(g.notes);
  BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), {7, 0, 0}, memory, a.done()));
  BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), {7, 9, 9}, memory, b.done()));
  std::vector<std::byte> got(100);
  BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), {8, 0, 0}, got, kept.done()));
  g.at(1).cancel(7);
  BOOST_REQUIRE((a.wait() && b.wait()));
  BOOST_TEST(a.result == errc::canceled);
  BOOST_TEST(b.result == errc::canceled);
  const auto sent = pattern(100, 1);
  BOOST_REQUIRE(!g.at(0).send_bulk(g.id(1), {8, 0, 0}, sent, out.done()));
  BOOST_REQUIRE((kept.wait() && out.wait()));
  BOOST_TEST(!kept.result);
  BOOST_TEST((got == sent));
  outcome late(g.notes);
  BOOST_REQUIRE(!g.at(0).send_bulk(g.id(1), {7, 0, 0}, sent, late.done()));
  BOOST_REQUIRE(late.wait());
  BOOST_TEST(late.result == errc::not_posted);
  BOOST_TEST((a.runs == 1 && b.runs == 1 && kept.runs == 1));
}

// Whichever end cancels in the middle of a transfer, its memory is free at
// once: it is overwritten here, which must have no effect afterwards.
BOOST_AUTO_TEST_CASE(cancel_in_the_middle_frees_the_memory) {
  for (const std::size_t who : {0u, 1u}) {
    peers g(2);
    auto sent = pattern(32u << 20, 5);
    std::vector<std::byte> got(sent.size());
    outcome in(g.notes), out(g.notes);
    BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), {7, 0, 0}, got, in.done()));
    BOOST_REQUIRE(!g.at(0).send_bulk(g.id(1), {7, 0, 0}, sent, out.done()));
    g.at(who).cancel(7);
    auto& mine = who == 0 ? out : in;
    auto& memory = who == 0 ? sent : got;
    BOOST_REQUIRE(mine.wait());
    BOOST_TEST((!mine.result || mine.result == errc::canceled));
    std::fill(memory.begin(), memory.end(), std::byte{0x5a});
    // A sender that cancelled before its first byte left the receiver waiting.
    g.at(1 - who).cancel(7);
    BOOST_REQUIRE((in.wait() && out.wait()));
    g.exchange(0, 1, {8, 0, 0}, 1u << 20);
    g.exchange(1, 0, {8, 0, 0}, 1u << 20);
    if (who == 1)
      BOOST_TEST((std::count(got.begin(), got.end(), std::byte{0x5a})
                  == static_cast<std::ptrdiff_t>(got.size())));
    BOOST_TEST((in.runs == 1 && out.runs == 1));
  }
}

BOOST_AUTO_TEST_CASE(both_directions_move_at_once) {
  peers g(2);
  constexpr std::size_t size = 16u << 20;
  const std::array sent{pattern(size, 1), pattern(size, 2)};
  std::array got{std::vector<std::byte>(size), std::vector<std::byte>(size)};
  std::deque<outcome> in, out;
  for (std::size_t i = 0; i < 2; ++i) {
    in.emplace_back(g.notes);
    out.emplace_back(g.notes);
    BOOST_REQUIRE(
      !g.at(i).post_receive(g.id(1 - i), {1, 1, 1}, got[i], in[i].done()));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_REQUIRE(
      !g.at(i).send_bulk(g.id(1 - i), {1, 1, 1}, sent[i], out[i].done()));
    BOOST_REQUIRE(!g.at(i).send(g.id(1 - i), as_bytes("beside")));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_REQUIRE((in[i].wait() && out[i].wait()));
    BOOST_TEST((!in[i].result && !out[i].result));
    BOOST_TEST((got[i] == sent[1 - i]));
    BOOST_TEST(g.notes.wait([&] { return g.heard(i).received == 1; }));
  }
}

static void all_exchange_with_all(std::size_t count, std::size_t size) {
  peers g(count);
  std::deque<outcome> all;
  std::deque<std::vector<std::byte>> sent, got;
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t j = 0; j < count; ++j) {
      if (i == j)
        continue;
      sent.push_back(pattern(size, i * count + j));
      got.emplace_back(size);
      all.emplace_back(g.notes);
      BOOST_REQUIRE(!g.at(j).post_receive(g.id(i), {1, i, j}, got.back(),
                                          all.back().done()));
      all.emplace_back(g.notes);
      BOOST_REQUIRE(
        !g.at(i).send_bulk(g.id(j), {1, i, j}, sent.back(), all.back().done()));
      BOOST_REQUIRE(!g.at(i).send(g.id(j), as_bytes("hello")));
    }
  for (auto& one : all) {
    BOOST_REQUIRE(one.wait());
    BOOST_TEST(!one.result);
    BOOST_TEST(one.runs == 1);
  }
  BOOST_TEST((sent == got));
  for (std::size_t i = 0; i < count; ++i)
    BOOST_TEST(g.notes.wait([&] { return g.heard(i).received == count - 1; }));
}

BOOST_AUTO_TEST_CASE(four_peers_exchange_with_each_other) {
  all_exchange_with_all(4, 3u << 20);
}

BOOST_AUTO_TEST_CASE(sixteen_peers_exchange_with_each_other) {
  all_exchange_with_all(16, long_run() ? 1u << 20 : 50000);
}

BOOST_AUTO_TEST_CASE(a_peer_that_closes_in_the_middle_ends_every_completion) {
  constexpr std::size_t size = 16u << 20, count = 6;
  std::deque<outcome> in, out, idle;
  std::deque<std::vector<std::byte>> sent, got;
  peers g(3);
  for (std::uint32_t i = 0; i < count; ++i) {
    sent.push_back(pattern(size, i));
    got.emplace_back(size);
    in.emplace_back(g.notes);
    out.emplace_back(g.notes);
    idle.emplace_back(g.notes);
    BOOST_REQUIRE(
      !g.at(1).post_receive(g.id(0), {1, 1, i}, got[i], in[i].done()));
    BOOST_REQUIRE(
      !g.at(0).post_receive(g.id(1), {2, 1, i}, got[i], idle[i].done()));
    BOOST_REQUIRE(
      !g.at(0).send_bulk(g.id(1), {1, 1, i}, sent[i], out[i].done()));
  }
  g.at(1).close();
  for (std::uint32_t i = 0; i < count; ++i)
    BOOST_TEST(in[i].runs == 1); // close() has run them
  BOOST_REQUIRE(g.is_down(0, 1));
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE((out[i].wait() && idle[i].wait()));
    BOOST_TEST((!out[i].result || out[i].result == errc::peer_lost));
    BOOST_TEST(idle[i].result == errc::peer_lost);
  }
  BOOST_TEST(g.at(0).send(g.id(1), as_bytes("x")) == errc::peer_lost);
  g.exchange(0, 2, {3, 0, 0}, 100000); // the third is not affected
  BOOST_TEST(g.heard(0).downs[g.id(1)] == 1);
  BOOST_TEST(g.heard(0).downs[g.id(2)] == 0);
  for (std::uint32_t i = 0; i < count; ++i)
    BOOST_TEST((out[i].runs == 1 && idle[i].runs == 1 && in[i].runs == 1));
}

BOOST_AUTO_TEST_CASE(a_full_queue_pushes_back_and_loses_nothing) {
  limits queue;
  queue.messages = 64;
  peers g(2, queue);
  std::mutex gate;
  gate.lock();
  bool first = true;
  g.heard(1).on_message = [&](const peer_id&, std::span<const std::byte>) {
    if (first)
      gate.lock(); // a receiver that is too slow
    first = false;
  };
  const auto message = pattern(64 << 10, 1);
  std::size_t accepted = 0;
  std::error_code error;
  while (!(error = g.at(0).send(g.id(1), message)) && accepted < 100000)
    ++accepted;
  BOOST_TEST(error == errc::would_block);
  BOOST_TEST(accepted >= queue.messages);
  gate.unlock();
  BOOST_REQUIRE(g.notes.wait([&] { return g.heard(1).received == accepted; }));
  BOOST_REQUIRE(!push(g.at(0), g.id(1), message));
  BOOST_TEST(g.notes.wait([&] { return g.heard(1).received == accepted + 1; }));
}

BOOST_AUTO_TEST_CASE(posted_receives_and_bulk_sends_have_a_limit) {
  limits queue;
  queue.receives = 8;
  queue.bulk_sends = 8;
  peers g(2, queue);
  std::vector<std::byte> memory(10);
  std::deque<outcome> posted;
  for (std::uint32_t i = 0; i < 8; ++i) {
    posted.emplace_back(g.notes);
    BOOST_REQUIRE(
      !g.at(0).post_receive(g.id(1), {1, 0, i}, memory, posted.back().done()));
  }
  outcome extra(g.notes);
  BOOST_TEST(g.at(0).post_receive(g.id(1), {1, 0, 9}, memory, extra.done())
             == errc::would_block);
  g.at(0).cancel(1);
  for (auto& one : posted)
    BOOST_REQUIRE(one.wait());
  BOOST_TEST(extra.runs == 0);
  g.exchange(1, 0, {2, 0, 0}, 10);
}

BOOST_AUTO_TEST_CASE(two_threads_may_use_one_fabric) {
  peers g(2);
  constexpr std::uint32_t count = 400;
  constexpr std::size_t size = 20000;
  std::deque<outcome> all;
  std::vector<std::vector<std::byte>> got(2 * count);
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    got[i].resize(size);
    all.emplace_back(g.notes);
    BOOST_REQUIRE(
      !g.at(1).post_receive(g.id(0), {1, 0, i}, got[i], all[i].done()));
  }
  std::deque<outcome> out;
  for (std::uint32_t i = 0; i < 2 * count; ++i)
    out.emplace_back(g.notes);
  const auto sent = pattern(size, 4);
  std::array<int, 2> errors{};
  const auto work = [&](std::uint32_t who) {
    for (std::uint32_t i = who * count; i < (who + 1) * count; ++i) {
      std::error_code error;
      while (
        (error = g.at(0).send_bulk(g.id(1), {1, 0, i}, sent, out[i].done()))
        == errc::would_block)
        std::this_thread::yield();
      if (error || push(g.at(0), g.id(1), pattern(9, i)))
        ++errors[who];
    }
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  BOOST_TEST((errors == std::array<int, 2>{}));
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    BOOST_REQUIRE((all[i].wait() && out[i].wait()));
    BOOST_REQUIRE((!all[i].result && !out[i].result));
    BOOST_REQUIRE((got[i] == sent));
  }
  BOOST_TEST(g.notes.wait([&] { return g.heard(1).received == 2 * count; }));
}

BOOST_AUTO_TEST_CASE(dialling_twice_and_from_both_ends_is_one_up) {
  peers g(2, {}, false);
  for (int i = 0; i < 3; ++i) {
    g.at(0).connect(g.at(1).local_address());
    g.at(1).connect(g.at(0).local_address());
  }
  BOOST_REQUIRE((g.is_up(0, 1) && g.is_up(1, 0)));
  g.exchange(0, 1, {1, 0, 0}, 1000);
  g.exchange(1, 0, {1, 0, 0}, 1000);
  g.at(0).connect(g.at(1).local_address());
  g.at(1).connect(g.at(0).local_address());
  g.exchange(0, 1, {1, 0, 1}, 3u << 20);
  g.exchange(1, 0, {1, 0, 1}, 3u << 20);
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_TEST(g.heard(i).ups[g.id(1 - i)] == 1);
    BOOST_TEST(g.heard(i).downs[g.id(1 - i)] == 0);
    BOOST_TEST(g.heard(i).failed.empty());
  }
}

BOOST_AUTO_TEST_CASE(an_address_without_anybody_fails) {
  peers g(1);
  const auto address = g.factory.unreachable();
  if (address.empty())
    return;
  g.at(0).connect(address);
  BOOST_REQUIRE(g.notes.wait([&] { return !g.heard(0).failed.empty(); }));
  BOOST_TEST(g.heard(0).failed.front().first == address);
  BOOST_TEST(g.heard(0).failed.front().second == errc::unreachable);
}

BOOST_AUTO_TEST_CASE(a_node_that_dials_itself_learns_it) {
  peers g(1);
  const auto address = g.at(0).local_address();
  g.at(0).connect(address);
  BOOST_REQUIRE(g.notes.wait([&] { return !g.heard(0).failed.empty(); }));
  BOOST_TEST(g.heard(0).failed.front().first == address);
  BOOST_TEST(g.heard(0).failed.front().second == errc::self);
  BOOST_TEST(g.heard(0).ups.empty());
}

BOOST_AUTO_TEST_CASE(a_dropped_peer_is_down_at_both_and_may_come_again) {
  peers g(2);
  outcome waiting(g.notes);
  std::vector<std::byte> memory(10);
  BOOST_REQUIRE(
    !g.at(0).post_receive(g.id(1), {1, 0, 0}, memory, waiting.done()));
  g.at(0).drop(g.id(1));
  BOOST_REQUIRE((g.is_down(0, 1) && g.is_down(1, 0)));
  BOOST_TEST(waiting.runs == 1);
  BOOST_TEST(waiting.result == errc::peer_lost);
  g.at(0).connect(g.at(1).local_address());
  BOOST_REQUIRE(g.notes.wait([&] {
    return g.heard(0).ups[g.id(1)] == 2 && g.heard(1).ups[g.id(0)] == 2;
  }));
  g.exchange(0, 1, {1, 0, 1}, 1000);
  BOOST_TEST(g.heard(0).order == "udu");
  BOOST_TEST(g.heard(1).order == "udu");
}

BOOST_AUTO_TEST_CASE(an_unknown_peer_is_lost) {
  peers g(1);
  outcome never(g.notes);
  std::vector<std::byte> memory(10);
  const peer_id nobody{1, 2, 3};
  BOOST_TEST(g.at(0).send(nobody, memory) == errc::peer_lost);
  BOOST_TEST(g.at(0).post_receive(nobody, {}, memory, never.done())
             == errc::peer_lost);
  BOOST_TEST(g.at(0).send_bulk(nobody, {}, memory, never.done())
             == errc::peer_lost);
  g.at(0).drop(nobody);
  g.at(0).cancel(3);
  g.at(0).close();
  BOOST_TEST(never.runs == 0);
}

BOOST_AUTO_TEST_CASE(a_handler_may_answer_from_within) {
  peers g(2);
  constexpr std::size_t count = 200;
  for (std::size_t i = 0; i < 2; ++i)
    g.heard(i).on_message = [&g, i](const peer_id& from,
                                    std::span<const std::byte> bytes) {
      if (bytes.size() < count)
        (void)g.at(i).send(from, pattern(bytes.size() + 1, 0));
    };
  BOOST_REQUIRE(!g.at(0).send(g.id(1), pattern(1, 0)));
  BOOST_TEST(g.notes.wait(
    [&] { return g.heard(0).received + g.heard(1).received == count; }));
}

BOOST_AUTO_TEST_CASE(traffic_is_counted) {
  peers g(2);
  BOOST_REQUIRE(!g.at(0).send(g.id(1), pattern(1000, 0)));
  g.exchange(0, 1, {1, 1, 1}, 100000);
  BOOST_TEST(g.at(0).traffic_with(g.id(1)).sent_bytes >= 101000);
  BOOST_TEST(g.at(1).traffic_with(g.id(0)).received_bytes >= 101000);
  BOOST_TEST(g.at(0).traffic_with(g.id(0)).sent_bytes == 0);
}

BOOST_AUTO_TEST_CASE(after_close_everything_answers_canceled) {
  peers g(2);
  outcome waiting(g.notes), never(g.notes);
  std::vector<std::byte> memory(10);
  BOOST_REQUIRE(
    !g.at(0).post_receive(g.id(1), {1, 0, 0}, memory, waiting.done()));
  g.at(0).close();
  g.at(0).close();
  BOOST_TEST(waiting.runs == 1);
  BOOST_TEST(
    (waiting.result == errc::canceled || waiting.result == errc::peer_lost));
  BOOST_TEST(g.heard(0).downs[g.id(1)] == 1);
  BOOST_TEST(g.at(0).send(g.id(1), memory) == errc::canceled);
  BOOST_TEST(g.at(0).send_bulk(g.id(1), {}, memory, never.done())
             == errc::canceled);
  BOOST_TEST(g.at(0).post_receive(g.id(1), {}, memory, never.done())
             == errc::canceled);
  g.at(0).connect("nowhere");
  g.at(0).drop(g.id(1));
  g.at(0).cancel(1);
  BOOST_TEST(never.runs == 0);
}

BOOST_AUTO_TEST_CASE(opening_and_closing_leaves_nothing_behind) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd)
      count += fcntl(fd, F_GETFD) != -1;
    return count;
  };
  { peers warm_up(2); }
  const int before = open_files();
  // A leaked descriptor would show after the first round.
  for (int i = 0; i < (long_run() ? 10000 : emulated() ? 8 : 25); ++i) {
    peers g(2);
    BOOST_REQUIRE(!g.at(i % 2).send(g.id(1 - i % 2), as_bytes("hello")));
  }
  BOOST_TEST(open_files() <= before);
}

#include "tests/conformance/failure_cases.hpp"
