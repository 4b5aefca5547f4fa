// apps/serve/cmd_serve.cpp -- serve: uploads a model, or finds the training job
// that is named; submits the job that serves it, shows its requests.
//
// Without a local node one is started in this process: the same view, plan and
// actors, in a temporary directory.
#include "apps/common/commands.hpp"
#include "apps/manage/management.hpp"
#include "apps/manage/model_submission.hpp"
#include "apps/remote/await_join.hpp"
#include "apps/remote/embedded_node.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/serve/serve_events.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/line_printer.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

class serving final : private runtime::follow_handler, private submission_host {
public:
  explicit serving(const serve_options& o) : o_(o) {}

  /// Why it has failed; "": it has not.
  const std::string& error() const noexcept { return error_; }

  int run() {
    std::error_code error;
    if (!hub_repository(o_.model).empty()) // a job may have such a name, too
      return job_so_named().empty() ? run_folder() : run_job();
    if (!fs::exists(o_.model, error))
      return run_job();
    const std::string job = job_so_named();
    if (job.empty())
      return run_folder();
    if (fs::is_directory(o_.model, error) && fs::is_empty(o_.model, error))
      return run_job();
    const std::string name = core::shown(o_.model.string());
    return fail(
      "\"" + name + "\" is a folder here, and a job that trains: `"
        + command_line("serve " + shell_word("./" + o_.model.string()), o_.at)
        + "` serves the model in the folder, and `"
        + command_line("serve " + job, o_.at)
        + "` the newest checkpoint of the job, and each newer one",
      exit_usage);
  }

private:
  /// The id of a training job under way whose name is also that of a file or
  /// folder here; empty: there is none, or a path is named.
  std::string job_so_named() const {
    runtime::client client(client_of(o_.at));
    if ((o_.model.has_parent_path() && hub_repository(o_.model).empty())
        || client.connect())
      return {};
    const auto status = status_of(client);
    if (status)
      for (const auto& job : (*status)["jobs"])
        if (text_of(job, "name") == o_.model.string() && !serves(job)
            && text_of(job, "state") == "running")
          return text_of(job, "id");
    return {};
  }

  /// What the command ends with when its work has not been done.
  int ended(const model::status& why) {
    return fail(why.message(),
                interrupts_.seen() ? exit_interrupted : exit_failed);
  }

  int run_folder() {
    if (auto read = submission_.read_folder(); !read)
      return ended(read);
    if (const int wrong = connected(); wrong != exit_done)
      return wrong;
    if (auto sent = submission_.send_folder(*client_); !sent)
      return ended(sent);
    return follow();
  }

  int run_job() {
    if (const int wrong = connected(); wrong != exit_done)
      return wrong;
    if (auto sent = submission_.send_followed(*client_); !sent)
      return ended(sent);
    return follow();
  }

  /// @returns exit_done, or what the command ends with
  int connected() {
    try {
      if (auto done = connect(); !done)
        return ended(done);
    } catch (const runtime::usage_error& e) {
      return fail(e.what(), exit_usage);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
    return exit_done;
  }

  int fail(const std::string& text, int code = exit_failed) {
    error_ = text;
    return code;
  }

  void say(const char* event, const std::string& text,
           const serve_ready* ready = nullptr) {
    out_.line(o_.json ? model::json_text(serve_line(event, text, ready))
                      : core::shown(text));
  }

  // submission_host -------------------------------------------------------------
  void say(const std::string& notice) override { say("notice", notice); }
  std::string way_to_end() const override { return "Ctrl-C: end"; }
  bool goes_on() override { return !interrupts_.seen(); }
  model::watch watch_work() override {
    return shown_work([this] { return !interrupts_.seen(); });
  }

  model::status connect() {
    runtime::client_config c = client_of(o_.at);
    c.say = [this](const std::string& text) { say("notice", text); };
    client_ = std::make_unique<runtime::client>(c);
    const auto error = client_->connect();
    if (!error) {
      say("notice", "using the node at " + client_->where());
      interrupts_.on_second(
        core::shown("stopped; `" + command_line("jobs", o_.at)
                    + "` shows whether the model is served all the same"));
      return without_own_node();
    }
    if (names_a_node(o_.at) || error == std::errc::invalid_argument)
      return failure{client_->text()};
    if (o_.detach)
      return failure{"--detach needs a running node: start `shoal node`"};
    say("notice", "no node runs here: serving from this process");
    const auto lines = [this](const std::string& text) { say("notice", text); };
    const auto manage = std::make_shared<management>(o_.http.jobs);
    http_ = std::make_unique<http_front>(o_.http, lines, manage);
    runtime::role_table roles;
    http_->open(roles);
    embedded_ = std::make_unique<embedded_node>(
      embedded_config{
        "serve", o_.join, o_.at.cluster_key, o_.threads, {}, http_->endpoint()},
      lines, roles);
    c.data_dir = embedded_->folder();
    manage->open(embedded_->folder());
    client_ = std::make_unique<runtime::client>(c);
    if (client_->connect())
      return failure{client_->text()};
    if (o_.join.empty())
      return model::done{};
    return await_join(*client_, o_.join, lines,
                      [this] { return !interrupts_.seen(); });
  }

  /// Refuses keys that the node would not ask for, and names other options without
  /// effect.
  model::status without_own_node() {
    if (!o_.http.api_keys.empty())
      return failure{"--api-keys: the node at " + client_->where()
                     + " answers clients, by its own settings: give this to "
                       "`shoal node`"};
    std::string unused;
    const auto add = [&](const char* option, bool given) {
      if (given)
        unused += (unused.empty() ? "" : ", ") + std::string(option);
    };
    add("--http", !o_.http.listen.empty());
    add("--http-cors", !o_.http.cors.empty());
    add("--http-jobs", o_.http.jobs);
    add("--metrics-compat", !o_.http.metrics_compat.empty());
    add("--join", !o_.join.empty());
    add("--threads", o_.threads != 0);
    if (!unused.empty())
      say("notice", unused
                      + ": without effect, as a node runs here, which has "
                        "its own settings");
    return model::done{};
  }

  int follow() {
    if (!embedded_)
      interrupts_.on_second(
        core::shown("stopped; \"" + submission_.name()
                    + "\" may still be served: " + cancel_line() + " ends it"));
    const auto error = client_->follow(submission_.job(), *this);
    if (error && state_.empty()) {
      if (detached_)
        return exit_done;
      if (!interrupts_.seen())
        return fail(client_->text() + may_go_on());
    }
    if (unheard_)
      return fail("no node has taken the request to end it" + may_go_on(),
                  exit_interrupted);
    if (state_ == "failed")
      return fail("the job failed: " + cause_);
    if (!interrupts_.seen() && !detached_)
      say("notice", "\"" + submission_.name()
                      + "\" is not served any more: it was ended by `shoal "
                        "cancel`, or its last peers left");
    if (interrupts_.seen())
      return exit_interrupted;
    // --detach promises a model that is ready.
    return o_.detach && !detached_ ? exit_failed : exit_done;
  }

  /// Without its node a command does not know what became of the model.
  std::string may_go_on() const {
    return "; other peers that have the model may go on serving it, and so may "
           "that node when it is started again: `"
           + command_line("status", o_.at) + "` there shows whether they do, "
           + cancel_line() + " ends it";
  }
  std::string cancel_line() const {
    return "`" + command_line("cancel " + shell_word(submission_.name()), o_.at)
           + "`";
  }

  // follow_handler --------------------------------------------------------------
  bool on(const job_event& e) override {
    switch (e.kind) {
    case job_event_kind::done:
      state_ = e.text;
      cause_ = e.cause;
      return false;
    case job_event_kind::notice:
      say("notice", e.text);
      break;
    case job_event_kind::view:
      say("view", e.text);
      break;
    default:
      break;
    }
    if (e.kind == job_event_kind::notice && !ready_
        && e.text.starts_with("ready")) {
      ready_ = true;
      const std::string end =
        o_.detach ? "; " + cancel_line() + " ends it" : " (Ctrl-C: end)";
      const serve_ready ready{submission_.name(),
                              submission_.endpoint().empty()
                                ? std::string()
                                : "http://" + submission_.endpoint() + "/v1",
                              core::job_text(submission_.job())};
      const std::string where =
        submission_.endpoint().empty()
          ? "\" is served, but this node answers no clients (--http off): ask "
            "another one"
          : "\" is served at " + ready.url + ", and at http://"
              + submission_.endpoint() + "/ in a browser"
              + (embedded_ ? ", or by `shoal chat --url " + ready.url + "`"
                           : "");
      say("ready", "\"" + submission_.name() + where + end, &ready);
      if (o_.detach) {
        detached_ = true;
        return false;
      }
    }
    return true;
  }
  bool stops() override {
    if (detached_)
      return true;
    if (!interrupts_.seen() || stopping_)
      return unheard_;
    stopping_ = true;
    say("notice", "ending: requests that are being answered go on for "
                    + std::to_string(drain_max.count()) + " s at most");
    if (http_)
      http_->drain(drain_max);
    say_no_quorum(*client_);
    // Nothing is being answered if it was never ready.
    unheard_ = bool(
      client_->stop_job(submission_.job(), ready_)); // no node answers any more
    return unheard_;
  }
  void moved() override {}

  const serve_options& o_;
  line_printer out_{STDOUT_FILENO, [](std::size_t count) {
                      return std::to_string(count)
                             + " lines left out: nobody read them";
                    }};
  signals interrupts_;
  std::unique_ptr<http_front> http_;
  std::unique_ptr<embedded_node> embedded_;
  std::unique_ptr<runtime::client> client_;
  model_submission submission_{o_, *this};
  std::string state_, cause_, error_;
  bool ready_ = false, detached_ = false, stopping_ = false;
  bool unheard_ = false; ///< nobody was there to end the job
};

} // namespace

int run_serve(const serve_options& o) {
  int code = exit_done;
  std::string error;
  {
    serving s(o);
    code = s.run();
    error = s.error();
  } // all its lines are out
  if (!error.empty())
    std::cerr << "shoal: " << error << "\n";
  return code;
}

} // namespace shoal::apps
