// apps/manage/management_bodies.hpp -- bodies of requests that change something.
//
// An empty body is an empty object. A field that is not known is an error, as is
// one of the wrong type: a setting that is ignored would be a surprise later.
//
// Threads: pure functions. Errors: 400, with the field in `param`.
#pragma once

#include "apps/common/commands.hpp"
#include "runtime/files/field_text.hpp"
#include "runtime/openai/api_error.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

// The same fields, for the description of the API.
std::vector<runtime::field_text> train_request_fields();
std::vector<runtime::field_text> cancel_request_fields();
std::vector<runtime::field_text> load_request_fields();
std::vector<runtime::field_text> unload_request_fields();

} // namespace shoal::apps
