// tests/runtime/core/training/stall_watch_test.cpp -- finds the peer that
// stalls a job, by seed.
#include "runtime/core/training/stall_watch.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <queue>
#include <random>
#include <set>

BOOST_AUTO_TEST_SUITE(watch_for_stalls)

using namespace shoal::core;

namespace {

constexpr nanoseconds ms = 1'000'000;
constexpr nanoseconds second = 1000 * ms;

peer_id peer(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  return id;
}

/// Some peers of one job, their watches, and messages that take a while.
struct company {
  struct member {
    explicit member(std::uint8_t n) : watch(peer(n)) {}
    stall_watch watch;
    stall_watch::sight sees;
    bool silent = false;
    bool moves = true;
    nanoseconds piece_began = -1; ///< of work on the device; -1: none
    nanoseconds disk_began = -1;  ///< likewise, on the disk
    nanoseconds pace = 200 * ms;  ///< between changes
    nanoseconds changed = 0;
    bool asked = false, stalled = false, hung = false;
  };
  struct message {
    nanoseconds at = 0;
    std::uint8_t from = 0, to = 0;
    stall_report report;
    bool operator<(const message& o) const { return at > o.at; }
  };

  company(std::uint8_t count, std::uint64_t seed) : random(seed) {
    for (std::uint8_t n = 0; n < count; ++n)
      members.emplace_back(n);
    for (member& m : members) {
      for (std::uint8_t n = 0; n < count; ++n)
        m.sees.sealers.push_back(peer(n));
      m.sees.header = {1, 77, 5};
      m.sees.active = m.sees.steady = true;
      m.sees.predicted = 100 * ms;
      m.sees.where = "running";
      m.sees.step = 1;
    }
  }

  /// @returns the expelled members, and whether a retry was proposed
  void run(nanoseconds time, nanoseconds every = 200 * ms) {
    for (const nanoseconds end = now + time; now < end; now += every) {
      while (!flying.empty() && flying.top().at <= now) {
        const message m = flying.top();
        flying.pop();
        member& to = members[m.to];
        if (!to.silent)
          carry(m.to,
                to.watch.received(peer(m.from), m.report, look(to), m.at));
      }
      for (std::uint8_t n = 0; n < members.size(); ++n) {
        member& m = members[n];
        if (m.moves && now - m.changed >= m.pace) {
          m.changed = now;
          ++m.sees.mark;
          m.sees.committed += !m.sees.loading;
        }
        if (!m.silent)
          carry(n, m.watch.tick(look(m), now));
      }
    }
  }

  stall_watch::sight look(member& m) {
    m.sees.computing = m.piece_began < 0 ? 0 : now - m.piece_began;
    m.sees.disk = m.disk_began < 0 ? 0 : now - m.disk_began;
    return m.sees;
  }

  void carry(std::uint8_t from, const stall_watch::actions& all) {
    for (const auto& a : all) {
      if (const auto* s = std::get_if<stall_watch::send>(&a))
        flying.push(
          {now + nanoseconds(random() % (50 * ms)), from, s->to[0], s->report});
      else if (const auto* e = std::get_if<stall_watch::expel>(&a))
        expelled.insert(e->peer[0]);
      else if (std::get_if<stall_watch::retry>(&a))
        ++retries;
      else if (std::get_if<stall_watch::stalled>(&a))
        members[from].stalled = true;
      else if (std::get_if<stall_watch::asked>(&a))
        members[from].asked = true;
      else
        members[from].hung = true;
    }
  }

  /// All stop, like peers that wait for one.
  void stop_all() {
    for (member& m : members)
      m.moves = false;
  }

  /// All load, as after the death of all, and stop at it.
  void load_all() {
    for (member& m : members) {
      m.sees.loading = true;
      m.sees.steady = false;
    }
    stop_all();
  }

  bool any_hung() const { return std::ranges::any_of(members, &member::hung); }

  /// The next view: another assignment, if `digest` says so.
  void next(std::uint64_t digest, nanoseconds pace = 200 * ms) {
    for (member& m : members) {
      m.sees.header = {1, digest, digest};
      m.moves = true;
      m.pace = pace;
    }
  }

  std::mt19937_64 random;
  nanoseconds now = 0;
  std::vector<member> members;
  std::priority_queue<message> flying;
  std::set<int> expelled;
  int retries = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_job_that_moves_is_left_alone) {
  company s(5, 1);
  s.run(600 * second);
  BOOST_TEST(s.expelled.empty());
  BOOST_TEST(s.retries == 0);
  BOOST_TEST(!s.members[0].stalled);
}

BOOST_AUTO_TEST_CASE(the_budget_is_what_was_measured) {
  company s(2, 1);
  for (auto& m : s.members)
    m.pace = 2 * second;
  s.run(900 * second);
  BOOST_TEST(s.members[0].watch.budget(s.members[0].sees) == 20 * second);
  for (auto& m : s.members)
    m.pace = 200 * ms; // half an hour later the slow time is forgotten
  s.run(1800 * second);
  BOOST_TEST(s.members[0].watch.budget(s.members[0].sees)
             == stall_watch::budget_min);
}

/// A checkpoint is written meanwhile, say; or the step becomes slower.
BOOST_AUTO_TEST_CASE(a_stall_hardly_lengthens_its_own_budget) {
  company s(3, 1);
  s.run(60 * second);
  s.stop_all();
  s.run(2600 * ms);
  for (auto& m : s.members)
    ++m.sees.mark;
  s.run(7800 * ms);
  BOOST_TEST(!s.members[0].stalled);
  s.run(2 * second);
  BOOST_TEST(s.retries >= 1);
  for (auto& m : s.members)
    ++m.sees.committed; // it was only slow
  s.run(200 * ms);
  BOOST_TEST(s.members[0].watch.budget(s.members[0].sees) >= 26 * second);
}

BOOST_AUTO_TEST_CASE(before_anything_is_measured_the_prediction_counts) {
  stall_watch w(peer(0));
  stall_watch::sight s;
  s.predicted = 7 * second;
  BOOST_TEST(w.budget(s) == 70 * second);
  s.predicted = 1000 * stall_watch::budget_max;
  BOOST_TEST(w.budget(s) == stall_watch::budget_max);
}

BOOST_AUTO_TEST_CASE(a_stage_that_computes_forever_is_expelled) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    company s(std::uint8_t(2 + seed % 6), seed);
    s.run(60 * second);
    s.stop_all();
    const std::uint8_t bad = std::uint8_t(seed % s.members.size());
    s.members[bad].piece_began = s.now;
    s.run(12 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled == std::set<int>{bad});
      BOOST_TEST(s.retries == 0);
      for (auto& m : s.members) {
        BOOST_TEST((m.stalled || m.asked)); // all keep what they know
        BOOST_TEST(!m.hung);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_does_not_answer_is_expelled) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    company s(std::uint8_t(2 + seed % 6), seed);
    s.run(60 * second);
    s.stop_all();
    const std::uint8_t bad = std::uint8_t(seed % s.members.size());
    s.members[bad].silent = true;
    s.run(15 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled == std::set<int>{bad});
      BOOST_TEST(s.retries == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_hears_no_other_blames_none) {
  company s(5, 3);
  s.run(60 * second);
  s.stop_all();
  for (int n = 1; n < 5; ++n)
    s.members[std::size_t(n)].silent = true; // as peer 0 sees it
  s.run(60 * second);
  BOOST_TEST(s.expelled.empty());
}

BOOST_AUTO_TEST_CASE(a_slow_piece_within_its_budget_is_waited_for) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    company s(4, seed);
    s.members[2].pace = 2 * second; // its budget becomes 20 s, theirs is 3 s
    s.run(900 * second);
    s.stop_all();
    s.members[2].piece_began = s.now;
    s.run(15 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled.empty());
      BOOST_TEST(s.retries == 0);
      s.run(20 * second);
      BOOST_TEST(s.expelled == std::set<int>{2});
    }
  }
}

BOOST_AUTO_TEST_CASE(a_lost_transfer_is_retried_then_one_end_is_expelled) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    company s(4, seed);
    s.run(60 * second);
    s.stop_all();
    s.members[1].sees.sending_to = {peer(3)};
    s.run(8 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.retries >= 1);
      BOOST_TEST(s.expelled.empty());
      for (std::uint64_t digest = 100; digest < 103; ++digest) {
        s.next(digest);
        s.run(2 * second); // the same step, and it stops there again
        s.stop_all();
        s.run(8 * second);
      }
      BOOST_TEST(s.expelled == std::set<int>{3}); // the higher end
    }
  }
}

/// Work goes from 0 to 1 and so on; the last one answers 0. What `from` sends its
/// successor does not arrive, so all behind it wait.
void stop_behind(company& s, std::uint8_t from) {
  s.stop_all();
  const auto count = std::uint8_t(s.members.size());
  for (std::uint8_t n = 0; n < count; ++n) {
    stall_watch::sight& sees = s.members[n].sees;
    const bool waits = n == 0 || n > from;
    sees.sending_to.clear();
    if (waits)
      sees.sending_to = {peer(std::uint8_t((n + count - 1) % count))};
    sees.active = waits;
  }
}

company chain(std::uint64_t seed) {
  company s(5, seed);
  for (auto& m : s.members) {
    std::rotate(m.sees.sealers.begin(), m.sees.sealers.begin() + 1,
                m.sees.sealers.end());
    m.sees.chain = true;
    m.sees.steady = false;
    m.sees.step = 0;
    m.sees.period = 1;
  }
  s.run(10 * second);
  return s;
}

BOOST_AUTO_TEST_CASE(in_a_chain_the_first_stuck_link_is_found) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    company s = chain(seed);
    const auto bad = std::uint8_t(seed % 5);
    for (std::uint64_t digest = 100; digest < 103; ++digest) {
      stop_behind(s, bad);
      s.run(5 * second);
      s.next(digest);
      s.run(20 * second); // other work in between, and it happens again
    }
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.retries >= 2);
      BOOST_TEST(s.expelled == std::set<int>{bad});
    }
  }
}

BOOST_AUTO_TEST_CASE(the_end_that_was_at_more_stuck_links_is_expelled) {
  company s = chain(1);
  stop_behind(s, 1); // 2 waits for 1
  s.run(5 * second);
  s.next(100);
  s.run(second);
  stop_behind(s, 2); // 3 waits for 2
  s.run(5 * second);
  s.next(101);
  s.run(second);
  stop_behind(s, 1);
  s.run(5 * second);
  BOOST_TEST(s.expelled == std::set<int>{2});
}

BOOST_AUTO_TEST_CASE(stalls_of_different_periods_are_not_counted_together) {
  company s = chain(1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    stop_behind(s, 1);
    s.run(4 * second);
    s.next(100 + i);
    for (auto& m : s.members)
      ++m.sees.period;
    s.run(second);
  }
  BOOST_TEST(s.retries > 5);
  BOOST_TEST(s.expelled.empty());
}

BOOST_AUTO_TEST_CASE(a_retry_that_helps_is_the_end_of_it) {
  company s(4, 9);
  s.run(60 * second);
  s.stop_all();
  s.members[1].sees.sending_to = {peer(3)};
  s.run(8 * second);
  BOOST_TEST(s.retries >= 1);
  for (int i = 0; i < 20; ++i) { // it helps: another step, and again
    s.next(100 + std::uint64_t(i));
    for (auto& m : s.members)
      ++m.sees.step;
    s.run(60 * second);
    s.stop_all();
    s.run(5 * second);
  }
  BOOST_TEST(s.expelled.empty());
}

BOOST_AUTO_TEST_CASE(work_that_can_not_be_stopped_ends_its_peer) {
  company s(3, 4);
  s.run(60 * second);
  s.next(200);
  s.stop_all();
  s.members[1].sees.halting = true;
  s.members[1].sees.steady = false;
  s.members[1].piece_began = s.now;
  s.run(4 * second); // over its budget, and told to stop
  BOOST_TEST(s.members[1].hung);
  BOOST_TEST(!s.members[0].hung);
  BOOST_TEST(s.expelled.contains(1));
  BOOST_TEST(!s.expelled.contains(0));
}

BOOST_AUTO_TEST_CASE(one_view_after_another_does_not_make_it_look_alive) {
  company s(3, 4);
  s.run(60 * second);
  s.stop_all();
  s.members[1].sees.halting = true;
  for (std::uint64_t digest = 200; digest < 206; ++digest) {
    s.next(digest);
    s.stop_all();
    s.run(2 * second); // never long enough for a verdict of the others
  }
  BOOST_TEST(s.members[1].hung);
  BOOST_TEST(!s.members[0].hung);
}

BOOST_AUTO_TEST_CASE(a_verdict_that_was_not_carried_out_is_found_again) {
  company s(3, 4);
  s.run(60 * second);
  s.stop_all();
  s.members[1].silent = true;
  s.run(10 * second);
  BOOST_TEST(s.expelled == std::set<int>{1});
  s.expelled.clear();
  s.run(10 * second);
  BOOST_TEST(s.expelled == std::set<int>{1});
}

BOOST_AUTO_TEST_CASE(an_idle_peer_is_not_blamed) {
  company s(4, 5);
  s.members[3].sees.active = false; // a keeper that computes nothing
  s.members[3].moves = false;
  s.run(60 * second);
  s.stop_all();
  s.members[0].sees.sending_to = {peer(1)};
  s.run(30 * second);
  BOOST_TEST(!s.expelled.contains(3));
  BOOST_TEST(s.retries > 0);
}

BOOST_AUTO_TEST_CASE(while_it_loads_the_budget_is_of_the_largest_piece) {
  stall_watch w(peer(0));
  stall_watch::sight s;
  s.loading = true;
  BOOST_TEST(w.budget(s) == stall_watch::loading_min);
  s.disk_predicted = stall_watch::piece_time(1'400'000'000, 200'000'000);
  BOOST_TEST(s.disk_predicted == 7 * second);
  BOOST_TEST(w.budget(s) == 70 * second);
  BOOST_TEST(stall_watch::disk_budget(s) == 70 * second);
  s.predicted = 9 * second; // another job is at the device
  BOOST_TEST(w.budget(s) == 90 * second);
  BOOST_TEST(stall_watch::disk_budget(s) == 70 * second);
  BOOST_TEST(stall_watch::piece_time(40'000'000, 0) == 2 * second);
  s.disk_predicted = stall_watch::piece_time(~std::uint64_t{0}, 1);
  BOOST_TEST(w.budget(s) == stall_watch::budget_max);
}

BOOST_AUTO_TEST_CASE(a_loader_is_not_blamed_for_what_it_waits_for) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    company s(std::uint8_t(2 + seed % 6), seed);
    s.load_all();
    s.members[0].sees.sending_to = {peer(1)};
    s.run(600 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.members[0].stalled);
      BOOST_TEST(s.expelled.empty());
      BOOST_TEST(s.retries == 0);
      BOOST_TEST(!s.any_hung());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_hangs_while_all_load_ends_its_peer_alone) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    company s(std::uint8_t(2 + seed % 6), seed);
    s.run(60 * second);
    s.load_all();
    const std::uint8_t bad = std::uint8_t(seed % s.members.size());
    s.members[bad].disk_began = s.now;
    s.run(38 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled.empty());
      BOOST_TEST(!s.any_hung());
      s.run(10 * second);
      BOOST_TEST(s.expelled == std::set<int>{bad});
      BOOST_TEST(s.retries == 0);
      for (std::size_t n = 0; n < s.members.size(); ++n)
        BOOST_TEST(s.members[n].hung == (n == bad));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_hangs_while_all_load_is_expelled) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    company s(std::uint8_t(2 + seed % 6), seed);
    s.load_all();
    const std::uint8_t bad = std::uint8_t(seed % s.members.size());
    s.members[bad].piece_began = s.now;
    s.run(50 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled == std::set<int>{bad});
      BOOST_TEST(s.retries == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_large_piece_is_given_its_time) {
  company s(3, 7);
  s.load_all();
  s.members[1].disk_began = s.now;
  s.members[1].sees.disk_predicted = 12 * second;
  s.run(115 * second);
  BOOST_TEST(s.expelled.empty());
  BOOST_TEST(!s.any_hung());
  s.run(15 * second);
  BOOST_TEST(s.members[1].hung);
  BOOST_TEST(s.expelled == std::set<int>{1});
}

/// Its device reads a unit for minutes, but chunks of blobs still come.
BOOST_AUTO_TEST_CASE(a_loader_that_progresses_is_not_blamed_for_a_long_piece) {
  company s(4, 8);
  s.load_all();
  s.members[2].piece_began = s.now;
  s.members[2].moves = true;
  s.members[2].pace = 5 * second;
  s.run(600 * second);
  BOOST_TEST(s.expelled.empty());
  BOOST_TEST(s.retries == 0);
}

BOOST_AUTO_TEST_CASE(a_peer_that_runs_a_step_waits_for_a_loader) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    company s(4, seed);
    s.run(60 * second);
    s.stop_all();
    s.members[3].sees.sending_to = {peer(1)};
    auto& slow = s.members[seed % 4];
    slow.sees.loading = true;
    slow.moves = true;
    slow.pace = 30 * second;
    s.run(300 * second);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(s.expelled.empty());
      BOOST_TEST(s.retries == 0);
      BOOST_TEST(!s.any_hung());
      slow.moves = false;
      slow.disk_began = s.now;
      s.run(50 * second);
      BOOST_TEST(s.expelled == std::set<int>{int(seed % 4)});
      BOOST_TEST(slow.hung);
      BOOST_TEST(s.retries == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(loading_says_nothing_of_how_long_steps_may_take) {
  company s(2, 1);
  for (auto& m : s.members) {
    m.sees.loading = true;
    m.pace = 35 * second;
  }
  s.run(1800 * second);
  BOOST_TEST(!s.members[0].stalled);
  for (auto& m : s.members) {
    m.sees.loading = false;
    m.pace = 200 * ms;
  }
  s.run(10 * second);
  BOOST_TEST(s.members[0].watch.budget(s.members[0].sees)
             == stall_watch::budget_min);
}

/// No peer waits for the disk's work then.
BOOST_AUTO_TEST_CASE(a_disk_may_hang_while_steps_are_committed) {
  company s(3, 2);
  s.members[1].disk_began = s.now;
  s.run(600 * second);
  BOOST_TEST(!s.any_hung());
  BOOST_TEST(s.expelled.empty());
  // The last checkpoint, say; or others load what it alone holds.
  for (auto& m : s.members)
    m.sees.active = false;
  s.stop_all();
  s.run(38 * second);
  BOOST_TEST(!s.any_hung());
  s.run(5 * second);
  BOOST_TEST(s.members[1].hung);
  BOOST_TEST(!s.members[0].hung);
}

BOOST_AUTO_TEST_CASE(a_silent_peer_is_expelled_while_all_load) {
  company s(4, 6);
  s.load_all();
  s.members[2].silent = true;
  s.run(39 * second);
  BOOST_TEST(s.expelled.empty());
  s.run(6 * second);
  BOOST_TEST(s.expelled == std::set<int>{2});
}

BOOST_AUTO_TEST_CASE(no_peer_is_called_expelled_without_a_view) {
  using watch = shoal::core::stall_watch;
  const watch::expel expel{{}, "it is silent"};
  const watch::retry retry{7, "nothing moves"};
  const watch::hung hung{"its device hangs"};
  BOOST_TEST(to_text(expel, "b", true)
             == "b holds the job up and is expelled: it is silent");
  BOOST_TEST(to_text(retry, true) == "the step is begun anew: nothing moves");
  for (const std::string& text :
       {to_text(expel, "b", false), to_text(retry, false),
        to_text(hung, "b", false)}) {
    BOOST_TEST(text.find("is expelled") == text.npos, text);
    BOOST_TEST(text.find("is begun") == text.npos, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
