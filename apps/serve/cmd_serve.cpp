// apps/serve/cmd_serve.cpp -- serve: uploads a model, submits the job that serves
// it, shows its requests.
//
// Without a local node one is started in this process: the same view, plan and
// actors, in a temporary directory.
#include "apps/common/commands.hpp"
#include "apps/remote/embedded_node.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/serve/serve_events.hpp"
#include "apps/serve/served_description.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/line_printer.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "apps/train/job_name.hpp"
#include "apps/train/model_folder.hpp"
#include "apps/train/run_file.hpp" // user_at_host
#include "apps/transfer/model_upload.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

class serving final : private runtime::follow_handler {
public:
  explicit serving(const serve_options& o) : o_(o) {}

  int run() {
    auto folder = model_in(o_.model);
    if (!folder)
      return fail(folder.message());
    auto config = describe_served(o_, *folder);
    if (!config)
      return fail(config.message());
    if (auto whole = check_model(*folder, watch_work()); !whole)
      return fail(whole.message());
    try {
      if (auto connected = connect(); !connected)
        return fail(connected.message());
    } catch (const runtime::usage_error& e) {
      return fail(e.what(), exit_usage);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
    if (auto sent = submit(*folder, *config); !sent)
      return fail(sent.message());
    return follow();
  }

private:
  int fail(const std::string& text, int code = exit_failed) {
    std::cerr << "shoal: " << text << "\n";
    return code;
  }

  void say(const char* event, const std::string& text,
           const serve_ready* ready = nullptr) {
    out_.line(o_.json ? model::json_text(serve_line(event, text, ready))
                      : core::shown(text));
  }

  model::watch watch_work() {
    return shown_work([this] { return !interrupts_.seen(); });
  }

  model::status connect() {
    runtime::client_config c = client_of(o_.at);
    client_ = std::make_unique<runtime::client>(c);
    if (!client_->connect()) {
      say("notice", "using the node at " + client_->where());
      return model::done{};
    }
    if (names_a_node(o_.at))
      return failure{client_->text()};
    if (o_.detach)
      return failure{"--detach needs a running node: start `shoal node`"};
    say("notice", "no node runs here: serving from this process");
    const auto lines = [this](const std::string& text) { say("notice", text); };
    http_ = std::make_unique<http_front>(o_.http, lines);
    runtime::role_table roles;
    http_->open(roles);
    embedded_ = std::make_unique<embedded_node>(
      embedded_config{
        "serve", o_.join, o_.at.cluster_key, o_.threads, {}, http_->endpoint()},
      lines, roles);
    c.data_dir = embedded_->folder();
    client_ = std::make_unique<runtime::client>(c);
    if (client_->connect())
      return failure{client_->text()};
    return model::done{};
  }

  model::status
  submit(const fs::path& folder, const runtime::serve_config& config) {
    std::string text;
    if (client_->status(text))
      return failure{client_->text()};
    std::set<std::string> running;
    if (const auto status = parse_status(text)) {
      if (const std::string why = no_quorum_text(*status); !why.empty())
        say("notice", why + ". Waiting for a quorum");
      if (status->contains("http"))
        endpoint_ = (*status)["http"].get<std::string>();
      for (const auto& job : (*status)["jobs"])
        if (job["state"] == "running")
          running.insert(job["name"].get<std::string>());
    }
    name_ = served_name(o_);
    if (running.contains(name_))
      return failure{"a job named \"" + name_
                     + "\" is running: choose another name by --as, or end it "
                       "by `"
                     + command_line("cancel " + shell_word(name_), o_.at)
                     + "`"};
    core::job_entry entry = served_entry(o_, config, name_);
    entry.user = user_at_host();
    if (const auto status = parse_status(text))
      if (const std::string why = core::never_fits(view_of(*status), entry);
          !why.empty())
        return failure{why}; // before a model is uploaded, which may take long
    const put_pieces put =
      [this](std::span<const std::span<const std::byte>> pieces,
             core::blob_digest& digest) -> model::status {
      if (client_->put_pieces(pieces, digest))
        return failure{client_->text()};
      return model::done{};
    };
    auto sent = upload_model(folder, 0, put);
    if (!sent)
      return sent.why();
    entry.origin = sent->manifest;
    entry.origin_bytes = sent->bytes;
    if (client_->submit(entry, job_))
      return failure{client_->text()};
    return model::done{};
  }

  int follow() {
    const auto error = client_->follow(job_, *this);
    if (error && state_.empty()) {
      if (detached_)
        return exit_done;
      if (interrupts_.seen())
        return exit_interrupted;
      return fail(client_->text());
    }
    if (state_ == "failed")
      return fail("the job failed: " + cause_);
    return interrupts_.seen() ? exit_interrupted : exit_done;
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
        o_.detach ? "; `" + command_line("cancel " + shell_word(name_), o_.at)
                      + "` ends it"
                  : " (Ctrl-C: end)";
      const serve_ready ready{name_, "http://" + endpoint_ + "/v1",
                              core::job_text(job_)};
      say("ready", "\"" + name_ + "\" is served at " + ready.url + end, &ready);
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
      return false;
    stopping_ = true;
    say("notice", "ending: requests that are being answered go on for "
                    + std::to_string(drain_max.count()) + " s at most");
    if (http_)
      http_->drain(drain_max);
    if (client_->stop_job(job_, true))
      return true; // no node answers any more
    return false;
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
  core::job_id job_ = 0;
  std::string name_, endpoint_;
  std::string state_, cause_;
  bool ready_ = false, detached_ = false, stopping_ = false;
};

} // namespace

int run_serve(const serve_options& o) {
  serving s(o);
  return s.run();
}

} // namespace shoal::apps
