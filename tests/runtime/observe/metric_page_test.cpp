// tests/runtime/observe/metric_page_test.cpp -- the page that Prometheus reads.
#include "runtime/observe/metric_page.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

BOOST_AUTO_TEST_SUITE(metric_pages)

using namespace shoal::runtime;

namespace {

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_family_is_one_block_whatever_comes_between) {
  constexpr metric_kind a{"shoal_a_total", metric_type::counter, "of a", "of"};
  constexpr metric_kind b{"shoal_b", metric_type::gauge, "of b"};
  metric_page page;
  page.add(a, {{"of", "x"}}, 3);
  page.add(b, {}, 0.5);
  page.add(a, {{"of", "quote \" and \\ and\nline"}}, 4);
  BOOST_TEST(page.text()
             == "# HELP shoal_a_total of a\n"
                "# TYPE shoal_a_total counter\n"
                "shoal_a_total{of=\"x\"} 3\n"
                "shoal_a_total{of=\"quote \\\" and \\\\ and\\nline\"} 4\n"
                "# HELP shoal_b of b\n"
                "# TYPE shoal_b gauge\n"
                "shoal_b 0.5\n");
}

BOOST_AUTO_TEST_CASE(a_histogram_counts_what_is_at_most_a_bound) {
  static constexpr std::array bounds{1.0, 2.5};
  metric_histogram values{bounds};
  for (const double v : {0.5, 1.0, 1.5, 2.5, 9.0})
    values.observe(v);
  metric_page page;
  page.add({"shoal_h", metric_type::histogram, "of h"}, {{"m", "x"}}, values);
  const std::string text = page.text();
  for (const char* line :
       {"shoal_h_count{m=\"x\"} 5", "shoal_h_sum{m=\"x\"} 14.5",
        "shoal_h_bucket{m=\"x\",le=\"1\"} 2",
        "shoal_h_bucket{m=\"x\",le=\"2.5\"} 4",
        "shoal_h_bucket{m=\"x\",le=\"+Inf\"} 5"})
    BOOST_TEST(has(text, line), text);
}

BOOST_AUTO_TEST_CASE(names_of_vllm_come_if_they_are_asked_for) {
  constexpr metric_kind kind{"shoal_n", metric_type::gauge, "n", "", "vllm:n"};
  for (const bool asked : {false, true}) {
    metric_page page(asked);
    page.add(kind, {}, 7);
    BOOST_TEST(has(page.text(), "shoal_n 7"));
    BOOST_TEST(has(page.text(), "vllm:n 7") == asked);
  }
}

BOOST_AUTO_TEST_SUITE_END()
