// tests/apps/remote/shoal_traffic_test.cpp -- from answers of peers to flows.
#include "apps/remote/shoal_traffic.hpp"
#include "apps/remote/status_text.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(shoal_traffic_of)

using namespace shoal::apps;
using std::chrono::seconds;

namespace {

std::string link(const std::string& peer, int sent, int received) {
  const auto n = [](int value) { return std::to_string(value); };
  return R"({"peer":")" + peer + R"(","fabric":"tls","moved":[
    {"fabric":"shm","sent_bytes":100,"received_bytes":0,
     "jobs":[{"job":"","sent_bytes":100,"received_bytes":0}]},
    {"fabric":"tls","sent_bytes":)"
         + n(sent) + R"(,"received_bytes":)" + n(received)
         + R"(,"jobs":[{"job":"ab","sent_bytes":)" + n(sent)
         + R"(,"received_bytes":)" + n(received) + "}]}]}";
}

status_json status(const std::string& self, const std::string& links) {
  return *parse_status(R"({"self":")" + self + R"(","peers":[
    {"id":"1","name":"anna"},{"id":"2","name":"ben"},{"id":"3","name":"cleo"}],
    "jobs":[{"id":"ab","name":"fish"}],"links":[)"
                       + links + "]}");
}

const flow*
between(const std::vector<flow>& all, const char* from, const char* to) {
  for (const flow& f : all)
    if (f.from == from && f.to == to)
      return &f;
  return nullptr;
}

} // namespace

BOOST_AUTO_TEST_CASE(pairs_of_other_peers_are_known_by_their_own_counts) {
  shoal_traffic t;
  t.add(status("1", link("2", 1000, 50) + "," + link("1", 9, 9)), seconds(1));
  t.add(status("2", link("1", 60, 900) + "," + link("3", 70, 0)), seconds(1));
  t.add(status("1", link("2", 3000, 50)), seconds(3));
  t.add(status("2", link("1", 80, 2900) + "," + link("3", 470, 8)), seconds(3));
  const auto all = t.flows();
  BOOST_TEST_REQUIRE(all.size() == 4);
  BOOST_TEST(all[0].from == "1"); // the busiest one
  BOOST_TEST(all[0].bytes == 3100u);
  BOOST_TEST(*all[0].bytes_per_s == 1000);
  const flow* back = between(all, "2", "1");
  BOOST_TEST_REQUIRE(back);
  BOOST_TEST(back->bytes == 180u); // by the sender, of both fabrics
  const flow* others = between(all, "2", "3");
  BOOST_TEST_REQUIRE(others);
  BOOST_TEST(*others->bytes_per_s == 200);
  const flow* heard = between(all, "3", "2"); // 3 has not answered
  BOOST_TEST_REQUIRE(heard);
  BOOST_TEST(heard->bytes == 8u);
  BOOST_TEST(!between(all, "1", "1"));
}

BOOST_AUTO_TEST_CASE(the_links_of_a_peer_that_lies_are_limited) {
  shoal_traffic t;
  std::string links;
  for (std::size_t i = 0; i < shoal_traffic::links_max + 9; ++i)
    links += (i == 0 ? "" : ",")
             + (R"({"peer":"x)" + std::to_string(i)
                + R"(","moved":[{"sent_bytes":1}]})");
  t.add(status("1", links), seconds(1));
  BOOST_TEST(t.flows().size() == shoal_traffic::links_max);
  t.keep_only({"1", "x3"});
  BOOST_TEST(t.flows().size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_flow_says_what_it_is_for) {
  shoal_traffic t;
  t.add(status("1", link("2", 5000, 0)), seconds(1));
  const flow f = t.flows().at(0);
  BOOST_TEST(f.parts.size() == 2u);
  BOOST_TEST(!f.bytes_per_s); // after one answer
  BOOST_TEST(purpose_of(status("1", ""), f) == "fish, files");
  const auto json = traffic_json({{f}, 3, {"2"}});
  BOOST_TEST(json["flows"][0]["jobs"][0]["job"] == "ab");
  BOOST_TEST(json["flows"][0]["bytes_per_s"].is_null());
  BOOST_TEST(json["more"] == 3);
  const std::string text = traffic_table(status("1", ""), {{f}, 3, {"2"}});
  for (const char* part :
       {"anna", "ben", "fish, files", "3 pairs", "no answer from ben"})
    BOOST_TEST(text.find(part) != std::string::npos, part << ": " << text);
}

BOOST_AUTO_TEST_CASE(peers_that_are_gone_or_silent_are_forgotten) {
  shoal_traffic t;
  t.add(status("1", link("2", 1000, 50)), seconds(1));
  t.add(status("2", link("3", 1000, 50)), seconds(1));
  t.forget("2");
  BOOST_TEST(!between(t.flows(), "2", "3"));
  BOOST_TEST(between(t.flows(), "2", "1")); // as the other end counts
  t.keep_only({"1", "3"});
  BOOST_TEST(t.flows().empty());
  t.add(status("1", link("2", 1000, 50)), seconds(2));
  t.add(status("1", ""), seconds(3)); // the link is gone
  BOOST_TEST(t.flows().empty());
}

BOOST_AUTO_TEST_SUITE_END()
