// tests/apps/top/table_test.cpp -- columns that fit, and the order of rows.
#include "apps/top/table.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(top_table)

using namespace shoal::apps;

namespace {

table peers() {
  return {"Peers",
          {{"NAME", align::left, 0, 6},
           {"CPU", align::right, 1, 0},
           {"NOTE", align::left, 2, 0}},
          {{{"anna"}, {"5 %", tone::plain, 0.05}, {"x"}},
           {{"\u6f22\u5b57\u6f22\u5b57"}, {"-"}, {"a longer text"}},
           {{"ben"}, {"70 %", tone::plain, 0.7}, {""}}},
          "none"};
}

std::vector<std::string>
texts(const table& t, int columns, std::optional<std::size_t> sorted = {}) {
  std::vector<std::string> out;
  for (const text_line& line : lines_of(t, columns, sorted))
    out.push_back(plain_text(line));
  return out;
}

std::string names(const table& t) {
  std::string out;
  for (const auto& row : t.rows)
    out += row[0].text + " ";
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(cells_stand_below_their_headings) {
  const std::vector<std::string> expected{
    "Peers", "NAME    CPU NOTE", "anna    5 % x",
    "\u6f22\u5b57\u2026     - a longer text", "ben    70 % "};
  BOOST_TEST(texts(peers(), 80) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(columns_are_left_out_by_rank_and_no_line_is_too_wide) {
  BOOST_TEST(texts(peers(), 24)[1] == "NAME    CPU");
  BOOST_TEST(texts(peers(), 10)[1] == "NAME");
  BOOST_TEST(texts(peers(), 3)[2] == "an\u2026");
  for (int columns = 0; columns < 40; ++columns)
    for (const std::string& line : texts(peers(), columns))
      BOOST_TEST(columns_of(line) <= columns, line << " " << columns);
}

BOOST_AUTO_TEST_CASE(rows_are_sorted_by_number_then_text_then_unknown) {
  table t = peers();
  sort_rows(t, 1);
  BOOST_TEST(names(t) == "ben anna \u6f22\u5b57\u6f22\u5b57 ");
  sort_rows(t, 0);
  BOOST_TEST(names(t) == "anna ben \u6f22\u5b57\u6f22\u5b57 ");
  sort_rows(t, 2); // an empty one comes last
  BOOST_TEST(names(t) == "\u6f22\u5b57\u6f22\u5b57 anna ben ");
  sort_rows(t, 9); // there is no such column
  BOOST_TEST(names(t) == "\u6f22\u5b57\u6f22\u5b57 anna ben ");
}

BOOST_AUTO_TEST_CASE(the_sorted_column_is_marked) {
  const auto lines = lines_of(peers(), 80, std::size_t{1});
  int chosen = 0;
  for (const span_of_text& s : lines[1])
    if (s.is == tone::chosen) {
      ++chosen;
      BOOST_TEST(s.text.find("CPU") != std::string::npos);
    }
  BOOST_TEST(chosen == 1);
}

BOOST_AUTO_TEST_CASE(a_table_without_rows_says_so) {
  table t = peers();
  t.rows.clear();
  const std::vector<std::string> expected{"Peers", "none"};
  BOOST_TEST(texts(t, 80) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
