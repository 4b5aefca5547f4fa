// tests/apps/manage/api_test.cpp -- the description of the HTTP API against the
// program's routes and parsers.
#include "actors/gateway/description/api_document.hpp"
#include "actors/gateway/description/request_schemas.hpp"
#include "actors/gateway/gateway_door.hpp"
#include "apps/common/http_description.hpp"
#include "apps/manage/management.hpp"
#include "apps/manage/management_bodies.hpp"
#include "apps/page/page.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

BOOST_AUTO_TEST_SUITE(http_api)

using namespace shoal;
using json = nlohmann::ordered_json;

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines)
    out += line + "\n";
  return out;
}

struct api {
  api() {
    apps::add_page(routes());
    manage.add_to(routes());
    routes().add("GET", "/openapi.json", [](auto&&) {});
  }
  runtime::http_routes& routes() { return actors::routes_of(door); }

  std::shared_ptr<actors::gateway_door> door = actors::make_gateway_door("1");
  apps::management manage{false};
  actors::api_document document = apps::describe_api("1", &manage);
};

/// Values of the keys "type" that no JSON schema has.
void check_types(const json& value) {
  static const std::set<std::string> known{
    "string", "integer", "number", "boolean", "object", "array", "null"};
  if (value.is_object())
    for (const auto& [name, inside] : value.items()) {
      if (name == "type" && inside.is_string()) {
        BOOST_TEST(known.contains(inside.get<std::string>()), inside);
      } else if (name != "properties") {
        check_types(inside);
      } else {
        for (const json& field : inside)
          check_types(field);
      }
    }
  if (value.is_array())
    for (const json& each : value)
      check_types(each);
}

} // namespace

BOOST_AUTO_TEST_CASE(routes_and_operations_are_the_same) {
  api all;
  BOOST_TEST(joined(all.document.gaps(all.routes())) == "");
}

BOOST_AUTO_TEST_CASE(a_route_that_is_not_described_is_a_gap) {
  api all;
  all.routes().add("POST", "/new/*", [](auto&&) {});
  all.document.add({.method = "GET",
                    .path = "/gone/{it}",
                    .tag = "",
                    .summary = "",
                    .body = "",
                    .answer = "Lost"});
  all.document.add_schema("Unused", json::object());
  BOOST_TEST(joined(all.document.gaps(all.routes()))
             == "not described: POST /new/*\nnot a route: GET /gone/{it}\n"
                "no schema: Lost\na schema that nothing refers to: Unused\n");
}

BOOST_AUTO_TEST_CASE(fields_are_those_that_parsers_read) {
  BOOST_TEST(joined(actors::request_gaps()) == "");
}

BOOST_AUTO_TEST_CASE(bounds_are_those_of_the_parser) {
  const json body = actors::request_schema(actors::http_question::completion);
  const json& fields = body["properties"];
  BOOST_TEST(fields["n"]["maximum"] == 64);
  BOOST_TEST(fields["n"]["default"] == 1);
  BOOST_TEST(fields["max_tokens"]["minimum"] == 0);
  BOOST_TEST(fields["top_p"]["exclusiveMinimum"] == 0);
  BOOST_TEST(fields["stream"]["type"] == json({"boolean", "null"}));
  BOOST_TEST(fields["model"]["type"] == "string");
  BOOST_TEST(body["required"] == json({"model", "prompt"}));
  // Of a chat the same name is something else.
  const json chat = actors::request_schema(actors::http_question::chat);
  BOOST_TEST(chat["properties"]["logprobs"]["type"]
             == json({"boolean", "null"}));
  BOOST_TEST(!chat["properties"].contains("echo"));
}

BOOST_AUTO_TEST_CASE(types_are_those_of_schemas) {
  check_types(api().document.whole(true, {})["components"]["schemas"]);
}

BOOST_AUTO_TEST_CASE(keys_are_asked_for_where_the_server_does) {
  api all;
  const json open = all.document.whole(false, {"/health"});
  BOOST_TEST(!open.contains("security"));
  const json closed = all.document.whole(true, {"/health"});
  BOOST_TEST(closed["security"].size() == 2u);
  BOOST_TEST(closed["paths"]["/health"]["get"]["security"].empty());
  BOOST_TEST(closed["paths"]["/v1/models"]["get"]["responses"].contains("401"));
  BOOST_TEST(!closed["paths"]["/health"]["get"]["responses"].contains("401"));
}

/// Of a key, all requests but looks are counted.
BOOST_AUTO_TEST_CASE(limits_of_keys_are_said_where_they_count) {
  const json paths = api().document.whole(true, {})["paths"];
  for (const auto& [path, methods] : paths.items())
    for (const auto& [method, operation] : methods.items())
      if (method != "get")
        BOOST_TEST(operation["responses"].contains("429"), path);
}

/// What a body may have, its parser takes.
BOOST_AUTO_TEST_CASE(bodies_of_changes_are_as_described) {
  const json load = apps::load_request_schema();
  BOOST_TEST(load["required"] == json({"model"}));
  BOOST_TEST(load["additionalProperties"] == false);
  const auto wrong = [](const std::string& body) {
    return apps::parse_load(body).index() == 1;
  };
  for (const auto& [name, field] : load["properties"].items()) {
    const json whole = field.contains("anyOf") ? field["anyOf"][0] : field;
    std::vector<std::pair<json, bool>> tried{{json::array(), false},
                                             {nullptr, name != "model"}};
    for (const json& one : whole.value("enum", json::array()))
      tried.emplace_back(one, true);
    if (whole.contains("maximum")) {
      tried.emplace_back(whole["maximum"], true);
      tried.emplace_back(whole["maximum"].get<int>() + 1, false);
      tried.emplace_back(whole["minimum"].get<int>() - 1, false);
    }
    if (whole.contains("maxLength")) {
      const auto most = whole["maxLength"].get<std::size_t>();
      tried.emplace_back(std::string(most, 'x'), true);
      tried.emplace_back(std::string(most + 1, 'x'), false);
    }
    for (const auto& [value, fine] : tried) {
      json body{{"model", "m"}};
      body[name] = value;
      BOOST_TEST(wrong(body.dump()) == !fine, body.dump().substr(0, 99));
    }
  }
  BOOST_TEST(wrong(R"({"model":"m","no":1})"));
}

BOOST_AUTO_TEST_SUITE_END()
