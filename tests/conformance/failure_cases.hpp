// tests/conformance/failure_cases.hpp -- the part of cases.hpp about failures.
//
// Not a header of its own: cases.hpp includes it.

// Failures need not be transitive: 0 and 1 lose each other in the middle of
// transfers, and 2 has both all the while.
BOOST_AUTO_TEST_CASE(a_cut_between_two_leaves_both_with_the_third) {
  constexpr std::size_t size = 8u << 20;
  std::deque<outcome> cut, kept;
  std::deque<std::vector<std::byte>> memory;
  peers g(3);
  const auto move = [&](std::size_t from, std::size_t to,
                        std::deque<outcome>& list) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const bulk_tag tag{1, static_cast<std::uint32_t>(10 * from + to), i};
      memory.emplace_back(size);
      BOOST_REQUIRE(!g.at(to).post_receive(g.id(from), tag, memory.back(),
                                           list.emplace_back(g.notes).done()));
      memory.push_back(pattern(size, i));
      BOOST_REQUIRE(!g.at(from).send_bulk(g.id(to), tag, memory.back(),
                                          list.emplace_back(g.notes).done()));
    }
  };
  move(0, 1, cut);
  move(1, 0, cut);
  for (const std::size_t i : {0u, 1u}) {
    move(i, 2, kept);
    move(2, i, kept);
  }
  g.at(0).drop(g.id(1));
  g.at(1).drop(g.id(0));
  BOOST_REQUIRE((g.is_down(0, 1) && g.is_down(1, 0)));
  for (auto& one : cut) {
    BOOST_REQUIRE(one.wait());
    BOOST_TEST((!one.result || one.result == errc::peer_lost));
  }
  for (auto& one : kept) {
    BOOST_REQUIRE(one.wait());
    BOOST_TEST(!one.result);
  }
  for (const std::size_t i : {0u, 1u}) {
    BOOST_TEST(!g.at(i).send(g.id(2), as_bytes("here")));
    BOOST_TEST(g.at(i).send(g.id(1 - i), as_bytes("here")) == errc::peer_lost);
    BOOST_TEST(g.heard(i).downs[g.id(2)] == 0);
  }
  BOOST_TEST(g.notes.wait([&] { return g.heard(2).received == 2; }));
  BOOST_TEST(g.heard(2).downs.empty());
  g.at(0).connect(g.at(1).local_address());
  BOOST_REQUIRE(g.notes.wait([&] {
    return g.heard(0).ups[g.id(1)] == 2 && g.heard(1).ups[g.id(0)] == 2;
  }));
  g.exchange(0, 1, {2, 0, 0}, 100000);
  for (auto* list : {&cut, &kept})
    for (auto& one : *list)
      BOOST_TEST(one.runs == 1);
}

// Posts, sends, cancels, drops and new connections in any order: if a call
// returned no error, its completion runs once.
BOOST_AUTO_TEST_CASE(completions_run_once_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= (long_run() ? 100u : 4u); ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      limits queue;
      queue.bulk_sends = 16;
      queue.receives = 32;
      std::deque<std::vector<std::byte>> memory;
      std::deque<outcome> accepted;
      {
        peers g(3, queue);
        for (int step = 0; step < 400; ++step) {
          const std::size_t a = random() % 3, b = (a + 1 + random() % 2) % 3;
          const bulk_tag tag{1 + random() % 3, 0,
                             static_cast<std::uint32_t>(random() % 8)};
          const auto what = random() % 100;
          const std::size_t size = random() % 4 == 0 ? 1u << 20 : 1000;
          if (what < 90) {
            outcome& mine = accepted.emplace_back(g.notes);
            auto& bytes = memory.emplace_back(size);
            const auto error =
              what < 45 ? g.at(a).post_receive(g.id(b), tag, bytes, mine.done())
                        : g.at(a).send_bulk(g.id(b), tag, bytes, mine.done());
            if (error) {
              BOOST_TEST(
                (error == errc::would_block || error == errc::peer_lost));
              BOOST_TEST(mine.runs == 0);
              accepted.pop_back();
            }
          } else if (what < 95) {
            g.at(a).cancel(tag.plan);
          } else if (what < 97) {
            g.at(a).drop(g.id(b));
          } else {
            g.at(a).connect(g.at(b).local_address());
          }
        }
        for (std::size_t i = 0; i < 3; ++i)
          g.at(i).close();
        // close() has run all of them: none comes afterwards.
        for (auto& one : accepted)
          BOOST_REQUIRE(one.runs == 1);
      }
    }
  }
}

// A receiver that does not progress: data that it cannot take stays with the
// sender, within bounds, and arrives in the end.
BOOST_AUTO_TEST_CASE(bulk_pushes_back_and_loses_nothing) {
  limits queue;
  queue.bulk_sends = 8;
  peers g(2, queue);
  std::mutex gate;
  gate.lock();
  bool stands = false;
  g.heard(1).on_message = [&](const peer_id&, std::span<const std::byte>) {
    g.notes.post([&] { stands = true; });
    gate.lock();
  };
  constexpr std::uint32_t count = 20;
  std::deque<outcome> in, out;
  std::vector<std::vector<std::byte>> got(count,
                                          std::vector<std::byte>(500000));
  const auto sent = pattern(got[0].size(), 6);
  for (std::uint32_t i = 0; i < count; ++i)
    BOOST_REQUIRE(!g.at(1).post_receive(g.id(0), {1, 1, i}, got[i],
                                        in.emplace_back(g.notes).done()));
  BOOST_REQUIRE(!g.at(0).send(g.id(1), as_bytes("stand still")));
  BOOST_REQUIRE(g.notes.wait([&] { return stands; }));
  std::uint32_t next = 0;
  const auto send_some = [&] {
    for (; next < count; ++next) {
      outcome& mine = out.emplace_back(g.notes);
      const auto error =
        g.at(0).send_bulk(g.id(1), {1, 1, next}, sent, mine.done());
      if (!error)
        continue;
      out.pop_back();
      BOOST_TEST(error == errc::would_block);
      return;
    }
  };
  send_some();
  BOOST_TEST(next == queue.bulk_sends);
  gate.unlock();
  while (next < count) {
    const auto waits = next - static_cast<std::uint32_t>(queue.bulk_sends);
    BOOST_REQUIRE(out[waits].wait());
    send_some();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE((in[i].wait() && out[i].wait()));
    BOOST_TEST((!in[i].result && !out[i].result));
    BOOST_TEST((got[i] == sent));
  }
}
