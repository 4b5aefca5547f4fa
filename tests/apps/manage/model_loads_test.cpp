// tests/apps/manage/model_loads_test.cpp -- loads of models as clients see them, and
// what cancels one.
#include "apps/manage/model_loads.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <optional>

namespace model_loads_of_clients {

using namespace shoal::apps;
using json = nlohmann::json;

namespace {

struct loads_fixture {
  std::shared_ptr<model_loads> loads = std::make_shared<model_loads>();

  std::shared_ptr<model_load>
  begin(const std::string& model, const std::string& name = "") {
    serve_options o;
    o.model = model;
    o.name = name;
    return loads->begin(o);
  }
  json all() const { return json::parse(loads->answer(true))["loads"]; }
  std::string id_of(std::size_t i) const {
    return all().at(i)["id"].get<std::string>();
  }
};

} // namespace

} // namespace model_loads_of_clients

BOOST_FIXTURE_TEST_SUITE(model_loads_of_clients,
                         model_loads_of_clients::loads_fixture)

BOOST_AUTO_TEST_CASE(a_load_is_shown_from_its_begin_to_its_end) {
  BOOST_TEST(json::parse(loads->answer(false))
             == json({{"allowed", false}, {"loads", json::array()}}));
  auto first = begin("/m", "fish");
  auto second = begin("org/name");
  BOOST_TEST_REQUIRE(all().size() == 2u);
  BOOST_TEST(all()[0]["model"] == "/m");
  BOOST_TEST(all()[0]["as"] == "fish");
  BOOST_TEST(all()[0]["state"] == "waiting");
  BOOST_TEST(id_of(0) != id_of(1));
  second->at("downloading", 3, 9);
  second->notice("it is slow");
  const json shown = all()[1];
  BOOST_TEST(shown["state"] == "working");
  BOOST_TEST(shown["activity"] == "downloading");
  BOOST_TEST(shown["done"] == 3);
  BOOST_TEST(shown["all"] == 9);
  BOOST_TEST(shown["notice"] == "it is slow");
  BOOST_TEST(!shown.contains("error"));
  second->at("uploading", 12, 9);
  BOOST_TEST(all()[1]["done"] == 9); // never beyond
  second->at("hashing", 12, 0);
  BOOST_TEST(all()[1]["done"] == 12); // of an unknown number
  first.reset();
  BOOST_TEST_REQUIRE(all().size() == 1u);
  BOOST_TEST(second->submitted());
  BOOST_TEST(all().empty());
  second->failed("too late to matter");
  second.reset();
  BOOST_TEST(all().empty());
}

/// A page that was open before the node was started again must not cancel another load.
BOOST_AUTO_TEST_CASE(ids_of_another_process_are_other_ones) {
  const auto load = begin("/m");
  const std::string before = id_of(0);
  loads = std::make_shared<model_loads>();
  const auto other = begin("/m");
  BOOST_TEST(id_of(0) != before);
  BOOST_TEST(!loads->cancel(before));
  BOOST_TEST(std::stoull(before) <= std::uint64_t{1} << 53);
}

BOOST_AUTO_TEST_CASE(the_last_failures_are_remembered) {
  for (std::size_t i = 0; i < model_loads::failures_max + 3; ++i)
    begin("/m" + std::to_string(i))->failed("no disk");
  const auto under_way = begin("/slow");
  BOOST_TEST_REQUIRE(all().size() == model_loads::failures_max + 1);
  BOOST_TEST(all()[0]["model"] == "/m3");
  BOOST_TEST(all()[0]["state"] == "failed");
  BOOST_TEST(all()[0]["error"] == "no disk");
  BOOST_TEST(all().back()["state"] == "waiting");
  BOOST_TEST(loads->cancel(id_of(0))); // it is forgotten
  BOOST_TEST(all()[0]["model"] == "/m4");
}

BOOST_AUTO_TEST_CASE(a_load_that_is_cancelled_ends_and_leaves_nothing) {
  auto load = begin("/m");
  load->at("uploading", 1, 2);
  BOOST_TEST(!loads->cancel("no"));
  BOOST_TEST(!loads->cancel(""));
  BOOST_TEST(!loads->cancel(id_of(0) + "0"));
  BOOST_TEST(!load->cancelled());
  const std::string id = id_of(0);
  BOOST_TEST(loads->cancel(id));
  BOOST_TEST(load->cancelled());
  BOOST_TEST(all()[0]["state"] == "ending");
  BOOST_TEST(loads->cancel(id));        // again, as long as it is there
  load->failed("the upload was ended"); // no failure
  BOOST_TEST(all()[0]["state"] == "ending");
  load.reset();
  BOOST_TEST(all().empty());
  BOOST_TEST(!loads->cancel(id));
}

/// Whichever comes first: a load is served, or it is cancelled.
BOOST_AUTO_TEST_CASE(a_job_is_submitted_or_its_load_was_cancelled) {
  auto served = begin("/a"), late = begin("/b");
  const std::string first = id_of(0), second = id_of(1);
  BOOST_TEST(served->submitted());
  BOOST_TEST(!loads->cancel(first));
  BOOST_TEST(!served->cancelled());
  BOOST_TEST(loads->cancel(second));
  BOOST_TEST(!late->submitted());
}

BOOST_AUTO_TEST_CASE(texts_of_clients_are_fit_to_be_shown) {
  const auto load = begin("/m\x1b[2J\xff", std::string(9000, 'n'));
  load->notice(std::string(5000, 'x') + "\x1b");
  load->failed("\xff\x1b");
  const json shown = all()[0];
  for (const char* field : {"model", "as", "notice", "error"}) {
    const auto text = shown[field].get<std::string>();
    BOOST_TEST(text.size() < 1100u, field);
    BOOST_TEST(text.find('\x1b') == std::string::npos, field);
  }
}

BOOST_AUTO_TEST_SUITE_END()
