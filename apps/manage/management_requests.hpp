// apps/manage/management_requests.hpp -- what a request of the HTTP endpoint asks of
// its node, and the answer.
//
// Threads: blocking: a client's requests, and for those that submit also the
//          reading of files.
// Errors:  of the user's input 4xx with the field; 503 if the node does not answer.
#pragma once

#include "apps/manage/management_bodies.hpp"
#include "apps/manage/model_loads.hpp"
#include "apps/remote/found_job.hpp"
#include "runtime/control/client.hpp"
#include "runtime/openai/api_error.hpp"

#include <functional>
#include <string>
#include <variant>

namespace shoal::apps {

struct json_answer {
  std::string json;
  unsigned status = 200;
};
using http_answer = std::variant<json_answer, openai::api_error>;

/// The job that a path names: an id, the first digits of one, or a name.
std::variant<found_job, openai::api_error>
job_of_path(runtime::client& client, const std::string& wanted);

http_answer get_status(runtime::client& client);
http_answer get_jobs(runtime::client& client);
http_answer get_job(runtime::client& client, const std::string& wanted);
http_answer cancel_job(runtime::client& client, const std::string& wanted,
                       const std::string& body);
/// @param goes_on  asked during slow work
http_answer submit_job(runtime::client& client, const std::string& body,
                       const std::function<bool()>& goes_on);
/// @param load  is told how far it is, and why it has failed
http_answer load_model(runtime::client& client, const serve_options& o,
                       model_load& load, const std::function<bool()>& goes_on);
http_answer cancel_load(model_loads& loads, const std::string& id);
http_answer unload_model(runtime::client& client, const std::string& body);

/// 403: the endpoint only shows.
openai::api_error changes_are_off();

} // namespace shoal::apps
