// runtime/anthropic/error_text.cpp -- types of errors by status.
#include "runtime/anthropic/error_text.hpp"

#include "runtime/files/json.hpp"

namespace shoal::anthropic {
namespace {

const char* type_of(unsigned status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 413:
    return "request_too_large";
  case 429:
    return "rate_limit_error";
  case 503:
    return "overloaded_error";
  default:
    return status < 500 ? "invalid_request_error" : "api_error";
  }
}

} // namespace

std::string error_json(const openai::api_error& error) {
  using json = nlohmann::ordered_json;
  json what{{"type", type_of(error.status)}, {"message", error.message}};
  if (!error.param.empty())
    what["param"] = error.param;
  return model::json_text(json{{"type", "error"}, {"error", std::move(what)}});
}

} // namespace shoal::anthropic
