// tests/apps/top/top_page_test.cpp -- from answers of a node to lines.
#include "apps/top/top_page.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace shoal::apps;
using std::chrono::seconds;

namespace {

/// A node `anna` with peer `ben`, a training job and a served model.
std::string answer(const std::string& self, int cpu_s, int tokens, int step) {
  const auto n = [](int value) { return std::to_string(value); };
  return R"({"id":"9f86d081884c7d65","epoch":7,"state":"member","name":"anna",
    "self":")"
         + self + R"(","peers":[
    {"id":"61","name":"anna","state":"active","devices":[{"threads":2}]},
    {"id":"62","name":"ben","state":"unreachable","devices":[{"threads":4}]},
    {"id":"63","name":"cleo","state":"active","devices":[{"threads":4}]}],
    "jobs":[{"id":"00000000000000ab","name":"run","kind":"train",
      "state":"running","step":)"
         + n(step) + R"(,"steps":110,"loss":1.5,
      "lr":0.001,"tokens_per_s":1234,"places":[[{"id":"61","first_layer":0,
      "last_layer":3}]],"checkpoint":{"step":8,"digest":"","unix_ms":40000}},
     {"id":"00000000000000cd","name":"chatty","kind":"serve",
      "state":"running"}],
    "links":[{"peer":"63","fabric":"tls","moved":[{"fabric":"tls",
      "sent_bytes":)"
         + n(cpu_s * 1000000) + R"(,"received_bytes":0,
      "latency_ns":500000,"bytes_per_s":1000000}]}],
    "resources":{"cpu_seconds":)"
         + n(cpu_s) + R"(,"resident_bytes":1048576,
      "store_bytes":2097152,"store_room_bytes":5},
    "serving":[{"job":"00000000000000cd","name":"chatty","streams":3,
      "generated_tokens":)"
         + n(tokens) + R"(,"pipelines":[{"pipeline":0,
      "ready":true,"streams":3,"running":2,"waiting":1,"pages":25,
      "pages_max":100}]}]})";
}

struct fixture {
  fixture() {
    add(1, 10, 100, 9);
    add(3, 14, 300, 10); // 2 s later
  }
  void add(int at_s, int cpu_s, int tokens, int step) {
    auto parsed = parse_status(answer("61", cpu_s, tokens, step));
    BOOST_TEST_REQUIRE(bool(parsed));
    status = *parsed;
    memory.add(status, seconds(at_s), at_s * 1000);
  }
  std::string shown(int columns, int rows) {
    const top_page page =
      page_of({lost.empty() || known ? &status : nullptr, &memory, lost, 50000},
              choice, columns, rows);
    BOOST_TEST(int(page.lines.size()) <= rows);
    table_rows = page.table_rows;
    std::string out;
    for (const text_line& line : page.lines) {
      BOOST_TEST(columns_of(plain_text(line)) <= columns, plain_text(line));
      out += plain_text(line) + "\n";
    }
    return out;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  status_json status;
  top_memory memory;
  top_choice choice;
  std::string lost;
  bool known = true;
  int table_rows = 0;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(top_page_of, fixture)

BOOST_AUTO_TEST_CASE(rates_come_from_two_answers) {
  const std::string page = shown(200, 40);
  for (const char* part : {"shoal 9f86d081",
                           "node anna",
                           "2 up",
                           "1 unreachable",
                           "train 1.2k tok/s",
                           "serve 100 tok/s",
                           "streams 2 running, 1 waiting",
                           "KV pages 25 %",
                           "[1 all]",
                           "61*",
                           "run 0-3 r0 s0",
                           "100 %",  // 4 s of two cores in 2 s
                           "2 MB/s", // 4 MB in 2 s
                           "1 ms",   // both ways
                           "10/110",
                           "1.5000",
                           "1.00e-03",
                           "8, 10 s ago",
                           "3 min", // 100 steps of 2 s
                           "25/100 25 %",
                           "1/1",
                           "1 MiB",
                           "2 MiB"})
    BOOST_TEST(has(page, part), part << " is not in\n" << page);
}

/// At a node that was away then it was shown as the newest of a job that is done.
BOOST_AUTO_TEST_CASE(an_older_checkpoint_is_not_that_of_the_end) {
  choice.view = top_view::all;
  status["jobs"][0]["state"] = "done";
  BOOST_TEST(!has(shown(200, 40), "8, 10 s ago"));
  status["jobs"][0]["checkpoint"]["step"] = 10;
  BOOST_TEST(has(shown(200, 40), "10, 10 s ago"));
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_a_dash) {
  choice.view = top_view::all;
  const std::string page = shown(200, 40);
  const auto row = page.substr(page.find("63 "));
  const std::string cleo = row.substr(0, row.find('\n'));
  BOOST_TEST(has(cleo, "cleo"));
  BOOST_TEST(has(cleo, " - "), cleo); // no answer of its own yet
  memory.add_peer(*parse_status(answer("63", 1, 50, 9)), seconds(3));
  memory.add_peer(*parse_status(answer("63", 3, 90, 9)), seconds(4));
  const std::string then = shown(200, 40);
  BOOST_TEST(has(then, "50 %"), then); // two of four cores
  BOOST_TEST(has(then, "serve 140 tok/s"), then);
  memory.forget_peer("63");
  BOOST_TEST(has(shown(200, 40), "serve 100 tok/s"));
}

BOOST_AUTO_TEST_CASE(every_size_of_the_window_is_kept_to) {
  for (int view = 0; view < top_views; ++view)
    for (const bool help : {false, true})
      for (int columns = 1; columns < 130; columns += 3)
        for (const int rows : {1, 2, 3, 5, 24}) {
          choice.view = top_view(view);
          choice.help = help;
          shown(columns, rows);
        }
  choice = {};
  const std::string narrow = shown(40, 24);
  for (const char* part : {"anna", "ben", "cleo", "active", "unreachable",
                           "10/110", "1.5000", "chatty", "q end"})
    BOOST_TEST(has(narrow, part), part << " is not in\n" << narrow);
}

BOOST_AUTO_TEST_CASE(keys_choose_views_and_columns) {
  press(top_key::next_view, choice, 10);
  BOOST_TEST(has(shown(80, 24), "Links of anna"));
  press(top_key::view_3, choice, 10);
  BOOST_TEST(has(shown(80, 24), "Traffic between peers"));
  press(top_key::view_4, choice, 10);
  BOOST_TEST(has(shown(80, 24), "Training jobs"));
  press(top_key::view_5, choice, 10);
  BOOST_TEST(has(shown(80, 24), "Served models"));
  press(top_key::next_view, choice, 10);
  BOOST_TEST((choice.view == top_view::all));
  press(top_key::previous_view, choice, 10);
  BOOST_TEST((choice.view == top_view::models));
  press(top_key::view_1, choice, 10);
  press(top_key::sort, choice, 10);
  press(top_key::sort, choice, 10);
  BOOST_TEST(has(shown(200, 24), "s sort: NAME"));
  for (int i = 0; i < 9; ++i)
    press(top_key::sort, choice, 10);
  BOOST_TEST(has(shown(200, 24), "s sort: TOK/S"));
  press(top_key::sort, choice, 10); // after the last one none
  BOOST_TEST(has(shown(200, 24), "s sort: as listed"));
  press(top_key::help, choice, 10);
  BOOST_TEST(has(shown(80, 24), "sort by the next column"));
  press(top_key::pause, choice, 10);
  BOOST_TEST(has(shown(80, 24), "PAUSED"));
  press(top_key::quit, choice, 10);
  BOOST_TEST(choice.over);
}

BOOST_AUTO_TEST_CASE(lines_scroll_and_stop_at_both_ends) {
  const std::string top = shown(80, 12);
  BOOST_TEST(has(top, "more below"), top);
  press(top_key::page_down, choice, table_rows);
  BOOST_TEST(choice.scrolled == table_rows - 1);
  press(top_key::last, choice, table_rows);
  const std::string end = shown(80, 12);
  BOOST_TEST(!has(end, "more below"), end);
  BOOST_TEST(has(end, "chatty"), end);
  press(top_key::up, choice, table_rows);
  BOOST_TEST(has(shown(80, 12), "1 more below"));
  press(top_key::first, choice, table_rows);
  press(top_key::up, choice, table_rows);
  BOOST_TEST(shown(80, 12) == top);
}

BOOST_AUTO_TEST_CASE(a_lost_node_is_shown_beside_what_was_known) {
  lost = "no node answers";
  const std::string page = shown(80, 24);
  BOOST_TEST(has(page, "LOST, trying again: no node answers"), page);
  BOOST_TEST(has(page, "anna"), page);
  known = false;
  BOOST_TEST(has(shown(80, 24), "LOST"));
}

BOOST_AUTO_TEST_CASE(a_foreign_name_has_no_control_characters) {
  status["peers"][0]["name"] = "an\x1b[2Jna";
  BOOST_TEST(shown(80, 24).find('\x1b') == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(top_memory_of)

BOOST_AUTO_TEST_CASE(a_counter_that_falls_begins_anew) {
  counter_rate r;
  BOOST_TEST(!r.per_s());
  r.add(100, seconds(1));
  BOOST_TEST(!r.per_s());
  r.add(300, seconds(2));
  BOOST_TEST(*r.per_s() == 200);
  r.add(10, seconds(3)); // its process was started again
  BOOST_TEST(!r.per_s());
  r.add(40, seconds(4));
  BOOST_TEST(*r.per_s() == 30);
  for (int i = 5; i < 60; ++i) // only the last seconds count
    r.add(40, seconds(i));
  BOOST_TEST(*r.per_s() == 0);
}

BOOST_AUTO_TEST_CASE(a_curve_is_of_the_steps_that_count) {
  job_history h;
  BOOST_TEST(!h.seconds_to(10));
  h.add(1, 4, 1000);
  h.add(2, 3, 2000);
  h.add(2, 9, 2500); // known
  h.add(3, 2, 3000);
  BOOST_TEST(*h.seconds_to(13) == 10);
  BOOST_TEST(!h.seconds_to(2));
  h.add(2, 3.5, 5000); // run again after a loss
  const std::vector<double> expected{4, 3};
  BOOST_TEST(h.losses() == expected, boost::test_tools::per_element());
  h.add(3, 2.5, 6000);
  BOOST_TEST(h.losses().back() == 2.5);
  for (std::uint64_t step = 4; step < 1000; ++step)
    h.add(step, 1, std::int64_t(step) * 1000);
  BOOST_TEST(h.losses().size() == job_history::losses_max);
}

BOOST_AUTO_TEST_SUITE_END()
