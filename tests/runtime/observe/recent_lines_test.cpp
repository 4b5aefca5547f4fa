// tests/runtime/observe/recent_lines_test.cpp -- the last lines of a node.
#include "runtime/files/json.hpp"
#include "runtime/observe/recent_lines.hpp"
#include "runtime/wire/client_messages.hpp" // status_bytes_max

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(last_lines)

using shoal::runtime::recent_lines;
using json = nlohmann::json;

BOOST_AUTO_TEST_CASE(the_last_are_given_and_then_only_new_ones) {
  recent_lines lines;
  lines.name("anna");
  std::uint64_t next = 0;
  for (int i = 1; i <= 9; ++i)
    lines.add("line " + std::to_string(i));
  json got = json::parse(lines.json(0, 2, next));
  BOOST_TEST(got["node"] == "anna");
  BOOST_TEST(got["lines"].size() == 2u);
  BOOST_TEST(got["lines"][0]["text"] == "line 8");
  BOOST_TEST(got["lines"][1]["number"] == 9);
  BOOST_TEST(next == 10u);
  BOOST_TEST(json::parse(lines.json(next, 5, next))["lines"].empty());
  lines.add("line 10");
  got = json::parse(lines.json(next, 5, next));
  BOOST_TEST(got["lines"].size() == 1u);
  BOOST_TEST(got["lines"][0]["text"] == "line 10");
  // Of another process, which has said more.
  BOOST_TEST(json::parse(lines.json(99, 5, next))["lines"].empty());
  BOOST_TEST(next == 11u);
}

BOOST_AUTO_TEST_CASE(all_that_is_kept_fits_a_reply) {
  recent_lines lines;
  std::uint64_t next = 0;
  for (std::size_t bytes : {1u, 250u, 100'000u}) { // quotes need most as JSON
    for (std::size_t i = 0; i <= recent_lines::lines_max; ++i)
      lines.add(std::string(bytes, '"'));
    const std::string text = lines.json(0, recent_lines::lines_max, next);
    BOOST_TEST(text.size() <= shoal::runtime::status_bytes_max);
    const json got = json::parse(text);
    BOOST_TEST(got["lines"].size() <= recent_lines::lines_max);
    BOOST_TEST(got["lines"].size() > 10u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
