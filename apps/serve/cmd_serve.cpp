// apps/serve/cmd_serve.cpp -- serve: uploads a model, or finds the training job
// that is named; submits the job that serves it, shows its requests.
//
// Without a local node one is started in this process: the same view, plan and
// actors, in a temporary directory.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "apps/common/commands.hpp"
#include "apps/remote/embedded_node.hpp"
#include "apps/remote/found_job.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/serve/passed_upload.hpp"
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
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
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

/// An upload that waits for room says so once after this time. It asks for room each
/// 0.2 s, so it has had some if it has not asked for a second.
constexpr std::chrono::seconds room_said_after{10};
constexpr std::chrono::seconds room_asked_within{1};

class serving final : private runtime::follow_handler {
public:
  explicit serving(const serve_options& o) : o_(o) {}

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

  int run_folder() {
    auto folder =
      model_in(o_.model, {true, [this] { return !interrupts_.seen(); }});
    if (!folder)
      return interrupts_.seen() ? exit_interrupted : fail(folder.message());
    auto config = describe_served(o_, *folder);
    if (!config)
      return fail(config.message());
    if (auto whole = check_model(*folder, watch_work()); !whole)
      return fail(whole.message());
    if (const auto unused = model::unused_tensors(*folder); !unused.empty())
      say("notice", unused);
    if (const int wrong = connected(); wrong != exit_done)
      return wrong;
    const put_pieces put =
      [this](std::span<const std::span<const std::byte>> pieces,
             core::blob_digest& digest) -> model::status {
      if (client_->put_pieces(pieces, digest))
        return failure{client_->text()};
      return model::done{};
    };
    const auto bytes = weights_bytes(*folder);
    if (!bytes)
      return fail(bytes.message());
    std::optional<passed_upload> passed;
    const auto upload = [&](core::job_entry& entry) -> model::status {
      if (passes_)
        say("notice", "the disk of this node has no room for the whole model: "
                      "its files go on to the peers that keep them");
      if (passes_)
        passed.emplace(*folder, *client_, room_);
      auto sent = passes_ ? passed->list() : upload_weights(*folder, put);
      if (!sent)
        return sent.why();
      entry.origin = sent->manifest;
      entry.origin_bytes = sent->bytes;
      if (!passes_)
        return model::done{};
      core::job_entry job = entry;
      job.submitter = node_;
      const std::string why =
        core::cannot_be_kept(view_, job, passed->weight_files(), node_);
      return why.empty() ? model::status(model::done{}) : failure{why};
    };
    const std::string name = name_of_files(o_.model);
    if (auto sent = submit(*config, name, upload, *bytes); !sent)
      return fail(sent.message());
    if (passes_)
      if (auto sent = passed->weights([this] { return waits_for_room(); });
          !sent) {
        static_cast<void>(client_->stop_job(job_, false));
        return interrupts_.seen() ? exit_interrupted : fail(sent.message());
      }
    return follow();
  }

  /// A job whose checkpoints are served.
  struct followed {
    std::string name;
    core::job_id id = 0;
    std::uint64_t step = 0;
    core::blob_digest manifest{};
    std::vector<std::byte> listing; ///< the manifest
    std::uint64_t bytes = 0;
    runtime::serve_config config;
  };

  int run_job() {
    if (const int wrong = connected(); wrong != exit_done)
      return wrong;
    auto job = find_followed();
    if (!job)
      return fail(job.message());
    say("notice", "\"" + job->name
                    + "\" is a training job: serving its newest checkpoint, of "
                      "step "
                    + std::to_string(job->step) + ", and each newer one");
    const auto give = [&](core::job_entry& entry) -> model::status {
      entry.origin = job->manifest;
      entry.origin_bytes = job->bytes;
      entry.origin_step = job->step;
      if (client_->put_blob(job->listing, entry.origin))
        return failure{client_->text()};
      return model::done{};
    };
    if (auto sent = submit(job->config, job->name + "-served", give); !sent)
      return fail(sent.message());
    return follow();
  }

  model::result<followed> find_followed() {
    const std::string wanted = o_.model.string();
    const auto status = status_of(*client_);
    if (!status)
      return status.why();
    const found_job found = find_job(*status, wanted, which::running_first);
    if (!found.wrong.empty())
      return failure{"there is no folder " + core::shown(wanted) + ", and "
                     + found.wrong};
    const auto is_it = [&](const status_json& j) {
      return text_of(j, "id") == found.text;
    };
    const status_json& job = *std::ranges::find_if((*status)["jobs"], is_it);
    followed out;
    out.name = text_of(job, "name");
    out.id = found.id;
    if (text_of(job, "kind") != "train")
      return failure{"job " + out.name
                     + " serves a model: only the checkpoints "
                       "of a job that trains can be served"};
    if (!job.contains("checkpoint")
        || !core::from_hex(text_of(job["checkpoint"], "digest"), out.manifest))
      return failure{"job " + out.name
                     + " has no checkpoint yet (one comes every "
                       "checkpoint.interval steps)"};
    out.step = job["checkpoint"]["step"].get<std::uint64_t>();
    if (auto read = read_checkpoint(out); !read)
      return failure{"the checkpoint of step " + std::to_string(out.step)
                     + " of job " + out.name + ": " + read.message()};
    return out;
  }

  model::status read_checkpoint(followed& job) {
    if (auto ok = get(job.manifest, actors::manifest_bytes_max, job.listing);
        !ok)
      return ok.why();
    const auto text = [](const std::vector<std::byte>& bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
    };
    const auto listed = actors::parse_manifest(text(job.listing));
    if (!listed)
      return listed.why();
    job.bytes = listed->total_bytes();
    const actors::manifest_file* file = listed->find("config.json");
    if (file == nullptr)
      return failure{"it has no config.json"};
    std::vector<std::byte> bytes;
    if (auto ok = get(file->digest, model::header_bytes_max, bytes); !ok)
      return ok.why();
    const auto config = model::parse_config(text(bytes), "config.json");
    if (!config)
      return config.why();
    // Checkpoints of a run are f32.
    auto described = describe_served(o_, *config, sizeof(float));
    if (!described)
      return described.why();
    job.config = *described;
    job.config.follows = job.id;
    return model::done{};
  }

  model::status get(const core::blob_digest& digest, std::size_t bytes_max,
                    std::vector<std::byte>& out) {
    const auto error =
      client_->get_blob(digest, [&](std::span<const std::byte> piece) {
        if (out.size() + piece.size() > bytes_max)
          return std::make_error_code(std::errc::file_too_large);
        out.insert(out.end(), piece.begin(), piece.end());
        return std::error_code();
      });
    if (error)
      return failure{client_->text()};
    return model::done{};
  }

  /// @returns exit_done, or what the command ends with
  int connected() {
    try {
      if (auto done = connect(); !done)
        return fail(done.message());
    } catch (const runtime::usage_error& e) {
      return fail(e.what(), exit_usage);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
    return exit_done;
  }

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
    c.say = [this](const std::string& text) { say("notice", text); };
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

  /// @param usual_name without --as
  /// @param weights gives the entry its weights
  /// @param bytes of the files that are uploaded; 0: none are
  model::status
  submit(const runtime::serve_config& config, const std::string& usual_name,
         const std::function<model::status(core::job_entry&)>& weights,
         std::uint64_t bytes = 0) {
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
    name_ = served_name(o_, usual_name);
    if (running.contains(name_))
      return failure{"a job named \"" + name_
                     + "\" is running: choose another name by --as, or end it "
                       "by "
                     + cancel_line()};
    core::job_entry entry = served_entry(o_, config, name_);
    entry.user = user_at_host();
    entry.origin_bytes = bytes;
    if (const auto status = parse_status(text)) {
      view_ = view_of(*status);
      if (const std::string why = core::never_fits(view_, entry); !why.empty())
        return failure{why}; // before a model is uploaded, which may take long
      for (const core::member& m : view_.members)
        if (core::to_hex(m.id.peer) == text_of(*status, "self")) {
          node_ = m.id.peer;
          room_ = m.device.disk_bytes;
          passes_ = room_ > 0 && room_ < bytes + bytes / 16;
        }
    }
    if (auto given = weights(entry); !given)
      return given;
    if (client_->submit(entry, job_))
      return failure{client_->text()};
    return model::done{};
  }

  int follow() {
    const auto error = client_->follow(job_, *this);
    if (error && state_.empty()) {
      if (detached_)
        return exit_done;
      if (!interrupts_.seen())
        return fail(client_->text() + goes_on());
    }
    if (unheard_)
      return fail("no node has taken the request to end it" + goes_on(),
                  exit_interrupted);
    if (state_ == "failed")
      return fail("the job failed: " + cause_);
    return interrupts_.seen() ? exit_interrupted : exit_done;
  }

  /// Asked several times a second while the node's disk has no room for the next
  /// file. @returns whether to go on
  bool waits_for_room() {
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_for_room_ > room_asked_within) { // it had room until now
      no_room_since_ = now;
      room_said_ = false;
    }
    asked_for_room_ = now;
    if (now - no_room_since_ > room_said_after
        && !std::exchange(room_said_, true))
      say("notice",
          "the disk of this node is full, and files of the model have "
          "not gone on to other peers for "
            + std::to_string(room_said_after.count())
            + " s: waiting (Ctrl-C: end). Files of jobs that have ended go "
              "some minutes later; disk_bytes of `"
            + command_line("status --json", o_.at)
            + "` is the room of each peer");
    return !interrupts_.seen();
  }

  /// Without its node a command does not know what became of the model.
  std::string goes_on() const {
    return "; other peers that have the model may go on serving it, and so may "
           "that node when it is started again: `"
           + command_line("status", o_.at) + "` there shows whether they do, "
           + cancel_line() + " ends it";
  }
  std::string cancel_line() const {
    return "`" + command_line("cancel " + shell_word(name_), o_.at) + "`";
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
      const serve_ready ready{name_,
                              endpoint_.empty() ? std::string()
                                                : "http://" + endpoint_ + "/v1",
                              core::job_text(job_)};
      const std::string where =
        endpoint_.empty()
          ? "\" is served, but this node answers no clients (--http off): ask "
            "another one"
          : "\" is served at " + ready.url;
      say("ready", "\"" + name_ + where + end, &ready);
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
    // Nothing is being answered if it was never ready.
    unheard_ =
      bool(client_->stop_job(job_, ready_)); // no node answers any more
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
  core::job_id job_ = 0;
  std::string name_, endpoint_;
  std::string state_, cause_;
  bool ready_ = false, detached_ = false, stopping_ = false;
  core::view view_;        ///< before it was submitted
  core::peer_id node_{};   ///< the one that takes the files
  std::uint64_t room_ = 0; ///< of its disk; 0: not known
  std::chrono::steady_clock::time_point no_room_since_{}, asked_for_room_{};
  bool room_said_ = false;
  bool passes_ = false;  ///< the node has no room for the whole model
  bool unheard_ = false; ///< nobody was there to end the job
};

} // namespace

int run_serve(const serve_options& o) {
  serving s(o);
  return s.run();
}

} // namespace shoal::apps
