// tests/apps/remote/found_job_test.cpp -- which job a word means.
#include "apps/remote/found_job.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(found_jobs)

using namespace shoal::apps;

namespace {

status_json job(const char* id, const char* name, const char* state) {
  return {{"id", id},  {"name", name},           {"state", state},
          {"step", 5}, {"submitted_unix_ms", 0}, {"kind", "train"}};
}

/// The id that is found, or "".
std::string found(const status_json& jobs, const std::string& word,
                  which among = which::any) {
  return find_job({{"jobs", jobs}}, word, among).text;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_name_is_meant_before_the_beginning_of_an_id) {
  const status_json jobs = {job("c79c000000000001", "pow", "running"),
                            job("718d000000000002", "c7", "done"),
                            job("c790000000000003", "fox", "done")};
  BOOST_TEST(found(jobs, "c7") == "718d000000000002");
  // `cancel c7` would have ended another one.
  BOOST_TEST(found(jobs, "c7", which::running) == "718d000000000002");
  BOOST_TEST(found(jobs, "c79c") == "c79c000000000001");
  BOOST_TEST(found(jobs, "c79").empty());
  // A slip of few digits ended a colleague's job.
  BOOST_TEST(found(jobs, "c79", which::running).empty());
  BOOST_TEST(found(jobs, "c79c", which::running) == "c79c000000000001");
  BOOST_TEST(found(jobs, "c790000000000003") == "c790000000000003");
  BOOST_TEST(found(jobs, "").empty());
  BOOST_TEST(found(jobs, "c7d").empty());
}

BOOST_AUTO_TEST_CASE(of_one_name_the_running_one_is_watched) {
  const status_json jobs = {job("a000000000000001", "fox", "done"),
                            job("b000000000000002", "fox", "running")};
  BOOST_TEST(found(jobs, "fox").empty());
  BOOST_TEST(found(jobs, "fox", which::running_first) == "b000000000000002");
}

BOOST_AUTO_TEST_SUITE_END()
