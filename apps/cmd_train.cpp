// apps/cmd_train.cpp -- train: submit a run, watch it, bring home its results.
//
// The text, the weights to start from and the description go to a node's
// store; the shoal does the rest. Without a local node one is started in this
// process: the same view, plan and actors, in a throw-away directory.
#include "actors/checkpoint_manifest.hpp"
#include "actors/supervisor.hpp"
#include "apps/commands.hpp"
#include "apps/follow.hpp"
#include "apps/model_upload.hpp"
#include "apps/orderly_stop.hpp"
#include "apps/progress.hpp"
#include "apps/remote.hpp"
#include "apps/run_file.hpp"
#include "apps/signals.hpp"
#include "apps/slow_work.hpp"
#include "apps/status_json.hpp"
#include "runtime/client.hpp"
#include "runtime/leftovers.hpp"
#include "runtime/memory_keeper.hpp"
#include "runtime/model/bigram.hpp"
#include "runtime/model/corpus.hpp"
#include "runtime/model/hf_directory.hpp"
#include "runtime/model/json.hpp"
#include "runtime/node.hpp"
#include "runtime/store/store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

/// How long --detach waits for a job to begin: it may have to wait for room.
constexpr std::chrono::seconds detach_patience{30};

/// A node in this process and its directory, both gone at the end.
class embedded_node {
public:
  embedded_node(const train_options& o, progress& out) {
    runtime::remove_abandoned_dirs(fs::temp_directory_path(),
                                   runtime::train_folder);
    folder_ = fs::temp_directory_path()
              / (runtime::train_folder + std::to_string(getpid()));
    make_own(folder_);
    runtime::node_config c;
    c.name = "train";
    c.data_dir = folder_;
    c.join = o.join;
    c.cluster_key_file = o.at.cluster_key;
    c.threads = o.threads;
    c.embedded = true;
    c.discover = false;
    c.observer.say = [&out](const std::string& text) {
      static_cast<void>(out);
      std::cerr << text << "\n";
    };
    runtime::role_table roles;
    actors::add_builtin(roles);
    node_ = std::make_unique<runtime::node>(c, roles);
  }
  ~embedded_node() {
    node_->leave(std::chrono::seconds(10), false);
    node_->wait_stopped(std::chrono::seconds(15));
    node_.reset();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const fs::path& folder() const { return folder_; }

private:
  /// A directory that nobody else has made or can look into.
  static void make_own(const fs::path& folder) {
    struct stat is {};
    if (::lstat(folder.c_str(), &is) == 0 && S_ISDIR(is.st_mode)
        && is.st_uid == ::getuid())
      fs::remove_all(folder); // of an earlier process with this number
    if (::mkdir(folder.c_str(), 0700) != 0)
      throw std::system_error(errno, std::generic_category(), folder.string());
  }

  runtime::memory_keeper keeper_;
  fs::path folder_;
  std::unique_ptr<runtime::node> node_;
};

class training {
public:
  explicit training(const train_options& o) : o_(o) {}

  int run() {
    auto loaded = load_run(o_.run);
    if (!loaded)
      return fail(loaded.message(), exit_usage);
    run_ = *loaded;
    if (run_.data_paths.empty())
      return fail("no text: give --data PATH or [data] paths", exit_usage);
    try {
      out_ = std::make_unique<progress>(run_, o_.out, o_.json);
    } catch (const std::system_error& e) {
      return fail(o_.out.string() + ": " + e.what());
    }
    if (run_.model.wants_dropout)
      out_->say("notice", "the model's dropout is taken as 0");
    std::ofstream(o_.out / "run.toml") << runtime::to_toml(run_);
    if (o_.json)
      std::cout << R"({"event":"config","run":)" << runtime::to_json(run_)
                << "}" << std::endl;
    else
      std::cout << runtime::to_toml(run_) << "\n";
    if (!o_.resume)
      set_aside_checkpoints();
    if (auto sent = submit(); !sent)
      return fail(sent.message());
    if (o_.detach)
      return detach();
    return follow();
  }

private:
  /// Those of an earlier run must not be taken for this one's.
  void set_aside_checkpoints() {
    if (checkpoints(o_.out).empty())
      return;
    std::error_code error;
    fs::path aside;
    for (int n = 1; aside.empty() || fs::exists(aside, error); ++n)
      aside = o_.out / ("checkpoint.old-" + std::to_string(n));
    fs::rename(o_.out / "checkpoint", aside, error);
    out_->say("notice",
              error
                ? (o_.out / "checkpoint").string() + ": " + error.message()
                : "checkpoints of an earlier run are now in " + aside.string()
                    + " (--resume goes on from "
                      "them)");
  }

  int fail(const std::string& text, int code = exit_failed) {
    if (out_)
      out_->settle();
    std::cerr << "shoal: " << text << "\n";
    return code;
  }

  std::string job_text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", (unsigned long long)job_);
    return text;
  }

  model::status connect() {
    runtime::client_config c = client_of(o_.at);
    c.say = [this](const std::string& text) { out_->say("notice", text); };
    client_ = std::make_unique<runtime::client>(c);
    if (!client_->connect()) {
      out_->say("notice", "using the node at " + client_->where());
      return model::done{};
    }
    if (!o_.at.name.empty() || !o_.at.data_dir.empty() || !o_.at.peers.empty())
      return failure{client_->text()}; // that node was asked for
    if (o_.detach)
      return failure{"--detach needs a running node: start `shoal node`"};
    out_->say("notice", "no node runs here: training in this process");
    try {
      embedded_ = std::make_unique<embedded_node>(o_, *out_);
    } catch (const std::exception& e) {
      return failure{e.what()};
    }
    c.data_dir = embedded_->folder();
    client_ = std::make_unique<runtime::client>(c);
    if (client_->connect())
      return failure{client_->text()};
    return model::done{};
  }

  /// The text as tokens; the tokenizer is trained first where that is asked
  /// for, or is that of the checkpoint.
  model::result<model::corpus> text_of_run(model::corpus_report& report) {
    slow_work slow(
      [](const std::string& line) { std::cerr << "shoal: " << line << "\n"; });
    const model::watch told = [&](std::string_view what, std::uint64_t done,
                                  std::uint64_t all) {
      slow.at(what, done, all);
      return !interrupts_.seen();
    };
    if (run_.data_tokenizer != "bpe")
      return read_text(run_, {}, &report, told);
    if (!o_.resume)
      return read_text_for_tokenizer(run_, o_.out, report, told);
    const auto found = checkpoints(o_.out);
    if (found.empty())
      return no_checkpoint();
    const auto config = model::load_config(found.back().second);
    if (!config)
      return config.why();
    run_.model.vocab_size = config->vocab_size;
    return read_text(run_, found.back().second, &report, told);
  }

  failure no_checkpoint() const {
    return {"--resume: no checkpoint in " + (o_.out / "checkpoint").string()};
  }

  model::status submit() {
    model::corpus_report report;
    auto text = text_of_run(report);
    if (!text)
      return failure{"data: " + text.message()};
    if (text->train_size() <= std::uint64_t(run_.seq_len))
      return failure{"data: only " + std::to_string(text->train_size())
                     + " tokens to train on, fewer than training.seq_len + 1"};
    if (run_.data_tokenizer == "bpe") // the vocabulary is known only now
      std::ofstream(o_.out / "run.toml") << runtime::to_toml(run_);
    describe(*text, report);
    if (auto connected = connect(); !connected)
      return connected;
    core::job_entry entry = make_entry(run_, o_.run.run_file.stem().string());
    text_ = model::serialise(*text);
    if (client_->put_blob(text_, entry.data))
      return failure{client_->text()};
    entry.data_bytes = text_.size();
    if (auto put = put_origin(entry); !put)
      return put;
    if (client_->submit(entry, job_))
      return failure{client_->text()};
    learn_addresses();
    return model::done{};
  }

  void learn_addresses() {
    std::string text;
    if (client_->status(text))
      return;
    const auto status = parse_status(text);
    if (!status)
      return;
    for (const auto& peer : (*status)["peers"])
      for (const auto& address : peer["addresses"])
        addresses_.push_back(address.get<std::string>());
  }

  void describe(const model::corpus& text, const model::corpus_report& report) {
    for (const std::string& notice : report.notices)
      out_->say("notice", notice);
    char line[200];
    std::snprintf(line, sizeof line,
                  "text: %llu files, %llu tokens to train on, %llu held out",
                  (unsigned long long)report.read.files,
                  (unsigned long long)text.train_size(),
                  (unsigned long long)text.validation_size());
    out_->say("corpus", line);
    if (!o_.bigram || !text.narrow())
      return;
    std::snprintf(line, sizeof line,
                  "held-out loss of a byte-bigram model: %.4f",
                  model::bigram_validation_loss(text));
    out_->say("bigram", line);
  }

  /// Weights or a checkpoint to start from, or the tokenizer that was trained.
  model::status put_origin(core::job_entry& entry) {
    fs::path from = run_.model_path;
    std::uint64_t step = 0;
    if (o_.resume) {
      const auto found = checkpoints(o_.out);
      if (found.empty())
        return no_checkpoint();
      step = std::uint64_t(found.back().first);
      from = found.back().second;
      if (step >= std::uint64_t(run_.steps))
        return failure{"--resume: " + from.string() + " is at step "
                       + std::to_string(step)
                       + " of training.steps = " + std::to_string(run_.steps)};
      out_->say("notice", "resuming from " + from.string());
    }
    const bool tokenizer = from.empty() && run_.data_tokenizer == "bpe";
    if (from.empty() && !tokenizer)
      return model::done{};
    const put_pieces put =
      [this](std::span<const std::span<const std::byte>> pieces,
             core::blob_digest& digest) -> model::status {
      if (client_->put_pieces(pieces, digest))
        return failure{client_->text()};
      return model::done{};
    };
    auto sent =
      tokenizer ? upload_tokenizer(o_.out, put) : upload_model(from, step, put);
    if (!sent)
      return sent.why();
    entry.origin = sent->manifest;
    entry.origin_bytes = sent->bytes;
    entry.origin_step = step;
    return model::done{};
  }

  /// Stays until step 1 has run: then the job's text is with several peers,
  /// and any of them may die.
  int detach() {
    const auto until = std::chrono::steady_clock::now() + detach_patience;
    std::uint64_t next = 0;
    bool runs = false;
    while (!runs && std::chrono::steady_clock::now() < until) {
      std::vector<job_event> events;
      if (client_->events(job_, next, events))
        return fail("job " + job_text() + " was submitted, but its node is "
                    + "lost before others had its data: " + client_->text());
      for (const job_event& e : events)
        runs = runs || e.kind == job_event_kind::step
               || e.kind == job_event_kind::done;
    }
    if (!runs)
      out_->say("notice", "the job does not run yet (see `shoal status`); "
                          "until it does, its data may be with "
                            + client_->where() + " alone");
    out_->say("submitted",
              "job " + job_text() + " submitted to " + client_->where()
                + "; `shoal attach " + job_text()
                + " --out DIR` fetches what it makes",
              job_text());
    return exit_done;
  }

  /// The watching client is busy: asks by another one.
  void stop_job(bool drain) {
    runtime::client_config c;
    c.data_dir = embedded_ ? embedded_->folder() : data_dir_of(o_.at);
    c.addresses = addresses_; // its node may be gone by now
    c.cluster_key_file = o_.at.cluster_key;
    runtime::client asking(c);
    if (asking.connect() || asking.stop_job(job_, drain))
      std::cerr << "shoal: " << asking.text() << "\n";
  }

  /// Asked again and again while the job is watched. @returns whether to end
  bool look_at_stop() {
    const auto now = orderly_stop::clock::now();
    if (interrupts_.seen())
      stop_.ask(now);
    const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(stop_.patience()).count();
    switch (stop_.next(now)) {
    case orderly_stop::action::end_at_once:
      std::cerr << "shoal: no step has ended for " << seconds
                << " s: the job ends at once, without a checkpoint\n";
      stop_job(false);
      return false;
    case orderly_stop::action::give_up:
      return true;
    case orderly_stop::action::none:
      break;
    }
    return false;
  }

  int follow() {
    interrupts_.on_first([this] {
      std::cerr << "\nshoal: stopping after this step, with a checkpoint "
                   "(again: stop at once)\n";
      stop_job(true);
    });
    follow_config f;
    f.folder = o_.out;
    f.keep = run_.keep_latest_k;
    f.at = client_of(o_.at);
    f.at.addresses.insert(f.at.addresses.end(), addresses_.begin(),
                          addresses_.end());
    f.hooks.moved = [this] { give_again(); };
    const follower* watching = nullptr;
    f.hooks.stop = [this, &watching] {
      const bool runs = watching && watching->state().empty();
      return runs && look_at_stop();
    };
    f.seen = [this](const job_event& e) {
      if (e.kind != job_event_kind::step)
        return;
      text_ = {}; // others have it by now
      stop_.stepped(orderly_stop::clock::now());
    };
    follower watch(*client_, *out_, f);
    watching = &watch;
    if (watch.run(job_))
      return fail(client_->text());
    if (watch.state().empty() && stop_.at_once())
      return fail("the job was to end, and nobody has answered: it may go on; "
                  "see `shoal jobs`, and `shoal cancel "
                  + job_text() + " --now`");
    if (watch.state() == "cancelled" && interrupts_.seen())
      return stop_.at_once() ? exit_failed : exit_done;
    if (watch.state() == "done")
      return watch.saved() ? exit_done
                           : fail("the run is done, but its model is not in "
                                  + o_.out.string());
    if (watch.state() == "cancelled" && !watch.newest().empty())
      return fail("the job was cancelled after step "
                  + std::to_string(watch.last_step())
                  + " (by `shoal cancel`, or its last peers left); the same "
                    "command with --resume goes on from "
                  + watch.newest().string());
    return fail("the job ended as " + watch.state());
  }

  /// Until the first step only the node that took the job may have its data,
  /// and that one is gone.
  void give_again() {
    if (text_.empty())
      return;
    core::blob_digest same{};
    core::job_entry again;
    if (client_->put_blob(text_, same) || !put_origin(again))
      out_->say("notice", "the job's data could not be given to "
                            + client_->where() + ": " + client_->text());
  }

  const train_options& o_;
  signals interrupts_; // before any thread
  runtime::run_config run_;
  std::unique_ptr<progress> out_;
  std::unique_ptr<embedded_node> embedded_;
  std::unique_ptr<runtime::client> client_;
  core::job_id job_ = 0;
  orderly_stop stop_;
  std::vector<std::string> addresses_; ///< of the shoal, when submitted
  std::vector<std::byte> text_;        ///< the job's data, until the first step
};

} // namespace

int run_train(const train_options& o) {
  return training(o).run();
}

} // namespace shoal::apps
