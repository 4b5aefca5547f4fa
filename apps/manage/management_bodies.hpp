// apps/manage/management_bodies.hpp -- bodies of requests that change something.
//
// An empty body is an empty object. A field that is not known is an error, as is
// one of the wrong type: a setting that is ignored would be a surprise later.
//
// Threads: pure functions. Errors: 400, with the field in `param`.
#pragma once

#include "apps/common/commands.hpp"
#include "runtime/openai/api_error.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <variant>

namespace shoal::apps {

/// POST /shoal/jobs
struct train_request {
  std::string run;  ///< the text of a run file
  std::string name; ///< of the job; "": that of the run
};
/// POST /shoal/jobs/ID/cancel
struct cancel_request {
  bool now = false;
};
/// POST /models/unload
struct unload_request {
  std::string model;
};

template <class Request>
using parsed = std::variant<Request, openai::api_error>;

parsed<train_request> parse_train(std::string_view body);
parsed<cancel_request> parse_cancel(std::string_view body);
/// POST /models/load: the options of `serve --detach`
parsed<serve_options> parse_load(std::string_view body);
parsed<unload_request> parse_unload(std::string_view body);

// The same fields as JSON schemas, for the description of the API.
nlohmann::ordered_json train_request_schema();
nlohmann::ordered_json cancel_request_schema();
nlohmann::ordered_json load_request_schema();
nlohmann::ordered_json unload_request_schema();
} // namespace shoal::apps
