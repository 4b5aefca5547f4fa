// apps/train/cmd_train.cpp -- train: submits a run, watches it, gets its results.
//
// The text, the initial weights and the description go to a node's store; the
// shoal does the rest. Results go to the run's own folder (out_folder.hpp). If no
// node runs here, one is started in this process.
#include "apps/common/commands.hpp"
#include "apps/common/progress.hpp"
#include "apps/common/report.hpp"
#include "apps/remote/await_join.hpp"
#include "apps/remote/embedded_node.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/submit/job_name.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/submit/run_submission.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/orderly_stop.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "apps/train/detached_start.hpp"
#include "apps/train/example_run.hpp"
#include "apps/train/follow.hpp"
#include "apps/train/jobs_of_run.hpp"
#include "apps/train/out_folder.hpp"
#include "apps/train/resumed_run.hpp"
#include "apps/train/run_data.hpp"
#include "apps/train/run_lines.hpp"
#include "apps/transfer/model_upload.hpp" // check_model
#include "runtime/control/client.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/model/files/safetensors.hpp" // no_weights

#include <atomic>
#include <iostream>
#include <optional>
#include <set>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

class training final : private follow_host {
public:
  explicit training(const train_options& o) : o_(o) {}

  int run() {
    if (o_.resume) {
      auto found = resumed_run::find(o_);
      if (!found)
        return fail(found.message());
      resumed_ = *std::move(found);
    }
    int code = exit_usage;
    auto loaded = resumed_ ? resumed_->load(o_.run) : load_run(o_.run, &code);
    if (!loaded)
      return fail(loaded.message(), interrupted() ? exit_interrupted : code);
    run_ = *loaded;
    if (run_.data_paths.empty())
      return fail("no text: give --data PATH or [data] paths", exit_usage);
    out_ = std::make_unique<progress>(run_, o_.json);
    if (resumed_ && resumed_->unpublished(run_)) {
      const auto made = resumed_->publish(run_);
      if (!made)
        return fail(made.message());
      out_->say("notice", *made);
      return exit_done;
    }
    for (const std::string& line : changed_keys(o_.run))
      out_->say("notice", line);
    if (auto ready = open_folder(); !ready)
      return fail(ready.message() + who_sets(o_.run, ready.message()));
    if (o_.detach) // before the text is read, which may take long
      if (auto there = find_node(); !there)
        return fail(there.message());
    if (run_.model.wants_dropout)
      out_->say("notice", "the model's dropout is taken as 0");
    if (auto whole = check_origin(); !whole)
      return fail(whole.message(), code_now());
    if (auto sent = submit(); !sent)
      return fail(sent.message(), code_now());
    if (o_.detach)
      return detach();
    return follow();
  }
  bool interrupted() const { return interrupts_.seen(); }

private:
  int code_now() { return interrupted() ? exit_interrupted : exit_failed; }

  /// Decides all about --out that does not depend on the text. A run that
  /// others will watch has no folder yet, unless it goes on in one.
  model::status open_folder() {
    if (o_.detach && !o_.resume)
      return model::done{};
    out_request request;
    request.folder = o_.out;
    request.what =
      o_.resume ? out_request::purpose::resume : out_request::purpose::new_run;
    request.run = run_;
    request.overwrite = o_.overwrite;
    if (resumed_)
      request.step = std::int64_t(resumed_->step());
    auto opened = out_folder::open(std::move(request));
    if (!opened)
      return opened.why();
    if (resumed_) // after the check that it is the same run
      if (auto more = resumed_->has_steps(run_); !more)
        return more;
    folder_ = *std::move(opened);
    say_notices();
    return model::done{};
  }

  /// --out, which may be moved while the run writes there.
  const fs::path& out() const { return folder_ ? folder_->path() : o_.out; }

  void say_notices() {
    for (const std::string& notice : folder_->take_notices())
      out_->say("notice", notice);
  }

  int fail(const std::string& text, int code = exit_failed) {
    if (out_)
      out_->settle();
    return apps::fail(text, code);
  }

  std::string job_text() const { return core::job_text(job_); }
  node_address at() const { return address_now(o_.at, client_.get()); }
  std::string attach_line() const {
    return "`" + command_line("attach " + job_text(), at(), out()) + "`";
  }
  std::string resume_line() const { return resume_text(out(), o_.at, at()); }
  std::string ends_it(const char* how) const {
    return ": it may go on; see `" + command_line("jobs", at()) + "`, and "
           + cancel_line(how);
  }
  std::string cancel_line(const char* how) const {
    return "`" + command_line("cancel " + job_text() + how, at()) + "`";
  }

  /// Connects to a node that runs; without one, client_ asks none.
  /// @returns why the run cannot go on
  model::status find_node() {
    runtime::client_config c = client_of(o_.at);
    c.say = [this](const std::string& text) { out_->say("notice", text); };
    client_ = std::make_unique<runtime::client>(c);
    const auto error = client_->connect();
    has_node_ = !error;
    if (error && (names_a_node(o_.at) || error != runtime::errc::no_node))
      return failure{client_->text()
                     + (o_.at.name.empty() || error != runtime::errc::no_node
                          ? ""
                          : " (--name is of a node; a job's name is given by "
                            "--job.name)")};
    if (error && o_.detach)
      return failure{"--detach needs a running node: start `shoal node`"};
    return model::done{};
  }

  model::status connect() {
    if (auto found = find_node(); !found)
      return found;
    if (has_node_) {
      out_->say("notice", "using the node at " + client_->where());
      if (!o_.join.empty() || o_.threads != 0)
        out_->say("notice", std::string(o_.join.empty()   ? "--threads"
                                        : o_.threads == 0 ? "--join"
                                                          : "--join, --threads")
                              + ": without effect, as a node runs here, which "
                                "has its own settings");
      return model::done{};
    }
    out_->say("notice", "no node runs here: training in this process");
    try {
      embedded_ = std::make_unique<embedded_node>(
        embedded_config{"train",
                        o_.join,
                        o_.at.cluster_key,
                        o_.threads,
                        o_.out / "checkpoint",
                        {}},
        [out = out_.get()](const std::string& text) { out->aside(text); });
    } catch (const std::exception& e) {
      return failure{e.what()};
    }
    runtime::client_config c = client_of(o_.at);
    c.say = [this](const std::string& text) { out_->say("notice", text); };
    c.data_dir = embedded_->folder();
    client_ = std::make_unique<runtime::client>(c);
    if (client_->connect())
      return failure{client_->text()};
    if (o_.join.empty())
      return model::done{};
    return await_join(*client_, o_.join, c.say,
                      [this] { return !interrupts_.seen(); });
  }

  /// Shows the progress of slow work, and cancels it at Ctrl-C.
  model::watch watch_work() {
    return shown_work([this] { return !interrupts_.seen(); });
  }

  /// Damaged weights are reported before the text is read, not after.
  model::status check_origin() {
    const fs::path from =
      resumed_ ? resumed_->from() : fs::path(run_.model_path);
    if (from.empty())
      return model::done{};
    auto whole = resumed_ ? resumed_->check_models(watch_work())
                          : check_model(from, watch_work());
    say_unused(*out_, from);
    if (interrupts_.seen())
      return failure{"interrupted"};
    if (whole || resumed_)
      return whole;
    const bool there = model::no_weights(from).empty();
    const char* way = there ? "; if its files are damaged, get them again" : "";
    return failure{"model.path: " + whole.message() + way};
  }

  model::status submit() {
    model::corpus_report report;
    auto text = data_.read(report, watch_work());
    if (!text)
      return failure{"data: " + text.message()
                     + (resumed_ ? resumed_->way_to_text(o_.run) : "")};
    if (auto enough = check_text(run_, *text, report); !enough)
      return enough;
    if (folder_) // the size of a trained vocabulary is known only now
      folder_->update(run_);
    introduce(*out_, run_, o_.json);
    describe(*out_, run_, *text, report, o_.bigram);
    const std::string digest = data_.keep(*text);
    if (folder_)
      if (auto same = folder_->check_text(digest); !same)
        return same;
    if (auto connected = connect(); !connected)
      return connected;
    client_->watch_uploads(
      [this, slow = slow_notice(*out_, "uploading")](std::size_t) mutable {
        slow();
        return !interrupts_.seen() || job_ != 0;
      });
    if (auto idle = check_jobs(); !idle)
      return idle;
    const std::string name = name_of_job();
    core::job_entry entry = make_entry(run_, name);
    if (resumed_)
      out_->say("notice", resumed_text(resumed_->from()));
    const std::string where =
      embedded_ ? " (" + embedded_->where_text() + ")" : "";
    if (auto put = data_.put(*client_, entry, where); !put)
      return put;
    if (folder_)
      if (auto claimed = folder_->claim(digest, name); !claimed)
        return claimed;
    if (client_->submit(entry, job_, [this] { return !interrupts_.seen(); }))
      return failure{client_->text()};
    keep_folder();
    return model::done{};
  }

  /// The job is submitted: from now on its folder stays. If the folder's disk
  /// fills up at this moment, the job runs nevertheless.
  void keep_folder() {
    if (!folder_)
      return;
    if (auto kept = folder_->keep(job_text(), way_to_watch(),
                                  !embedded_ || !o_.join.empty());
        !kept)
      out_->say("notice", kept.message());
    say_notices();
    if (o_.detach) { // others watch it: they may have the folder
      if (resumed_)
        mark_resumed(*out_, o_.out, resumed_->from());
      folder_.reset();
      return;
    }
    if (data_.tokenizer()) // `shoal audit` reads the text like this run
      if (auto copied = data_.tokenizer()->write_to(o_.out); !copied)
        out_->say("notice", copied.message());
    say_where_keys_are(*out_, o_.out, o_.json);
    try {
      out_->write_to(o_.out, false);
    } catch (const std::system_error& e) {
      out_->say("notice", "no metrics are kept: " + std::string(e.what()));
    }
  }

  /// Of the node that runs in this process, if one does.
  node_address own_address() const {
    node_address at = o_.at;
    if (embedded_)
      at.data_dir = embedded_->folder();
    return at;
  }

  /// The command with which others can watch the job.
  std::string way_to_watch() const {
    return command_line("attach " + job_text(), own_address());
  }

  /// Gets the shoal's addresses and the names of its jobs, and checks that the
  /// shoal has nothing of this run that the folder lacks.
  model::status check_jobs() {
    std::string text;
    if (client_->status(text))
      return model::done{};
    const auto status = parse_status(text);
    if (!status)
      return model::done{};
    if (const std::string why = no_quorum_text(*status); !why.empty())
      out_->say("notice",
                why + ". Waiting for a quorum, 30 s at most (Ctrl-C: end)");
    addresses_ = client_->addresses();
    running_ = running_jobs(*status);
    for (const auto& job : (*status)["jobs"])
      if (serves(job) && text_of(job, "state") == "running")
        served_.insert(text_of(job, "name"));
    if (!o_.resume)
      return model::done{};
    const auto apart =
      nothing_newer(*client_, *status,
                    {o_.out, folder_->jobs(), resumed_->step()}, own_address());
    if (!apart)
      return apart.why();
    for (const std::string& line : *apart)
      out_->say("notice", line);
    return model::done{};
  }

  std::string name_of_job() const {
    const bool folder = o_.resume || !o_.detach;
    const std::string wanted =
      job_name({resumed_ ? resumed_->name(run_) : std::string(), run_.job_name,
                folder ? o_.out : fs::path(), o_.run.run_file});
    std::string name = unique_job_name(wanted, running_);
    if (name != wanted)
      out_->say("notice", served_.contains(wanted)
                            ? "a model named \"" + wanted
                                + "\" is served: this run is named \"" + name
                                + "\""
                            : "a job named \"" + wanted
                                + "\" is running: this one is named \"" + name
                                + "\"" + (o_.resume ? same_run_text : ""));
    return name;
  }

  /// Stays until step 1 has run: then several peers have the job's text, and
  /// any of them may die.
  int detach() {
    const std::string attach =
      "`"
      + command_line("attach " + job_text(), o_.at,
                     o_.resume ? o_.out : fs::path("DIR"))
      + "`";
    const std::string unwatched =
      core::shown(unwatched_text(job_text(), cancel_line(""), attach));
    interrupts_.on_second(unwatched);
    if (const auto begun = await_first_step(
          *client_, *out_, job_, o_.at, [this] { return interrupts_.seen(); });
        !begun)
      return fail(begun.message());
    if (interrupts_.seen())
      return fail(unwatched, exit_interrupted);
    out_->say("submitted",
              "job " + job_text() + " submitted to " + client_->where() + "; "
                + attach + " fetches what it makes",
              job_text());
    return exit_done;
  }

  /// @returns whether a node has answered
  bool ask_to_stop(bool drain) {
    runtime::client_config c = client_again(o_.at);
    if (embedded_)
      c.data_dir = embedded_->folder();
    c.named = false; // its node may be gone by now
    std::ranges::copy(addresses_, std::back_inserter(c.addresses));
    return stop_job(c, job_, drain);
  }

  /// Called repeatedly while the job is watched. @returns whether to end
  bool look_at_stop() {
    if (unheard_)
      return true;
    say_at_second(); // here, as only this thread may ask where the client is
    const auto now = orderly_stop::clock::now();
    if (interrupts_.seen())
      stop_.ask(now);
    const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(stop_.patience()).count();
    const auto next = stop_.next(now);
    if (next == orderly_stop::action::end_at_once) {
      std::cerr << "shoal: no step has ended for " << seconds
                << " s: the job ends at once, without a checkpoint\n";
      ask_to_stop(false);
    }
    return next == orderly_stop::action::give_up;
  }

  int follow() {
    say_at_second();
    const int code = watch();
    interrupts_.end_first(); // it uses the objects that are destroyed now
    return code;
  }

  // follow_host ---------------------------------------------------------------
  bool stops() override {
    if (!way_out_.empty()) // after the event that it is for
      out_->say("notice", std::exchange(way_out_, {}));
    return !ended_ && look_at_stop();
  }
  bool lost() override { return to_end_; }
  void moved() override {
    if (data_.held()) // before the first step
      out_->say("notice", data_.put_again(*client_));
  }
  void seen(const job_event& e) override {
    if (e.kind == job_event_kind::done) {
      ended_ = true;
      finished_ = e.text == "done";
    }
    if (embedded_)
      way_out_ += embedded_->way_out(e);
    no_room_ = embedded_ ? embedded_->is_full() : waits_for_room(e);
    if (e.kind != job_event_kind::step)
      return;
    data_.release();
    stop_.stepped(orderly_stop::clock::now());
  }
  bool give(const core::blob_digest& wanted) override {
    if (!data_.is_text(wanted))
      return false;
    out_->say("notice", data_.put_again(*client_));
    return true;
  }
  bool gives_up() override { return giving_up_ && interrupts_.seen(); }

  /// Sets the text for a second signal.
  void say_at_second() {
    const std::string line = core::shown(
      embedded_
        ? stopped_text(out(), resume_line())
        : unwatched_text(job_text(), to_end_ ? std::string() : cancel_line(""),
                         attach_line()));
    interrupts_.on_second(line);
    if (!embedded_) // the shoal does not need this terminal
      interrupts_.hangup_ends(line);
  }

  /// The last checkpoint cannot be written: the next signal ends the trials. If
  /// the first one has ended the run, that is the second one.
  void trying(const fs::path& kept) override {
    const std::string line =
      kept_text(kept, out(), finished_, embedded_ ? "" : attach_line());
    giving_up_ = !interrupts_.seen();
    interrupts_.on_first([] {});
    interrupts_.on_second(core::shown(line));
    interrupts_.hangup_ends(core::shown(line));
  }

  int watch() {
    interrupts_.on_first([this] {
      std::cerr << "\nshoal: stopping after this step, with a checkpoint ("
                << again_text << ")"
                << (no_room_ ? ". There is no room for it: make room within a "
                               "minute, or the steps after the newest "
                               "checkpoint in --out are lost"
                             : "")
                << "\n";
      to_end_ = ask_to_stop(true);
      unheard_ = !to_end_;
    });
    follow_config f;
    f.folder = o_.out;
    f.place = [this] {
      auto now = folder_->place();
      say_notices();
      return now;
    };
    f.elsewhere = [this](std::uint64_t step) {
      return last_of_others(*client_, job_text(), step, own_address(), *out_);
    };
    f.keep = run_.keep_latest_k;
    f.origin = resumed_ ? resumed_->step() : 0;
    f.at = client_again(o_.at);
    std::ranges::copy(addresses_, std::back_inserter(f.at.addresses));
    if (embedded_) // its node's store ends with it
      f.spare_in = runtime::temporary_folder();
    else
      f.attach = attach_line();
    follower watch(*client_, *out_, *this, f);
    const auto broken = watch.run(job_);
    if (watch.has_all()) // else the next --resume asks
      static_cast<void>(folder_->close(job_text()));
    if (broken == runtime::errc::no_node && to_end_)
      return fail("the node is gone before job " + job_text()
                    + " has ended, and no other one answers: when one does, "
                    + attach_line() + " fetches its checkpoint",
                  exit_interrupted);
    if (broken)
      return fail(client_->text()
                  + (embedded_ ? ""
                               : "; the job may go on: " + attach_line()
                                   + " watches it"));
    if (watch.state().empty() && unheard_)
      return fail("no node has taken the request to end job " + job_text()
                    + ends_it(""),
                  exit_interrupted);
    if (watch.state().empty() && stop_.at_once())
      return fail("the job was to end, and nobody has answered"
                  + ends_it(" --now"));
    if (!watch.spared().empty())
      return fail(kept_text(watch.spared(), out(), watch.state() == "done"),
                  exit_interrupted);
    if (watch.state() == "cancelled" && interrupts_.seen()) {
      std::cerr << "shoal: stopped after step " << watch.last_step()
                << (watch.newest().empty()
                      ? ", without a checkpoint to go on from\n"
                      : "; to go on, run " + resume_line() + "\n");
      return stop_.at_once() ? exit_failed : exit_interrupted;
    }
    if (watch.state() == "done")
      return watch.saved()
               ? exit_done
               : fail(
                 "the run is done, but its model is not in " + out().string()
                 + (embedded_ ? "" : "; " + attach_line() + " fetches it"));
    if (watch.state() == "cancelled"
        && (!watch.newest().empty() || watch.told_step()))
      return fail(cancelled_text(watch, resume_line(), f.attach));
    return fail(ended_text(watch, job_text()));
  }

  const train_options& o_;
  signals interrupts_; // before any thread starts
  runtime::run_config run_;
  std::optional<resumed_run> resumed_; ///< of --resume
  run_data data_{run_, resumed_};
  std::unique_ptr<progress> out_;
  std::unique_ptr<out_folder> folder_; ///< none: no files are written
  std::unique_ptr<embedded_node> embedded_;
  std::unique_ptr<runtime::client> client_;
  bool has_node_ = false; ///< client_ has found one
  core::job_id job_ = 0;
  orderly_stop stop_;
  bool giving_up_ = false; ///< the last checkpoint, at the first signal
  std::atomic<bool> unheard_{false};   ///< no node was there to end the job
  std::atomic<bool> to_end_{false};    ///< a node has agreed to end it
  std::vector<std::string> addresses_; ///< of the shoal, when submitted
  std::set<std::string> running_;      ///< names of its jobs
  std::set<std::string> served_;       ///< of those that serve a model
  std::atomic<bool> no_room_{false};   ///< no disk takes a checkpoint
  bool ended_ = false;                 ///< the job
  bool finished_ = false;              ///< it has run all its steps
  std::string way_out_;                ///< of a full disk; not said yet
};

} // namespace

int run_train(const train_options& o) {
  if (o.example) {
    std::cout << example_run;
    return exit_done;
  }
  train_options all = o;
  if (auto taken = take_folder(all); !taken) {
    std::cerr << "shoal: " << taken.message() << "\n";
    return exit_usage;
  }
  // Before it takes signals over: it may wait for an answer.
  if (const int no = resumed_run::may_go_alone(all); no != exit_done)
    return no;
  // Of commands that were killed, or whose checkpoint was moved away.
  runtime::remove_empty_kept_folders();
  training run(all);
  all.run.download.goes_on = [&run] { return !run.interrupted(); };
  return run.run();
}

} // namespace shoal::apps
