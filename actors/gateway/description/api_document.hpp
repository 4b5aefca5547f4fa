// actors/gateway/description/api_document.hpp -- the HTTP API as an OpenAPI 3.1
// document.
//
// Threads: one. Errors: none; what is missing is told by gaps().
// Source:  https://spec.openapis.org/oas/v3.1.0
#pragma once

#include "runtime/http/http_routes.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

using json = nlohmann::ordered_json;

/// What a path answers to a method.
struct api_operation {
  std::string method; ///< "GET"
  std::string path;   ///< "/v1/models/{model}"
  std::string tag;
  std::string summary;
  std::string body;           ///< schema of the request's body; "": it has none
  bool body_optional = false; ///< an empty body is an empty object
  std::string answer;         ///< schema of the answer; "": no JSON
  unsigned status = 200;
  /// Another type of the answer, beside JSON or without that; its meaning. Of
  /// text/event-stream each event is described.
  std::string other_type = {}, other_meaning = {};
  std::vector<unsigned> errors = {}; ///< beside those that each answer may be
  std::string error = "Error";       ///< schema of its errors
  bool continues = false; ///< takes Idempotency-Key and Last-Event-ID
};

class api_document {
public:
  explicit api_document(std::string version) : version_(std::move(version)) {}

  void add(api_operation operation);
  void add_schema(const std::string& name, json schema);
  /// @param object each of its fields is a schema
  void add_schemas(std::string_view object);

  /// @param keys whether the server asks for API keys, except at `open_paths`
  json whole(bool keys, const std::vector<std::string>& open_paths) const;

  /// Routes without an operation, operations without a route, and schemas that are
  /// named and not there.
  std::vector<std::string> gaps(const runtime::http_routes& routes) const;

private:
  std::string version_;
  std::vector<api_operation> operations_;
  json schemas_ = json::object();
};

} // namespace shoal::actors
