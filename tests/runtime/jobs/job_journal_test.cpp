// tests/runtime/jobs/job_journal_test.cpp -- each event once, and again
// after a restart.
#include "runtime/jobs/event_json.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/jobs/job_lines.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <fstream>
#include <thread>

BOOST_AUTO_TEST_SUITE(journal)

using namespace shoal::runtime;
using namespace std::chrono_literals;
using kind = job_event_kind;

namespace {

job_event step(std::uint64_t number, double loss = 1.5) {
  job_event e;
  e.kind = kind::step;
  e.step = number;
  e.loss = loss;
  e.tokens = 100 * number;
  e.unix_ms = 1700000000000 + static_cast<std::int64_t>(number);
  return e;
}

job_event event(kind k, std::uint64_t step, std::uint64_t epoch,
                const std::string& text) {
  job_event e;
  e.kind = k;
  e.step = step;
  e.epoch = epoch;
  e.text = text;
  return e;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_event_that_comes_twice_is_kept_once) {
  const auto j = open_job_journal({});
  for (int twice = 0; twice < 2; ++twice) {
    j->add(7, step(1));
    j->add(7, event(kind::eval, 1, 0, ""));
    j->add(7, event(kind::view, 0, 3, "2 x 2"));
    j->add(7, event(kind::view, 0, 4, "2 x 2"));
    j->add(7, event(kind::notice, 1, 0, "slow disk"));
    j->add(7, event(kind::notice, 1, 0, "slow link"));
    j->add(7, event(kind::done, 9, 0, "finished"));
    j->add(7, step(2)); // nothing follows the end
  }
  BOOST_TEST(j->read_all(7).size() == 7u);
  BOOST_TEST(j->ended(7));
  std::uint64_t next = 0;
  BOOST_TEST(j->read(7, 5, next).size() == 2u);
  BOOST_TEST(next == 7u);
  BOOST_TEST(j->read(7, 99, next).empty());
  BOOST_TEST(j->read(8, 3, next).empty());
  BOOST_TEST(next == 3u);
}

BOOST_AUTO_TEST_CASE(an_end_has_the_loss_of_its_step_if_it_is_known) {
  const auto j = open_job_journal({});
  j->add(7, step(4, 2.5));
  j->add(7, event(kind::done, 4, 5, "done"));
  BOOST_TEST(j->read_all(7).back().loss == 2.5);
  j->add(8, event(kind::done, 4, 5, "done")); // a node that came later
  BOOST_TEST(std::isnan(j->read_all(8).back().loss));
}

/// The job ended in one half of a shoal, which then joined the other.
BOOST_AUTO_TEST_CASE(an_end_is_dropped_if_a_later_view_goes_on) {
  shoal::test::folder f;
  for (int again = 0; again < 2; ++again) {
    const auto j = open_job_journal(f.path);
    if (again == 0) {
      j->add(7, step(1));
      j->add(7, event(kind::done, 1, 5, "cancelled"));
      j->add(7, event(kind::view, 0, 4, "one half")); // late
      BOOST_TEST(j->ended(7));
      j->add(7, event(kind::view, 0, 9, "all"));
      BOOST_TEST(!j->ended(7));
      j->add(7, step(2));
    }
    BOOST_TEST(!j->ended(7));
    BOOST_TEST(j->read_all(7).size() == 3u);
    BOOST_TEST(j->last_step(7)->step == 2u);
    if (again == 0)
      continue;
    j->add(7, event(kind::done, 2, 10, "done"));
    BOOST_TEST(j->ended(7));
    BOOST_TEST(j->read_all(7).back().text == "done");
  }
}

/// Both halves of a shoal had ended the job. Views list ends again and again.
BOOST_AUTO_TEST_CASE(a_job_has_the_end_of_the_latest_view) {
  shoal::test::folder f;
  for (int again = 0; again < 2; ++again) {
    const auto j = open_job_journal(f.path);
    if (again == 0) {
      j->add(7, step(1));
      j->add(7, event(kind::done, 1, 5, "cancelled"));
      j->add(7, event(kind::done, 1, 6, "cancelled"));
      j->add(7, event(kind::done, 4, 9, "cancelled"));
      j->add(7, event(kind::done, 1, 8, "cancelled")); // late
      j->add(7, event(kind::done, 4, 10, "cancelled"));
    }
    BOOST_TEST(j->ended(7));
    const auto all = j->read_all(7);
    BOOST_TEST_REQUIRE(all.size() == 2u);
    BOOST_TEST(all.back().step == 4u);
    BOOST_TEST(all.back().epoch == 9u);
  }
}

// A step that the command had disturbed stood for the whole run.
BOOST_AUTO_TEST_CASE(the_pace_is_that_of_some_seconds) {
  const auto j = open_job_journal({});
  BOOST_TEST(j->tokens_per_s(7) == 0.0);
  std::uint64_t n = 0;
  const auto add = [&](int steps, double tokens_per_s) {
    for (int i = 0; i < steps; ++i) {
      job_event e = step(++n); // of 100 tokens
      e.tokens_per_s = tokens_per_s;
      j->add(7, e);
    }
  };
  add(1, 50);
  BOOST_TEST(j->tokens_per_s(7) == 50.0, boost::test_tools::tolerance(1e-9));
  add(200, 1000); // 20 s
  BOOST_TEST(j->tokens_per_s(7) == 1000.0, boost::test_tools::tolerance(1e-9));
  add(1, 500);
  BOOST_TEST(j->tokens_per_s(7) > 950.0);
  BOOST_TEST(j->tokens_per_s(7) < 1000.0);
}

BOOST_AUTO_TEST_CASE(the_newest_checkpoint_is_known) {
  const auto j = open_job_journal({});
  BOOST_TEST(!j->last_checkpoint(7).has_value());
  j->add(7, event(kind::checkpoint, 4, 1, ""));
  j->add(7, event(kind::checkpoint, 8, 1, ""));
  j->add(7, step(9));
  BOOST_TEST(j->last_checkpoint(7)->step == 8u);
}

/// Its end is no event: a served model waited for it for ever.
BOOST_AUTO_TEST_CASE(a_lost_quorum_is_nothing_that_a_job_itself_waits_for) {
  const auto j = open_job_journal({});
  const auto waits = [&](const std::string& text) {
    job_event e = event(kind::notice, 0, 1, text);
    e.waits = true;
    j->add(7, e);
  };
  waits("no quorum for view 24: cannot reach b");
  BOOST_TEST(!j->awaited(7).has_value());
  BOOST_TEST(j->read_all(7).size() == 1u);
  waits("waiting: for a checkpoint");
  waits("no quorum for view 25: cannot reach b");
  BOOST_TEST_REQUIRE(j->awaited(7).has_value());
  BOOST_TEST(j->awaited(7)->text == "waiting: for a checkpoint");
  j->add(7, step(1));
  BOOST_TEST(!j->awaited(7).has_value());
}

BOOST_AUTO_TEST_CASE(a_restart_finds_the_events_again) {
  shoal::test::folder f;
  {
    const auto j = open_job_journal(f.path);
    for (std::uint64_t i = 1; i <= 20; ++i)
      j->add(0xabc, step(i, std::log(2.0) / static_cast<double>(i)));
    j->add(0xabc, event(kind::notice, 3, 2, "\"quoted\"\nlines \xff"));
  }
  const auto file = f.path / "0000000000000abc" / "events.jsonl";
  std::ofstream(file, std::ios::app) << "{\"event\":\"step\",\"st"; // a crash
  {
    const auto j = open_job_journal(f.path);
    j->add(0xabc, step(20));
    j->add(0xabc, step(21));
  }
  const auto j = open_job_journal(f.path);
  const auto all = j->read_all(0xabc);
  BOOST_REQUIRE(all.size() == 22u);
  BOOST_TEST(all[6].loss == std::log(2.0) / 7);
  BOOST_TEST(all[6].tokens == 700u);
  BOOST_TEST(all[6].unix_ms == 1700000000007);
  BOOST_TEST(all[21].step == 21u);
  BOOST_TEST(!j->ended(0xabc));
  BOOST_TEST(j->jobs().size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_passes_is_read_and_goes_to_no_disk) {
  const shoal::test::folder f;
  {
    const auto j = open_job_journal(f.path);
    j->add(7, event(kind::notice, 1, 0, "ready"));
    j->add_passing(7, event(kind::notice, 2, 0, "a client's request"));
    BOOST_TEST(j->read_all(7).size() == 2u);
  }
  const auto again = open_job_journal(f.path)->read_all(7);
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(again[0].text == "ready");
}

BOOST_AUTO_TEST_CASE(the_oldest_events_go_first_and_stay_known) {
  const auto j = open_job_journal({});
  const std::uint64_t count = job_log::events_max + 10;
  for (std::uint64_t i = 1; i <= count; ++i)
    j->add(1, step(i));
  std::uint64_t next = 0;
  const auto left = j->read(1, 0, next);
  BOOST_TEST(left.size() == job_log::events_max);
  BOOST_TEST(left.front().step == 11u);
  BOOST_TEST(next == count);
  j->add(1, step(4));
  BOOST_TEST(j->read(1, next, next).empty());
}

BOOST_AUTO_TEST_CASE(a_waiter_and_a_listener_hear_of_an_event) {
  const auto j = open_job_journal({});
  BOOST_TEST(!j->wait(5, 0, 0ms));
  int heard = 0;
  const auto listener = j->listen([&](shoal::core::job_id job) {
    BOOST_TEST(job == 5u);
    ++heard;
  });
  bool came = false; // Boost.Test checks on one thread only
  std::thread waiter([&] { came = j->wait(5, 0, 60s); });
  j->add(5, step(1));
  waiter.join();
  BOOST_TEST(came);
  j->add(5, step(1));
  BOOST_TEST(heard == 1);
  j->unlisten(listener);
  j->add(5, event(kind::done, 0, 0, "finished"));
  BOOST_TEST(heard == 1);
  BOOST_TEST(j->wait(5, 1000, 60s)); // it has ended: no use to wait
}

/// A journal that tells what it says; the log of job 5 cannot be written while
/// a folder has its name.
struct refusing {
  refusing() { open(); }
  void open() {
    journal.reset();
    journal =
      open_job_journal(f.path, nullptr, [this](const std::string& line) {
        said.push_back(line);
      });
  }
  void refuse() const { std::filesystem::create_directories(log); }
  void recover() const { std::filesystem::remove(log); }

  shoal::test::folder f;
  const std::filesystem::path log =
    f.path / "0000000000000005" / "events.jsonl";
  std::vector<std::string> said;
  std::unique_ptr<job_journal> journal;
};

BOOST_AUTO_TEST_CASE(events_that_a_disk_refuses_are_written_in_order_later) {
  refusing w;
  w.journal->add(6, step(1)); // of another job
  w.refuse();
  w.journal->add(5, step(1));
  w.journal->add(5, step(2));
  w.journal->retry();
  BOOST_TEST(w.journal->read_all(5).size() == 2u);
  BOOST_TEST(w.said.size() == 1u);
  BOOST_TEST(w.said.at(0).find("is kept in memory") != std::string::npos);
  w.journal->add(6, step(2)); // is written
  w.recover();
  w.journal->add(5, step(3));
  BOOST_TEST(w.said.size() == 2u);
  BOOST_TEST(w.said.at(1).find("written again") != std::string::npos);
  w.open();
  const auto all = w.journal->read_all(5);
  BOOST_REQUIRE(all.size() == 3u);
  for (std::uint64_t i = 0; i < 3; ++i)
    BOOST_TEST(all[i].step == i + 1);
  BOOST_TEST(w.journal->read_all(6).size() == 2u);
  BOOST_TEST(w.said.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_line_that_a_full_disk_has_cut_is_written_anew) {
  refusing w;
  w.journal->add(5, step(1));
  std::ofstream(w.log, std::ios::app) << to_json_line(step(2)).substr(0, 20);
  w.journal->add(5, step(2));
  w.open();
  BOOST_TEST(w.journal->read_all(5).size() == 2u);
}

BOOST_AUTO_TEST_CASE(refused_lines_are_written_without_another_event) {
  for (const bool ends : {false, true}) {
    refusing w;
    w.refuse();
    w.journal->add(5, step(1));
    w.recover();
    if (!ends) {
      w.journal->retry();
      BOOST_TEST(w.said.size() == 2u);
      BOOST_TEST(std::filesystem::exists(w.log));
    }
    w.open();
    BOOST_TEST(w.journal->read_all(5).size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_log_says_where_it_lacks_lines_that_were_too_many) {
  refusing w;
  w.refuse();
  const std::string text(job_journal::text_bytes_max - 20, 'x');
  const std::size_t count = job_lines::refused_bytes_max / text.size() + 10;
  for (std::size_t i = 0; i < count; ++i)
    w.journal->add(5, event(kind::notice, i, 0, text));
  w.recover();
  w.journal->retry();
  BOOST_TEST(w.said.at(1).find("too many to keep") != std::string::npos);
  w.open();
  const auto all = w.journal->read_all(5);
  BOOST_TEST(all.size() < count);
  BOOST_TEST(all.front().text.find("lines of this log are missing")
             != std::string::npos);
  const auto lost = std::stoull(all.front().text);
  BOOST_TEST(lost + all.size() - 1 == count);
  BOOST_TEST(all[1].step == lost);
}

BOOST_AUTO_TEST_CASE(a_log_says_that_it_ends_before_its_node_did) {
  refusing w;
  w.journal->add(5, step(1));
  std::filesystem::rename(w.log, w.f.path / "kept");
  w.refuse();
  w.journal->add(5, step(2));
  w.journal.reset(); // the disk is full to the end
  w.recover();
  std::filesystem::rename(w.f.path / "kept", w.log);
  for (int again = 0; again < 2; ++again) {
    w.open();
    const auto all = w.journal->read_all(5);
    BOOST_REQUIRE(all.size() == 2u);
    BOOST_TEST((all[1].kind == kind::notice));
    BOOST_TEST(all[1].step == 1u);
    BOOST_TEST(all[1].text.find("lacks") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(the_digest_of_samples_comes_back) {
  auto e = step(3, 2.5);
  e.data = 0xfedcba9876543210;
  const std::string line = to_json_line(e);
  BOOST_TEST(line.find(R"("data":"fedcba9876543210")") != line.npos);
  job_event back;
  BOOST_TEST_REQUIRE(from_json_line(line, back));
  BOOST_TEST(back.data == e.data);
  BOOST_TEST_REQUIRE(from_json_line(
    R"({"event":"step","step":3,"loss":1,"data":"what"})", back));
  BOOST_TEST(back.data == 0u);
}

BOOST_AUTO_TEST_CASE(lines_say_what_the_command_line_prints) {
  auto e = step(3, 2.5);
  e.grad_norm = 0.5;
  e.lr = 0.001;
  e.tokens_per_s = 1000;
  e.unix_ms = 0;
  BOOST_TEST(
    to_json_line(e)
    == R"({"event":"step","step":3,"loss":2.5,"grad_norm":0.5,)"
       R"("lr":0.001,"tokens":300,"tokens_per_s":1000.0,"unix_ms":0})");
  e.bubble = 12.5;
  BOOST_TEST(to_json_line(e)
             == R"({"event":"step","step":3,"loss":2.5,"grad_norm":0.5,)"
                R"("lr":0.001,"tokens":300,"tokens_per_s":1000.0,)"
                R"("bubble_percent":12.5,"unix_ms":0})");
  e.computing_s = 0.5;
  e.reducing_s = 0.25;
  BOOST_TEST(to_json_line(e)
             == R"({"event":"step","step":3,"loss":2.5,"grad_norm":0.5,)"
                R"("lr":0.001,"tokens":300,"tokens_per_s":1000.0,)"
                R"("bubble_percent":12.5,"computing_seconds":0.5,)"
                R"("reducing_seconds":0.25,"unix_ms":0})");
  job_event phases;
  BOOST_TEST(from_json_line(to_json_line(e), phases));
  BOOST_TEST((phases.computing_s == 0.5 && phases.reducing_s == 0.25));
  auto v = event(kind::view, 0, 4, "2 replicas");
  v.peers = 4;
  BOOST_TEST(to_json_line(v)
             == R"({"event":"view","epoch":4,"peers":4,"step":0,)"
                R"("plan":"2 replicas","unix_ms":0})");
  v.cause = "b is gone";
  job_event back;
  BOOST_TEST(from_json_line(to_json_line(v), back));
  BOOST_TEST(back.cause == "b is gone");
  e.loss = std::nan("");
  e.bad_steps = 3;
  BOOST_TEST(to_json_line(e).find(R"("bad_steps":3,)") != std::string::npos);
  BOOST_TEST(from_json_line(to_json_line(e), back));
  BOOST_TEST(std::isnan(back.loss));
  BOOST_TEST(back.bad_steps == 3u);
  for (const auto* bad : {"", "{", "[]", "3", "{}", R"({"event":"other"})",
                          R"({"event":3})", R"({"event":"step","digest":"x"})"})
    BOOST_TEST(!from_json_line(bad, back), bad);
  for (const char* step :
       {"null", "\"3\"", "-3", "3.5", "1e300", "[3]", "18446744073709551616"})
    BOOST_TEST(!from_json_line(R"({"event":"step","loss":1,"step":)"
                                 + std::string(step) + "}",
                               back),
               step);
  for (const char* bad :
       {R"({"event":"step","loss":1})",
        R"({"event":"step","step":3,"loss":"x"})",
        R"({"event":"view","step":0,"peers":4294967296})",
        R"({"event":"notice","step":1,"unix_ms":9223372036854775808})"})
    BOOST_TEST(!from_json_line(bad, back), bad);
  const std::string deep = R"({"event":)" + std::string(1'000'000, '[')
                           + std::string(1'000'000, ']') + "}";
  BOOST_TEST(!from_json_line(deep, back));
}

BOOST_AUTO_TEST_SUITE_END()
