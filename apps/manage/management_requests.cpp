// apps/manage/management_requests.cpp -- by the ways of commands.
#include "apps/manage/management_requests.hpp"

#include "apps/common/named_model.hpp"
#include "apps/manage/job_guard.hpp"
#include "apps/manage/model_submission.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/submit/job_name.hpp"
#include "apps/submit/run_submission.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <utility>

namespace shoal::apps {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

/// Of a node that does not answer: a moment.
constexpr unsigned ask_again_s = 1;

openai::api_error node_is_silent(const runtime::client& client) {
  return openai::unavailable(client.text(), ask_again_s);
}

openai::api_error
conflict(std::string message, const char* param, const char* code) {
  auto error = openai::invalid_request(std::move(message), param, code);
  error.status = 409;
  return error;
}

/// The node's status; its client connects where it has not.
std::variant<json, openai::api_error> status_of_node(runtime::client& client) {
  std::string text;
  if (client.status(text) && (client.connect() || client.status(text)))
    return node_is_silent(client);
  return model::parse_json<json>(text);
}

/// What a run names on the node must not depend on where that was started.
std::string relative_path(const runtime::run_config& run) {
  if (!run.model_path.empty() && hub_repository(run.model_path).empty()
      && !fs::path(run.model_path).is_absolute())
    return "model.path: \"" + core::shown(std::string(run.model_path))
           + "\" must be an absolute path or a name of the hub: it is read on "
             "the node";
  for (const std::string& path : run.data_paths)
    if (!fs::path(path).is_absolute())
      return "data.paths: \"" + core::shown(path)
             + "\" must be an absolute path: it is read on the node";
  return {};
}

class quiet_host final : public submission_host {
public:
  quiet_host(model_load& load, const std::function<bool()>& goes_on)
    : load_(load), goes_on_(goes_on) {}
  void say(const std::string& notice) override {
    notices_ += (notices_.empty() ? "" : "; ") + notice;
    load_.notice(notice);
  }
  std::string way_to_end() const override {
    return "DELETE /models/loads/" + std::to_string(load_.id()) + ": end";
  }
  bool goes_on() override { return goes_on_(); }
  model::watch watch_work() override {
    return
      [this](std::string_view what, std::uint64_t done, std::uint64_t all) {
        load_.at(what, done, all);
        return goes_on_();
      };
  }
  const std::string& notices() const { return notices_; }

private:
  model_load& load_;
  const std::function<bool()>& goes_on_;
  std::string notices_;
};

} // namespace

openai::api_error changes_are_off() {
  auto error = openai::invalid_request(
    "this endpoint shows jobs and does not change them: start the node with "
    "--http-jobs",
    "", "changes_are_off");
  error.status = 403;
  return error;
}

std::variant<found_job, openai::api_error>
job_of_path(runtime::client& client, const std::string& wanted) {
  auto status = status_of_node(client);
  if (auto* const error = std::get_if<openai::api_error>(&status))
    return *error;
  const auto fitted = parse_status(model::json_text(std::get<json>(status)));
  if (!fitted)
    return openai::server_error(fitted.message());
  found_job job = find_job(*fitted, wanted, which::running_first);
  if (job.wrong.empty())
    return job;
  auto error = openai::invalid_request(job.wrong, "", "job_not_found");
  error.status = 404;
  return error;
}

http_answer get_status(runtime::client& client) {
  auto status = status_of_node(client);
  if (auto* const error = std::get_if<openai::api_error>(&status))
    return *error;
  return json_answer{model::json_text(std::get<json>(status))};
}

http_answer get_jobs(runtime::client& client) {
  auto status = status_of_node(client);
  if (auto* const error = std::get_if<openai::api_error>(&status))
    return *error;
  return json_answer{model::json_text(std::get<json>(status)["jobs"])};
}

http_answer get_job(runtime::client& client, const std::string& wanted) {
  const auto job = job_of_path(client, wanted);
  if (auto* const error = std::get_if<openai::api_error>(&job))
    return *error;
  std::string text;
  std::uint64_t next = 0;
  if (client.job(std::get<found_job>(job).id, text, next))
    return node_is_silent(client);
  return json_answer{model::json_text(model::parse_json<json>(text))};
}

http_answer cancel_job(runtime::client& client, const std::string& wanted,
                       const std::string& body) {
  const auto request = parse_cancel(body);
  if (auto* const error = std::get_if<openai::api_error>(&request))
    return *error;
  const auto job = job_of_path(client, wanted);
  if (auto* const error = std::get_if<openai::api_error>(&job))
    return *error;
  const auto& found = std::get<found_job>(job);
  const auto status = status_of(client);
  if (!status)
    return openai::unavailable(status.message(), ask_again_s);
  for (const status_json& j : (*status)["jobs"])
    if (text_of(j, "id") == found.text && text_of(j, "state") != "running")
      return conflict("job " + found.text
                        + " has ended already: " + text_of(j, "state"),
                      "", "job_has_ended");
  if (client.stop_job(found.id, !std::get<cancel_request>(request).now))
    return node_is_silent(client);
  return json_answer{
    model::json_text(json{{"id", found.text}, {"ending", true}}), 202};
}

http_answer submit_job(runtime::client& client, const std::string& body,
                       const std::function<bool()>& goes_on) {
  auto parsed = parse_train(body);
  if (auto* const error = std::get_if<openai::api_error>(&parsed))
    return *error;
  auto& request = std::get<train_request>(parsed);
  const auto wrong = [](const std::string& message) {
    return openai::invalid_request("run: " + message, "run", "invalid_value");
  };
  run_options o;
  o.run_file = "run.toml"; // its name in messages
  o.run_text = std::move(request.run);
  o.download.goes_on = goes_on;
  const auto run = load_run(o);
  if (!run)
    return wrong(run.message());
  if (run->data_paths.empty())
    return wrong("no text: give [data] paths");
  if (const std::string why = relative_path(*run); !why.empty())
    return wrong(why);
  const std::string name =
    job_name({{}, request.name.empty() ? run->job_name : request.name, {}, {}});
  if (std::string text; client.status(text) && client.connect())
    return node_is_silent(client);
  const auto job = submit_new_run(
    client, *run, name,
    [&](std::string_view, std::uint64_t, std::uint64_t) { return goes_on(); });
  if (!job)
    return wrong(job.message());
  return json_answer{model::json_text(json{{"id", core::job_text(job->id)},
                                           {"name", job->name}}),
                     201};
}

/// @param more that is said of it; may be empty
static openai::api_error
was_cancelled(const serve_options& o, const std::string& more) {
  return conflict("the load of " + core::shown(o.model.string())
                    + " was cancelled" + (more.empty() ? "" : ": " + more),
                  "model", "load_cancelled");
}

static http_answer
submit_model(runtime::client& client, const serve_options& o, model_load& load,
             const std::function<bool()>& goes_on) {
  const auto wrong = [](std::string message) {
    std::string param = "model";
    if (message.starts_with("--")) // about an option of `serve`
      message.erase(0, 2);
    if (message.starts_with("context:"))
      param = "context";
    return openai::invalid_request(message, param, "invalid_value");
  };
  if (std::string text; client.status(text) && client.connect())
    return node_is_silent(client);
  load.at("reading", 0, 0);
  quiet_host host(load, goes_on);
  model_submission model(o, host);
  if (o.model.is_absolute() || !hub_repository(o.model).empty()) {
    if (auto read = model.read_folder(); !read)
      return wrong(read.message());
    if (auto sent = model.send_folder(client); !sent)
      return conflict(sent.message(), "model", "not_loaded");
  } else if (o.model.has_parent_path()) {
    return wrong("\"" + core::shown(o.model.string())
                 + "\" must be an absolute path: it is read on the node");
  } else if (auto sent = model.send_followed(client); !sent) {
    return conflict(sent.message() + "; a folder is named by its absolute path",
                    "model", "not_loaded");
  }
  job_guard guard(client, model.job());
  if (!load.submitted()) // it was cancelled meanwhile
    return was_cancelled(o, guard.stop());
  json out{{"success", true},
           {"id", core::job_text(model.job())},
           {"model", model.name()}};
  if (!host.notices().empty())
    out["notice"] = host.notices();
  http_answer answer = json_answer{model::json_text(out)};
  guard.release();
  return answer;
}

http_answer load_model(runtime::client& client, const serve_options& o,
                       model_load& load, const std::function<bool()>& goes_on) {
  http_answer answer;
  try {
    answer = submit_model(client, o, load,
                          [&] { return goes_on() && !load.cancelled(); });
  } catch (const std::exception& e) {
    answer =
      openai::server_error("the request failed: " + std::string(e.what()));
  }
  auto* const error = std::get_if<openai::api_error>(&answer);
  if (error == nullptr)
    return answer; // it is submitted, so nobody has cancelled it
  if (load.cancelled()) {
    load.ended();
    return error->code == "load_cancelled" ? *error
                                           : was_cancelled(o, error->message);
  }
  load.failed(error->message);
  return answer;
}

http_answer cancel_load(model_loads& loads, const std::string& id) {
  if (loads.cancel(id))
    return json_answer{model::json_text(json{{"id", id}, {"ending", true}}),
                       202};
  auto error = openai::invalid_request(
    "there is no load \"" + core::shown(id)
      + "\" here: it may have ended (see /models/loads; a model that is served "
        "is ended by /models/unload)",
    "", "load_not_found");
  error.status = 404;
  return error;
}

http_answer unload_model(runtime::client& client, const std::string& body) {
  const auto parsed = parse_unload(body);
  if (auto* const error = std::get_if<openai::api_error>(&parsed))
    return *error;
  const std::string& name = std::get<unload_request>(parsed).model;
  if (std::string text; client.status(text) && client.connect())
    return node_is_silent(client);
  const auto status = status_of(client);
  if (!status)
    return openai::unavailable(status.message(), ask_again_s);
  for (const status_json& j : (*status)["jobs"]) {
    if (text_of(j, "name") != name || !serves(j)
        || text_of(j, "state") != "running")
      continue;
    const found_job job = find_job(*status, text_of(j, "id"));
    if (!job.wrong.empty() || client.stop_job(job.id, true))
      return node_is_silent(client);
    return json_answer{
      model::json_text(json{{"success", true}, {"id", job.text}})};
  }
  auto error = openai::model_not_found(name);
  error.param = "model";
  return error;
}

} // namespace shoal::apps
