// apps/train/run_lines.cpp -- writes these lines.
#include "apps/train/run_lines.hpp"

#include "apps/common/metrics_log.hpp"
#include "apps/remote/remote.hpp"    // options_text
#include "apps/terminal/confirm.hpp" // shell_path
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/training/data_order.hpp" // windows_in
#include "runtime/model/data/bigram.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/model/units.hpp"
#include "runtime/observe/metrics_jsonl.hpp"

#include <chrono>
#include <cstdio>
#include <system_error>

namespace shoal::apps {

namespace fs = std::filesystem;

/// Whether the text is taken as bytes though the model knows other tokens.
static bool leaves_tokenizer(const runtime::run_config& run) {
  if (run.data_tokenizer != "bytes" || run.model_path.empty())
    return false;
  const auto kind = model::kind_of_tokenizer(run.model_path);
  return kind && *kind == model::tokenizer_kind::file;
}

void introduce(progress& out, const runtime::run_config& run, bool as_json) {
  if (run.lr == 0)
    out.say("notice", "optimizer.lr is 0: no step will change the weights");
  if (leaves_tokenizer(run))
    out.say("notice", "data.tokenizer is bytes, but " + run.model_path
                        + " has a tokenizer of its own, by which its weights "
                          "were trained: as bytes they must learn all anew; "
                          "leave --tokenizer out to go on with its own");
  if (as_json)
    return out.say_config();
  const auto parameters = model::unit_layout(run.model).parameter_count();
  out.say(
    "notice",
    "run: " + run.model.model_type + " of "
      + core::large_text(double(parameters)) + " parameters, "
      + core::count_text(std::uint64_t(run.steps), "step") + " of "
      + core::count_text(std::uint64_t(run.sequences_per_step()), "sequence")
      + " of " + core::count_text(std::uint64_t(run.seq_len), "token"));
}

void say_where_keys_are(progress& out, const fs::path& folder, bool as_json) {
  if (!as_json)
    out.say("notice", "all keys of the run: " + (folder / "run.toml").string());
}

void say_unused(progress& out, const fs::path& folder) {
  if (const auto unused = model::unused_tensors(folder); !unused.empty())
    out.say("notice", unused);
}

/// The windows of the held-out text that an evaluation takes (see
/// actors/training/data_source.cpp), or why there is none; empty: it takes all,
/// or none is wanted.
static std::string
held_out_text(const runtime::run_config& run, const model::corpus& text) {
  const std::uint64_t have =
    core::windows_in(text.validation_size(), std::size_t(run.seq_len));
  const auto taken = std::uint64_t(run.validation_steps * run.local_batch_size);
  if (!run.validation_enable || run.data_validation_permille == 0)
    return {};
  if (have == 0)
    return "no held-out loss: what is held out is shorter than a sequence "
           "(training.seq_len + 1 = "
           + std::to_string(run.seq_len + 1)
           + " tokens); give more text, or raise data.validation_permille";
  if (have <= taken)
    return {};
  return "the held-out loss is measured on " + std::to_string(taken) + " of "
         + std::to_string(have) + " windows of "
         + core::count_text(std::uint64_t(run.seq_len), "token")
         + ", spread over what is held out";
}

void describe(progress& out, const runtime::run_config& run,
              const model::corpus& text, const model::corpus_report& report,
              bool bigram) {
  for (const std::string& notice : report.notices)
    out.say("notice", notice);
  out.say("corpus", "text: " + core::count_text(report.read.files, "file")
                      + ", " + core::count_text(text.train_size(), "token")
                      + " to train on, "
                      + std::to_string(text.validation_size()) + " held out");
  if (const std::string what = held_out_text(run, text); !what.empty())
    out.say("notice", what);
  char line[200];
  if (bigram && !text.narrow())
    out.say("notice", "no loss of a byte-bigram model: the vocabulary has more "
                      "than 256 tokens");
  if (!bigram || !text.narrow())
    return;
  std::snprintf(line, sizeof line, "held-out loss of a byte-bigram model: %.4f",
                model::bigram_validation_loss(text));
  out.say("bigram", line);
}

std::string resumed_text(const fs::path& from) {
  return std::string(resuming_text) + from.string();
}

void mark_resumed(progress& out, const fs::path& folder, const fs::path& from) {
  runtime::job_event mark; // a notice
  mark.text = resumed_text(from);
  mark.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  std::string why;
  try {
    const auto error =
      runtime::metrics_jsonl(folder / "metrics.jsonl").add(mark);
    why = error ? error.message() : "";
  } catch (const std::system_error& e) {
    why = e.what();
  }
  if (!why.empty())
    out.say("notice",
            "metrics.jsonl does not tell where this job begins: " + why);
}

std::string kept_text(const fs::path& kept, const fs::path& out, bool finished,
                      const std::string& attach) {
  if (kept.empty())
    return "given up: the last checkpoint is not in " + out.string()
           + (attach.empty()
                ? ""
                : "; when there is room, " + attach + " fetches it");
  const std::string into = shell_path((out / "checkpoint").string());
  return "the last checkpoint is not in " + out.string() + "; it is kept in "
         + kept.string() + ". When there is room, `mkdir -p " + into + " && mv "
         + shell_path(kept.string()) + " " + into + "/` puts it there"
         + ", and `shoal train " + shell_path(out.string())
         + (finished ? " --resume` makes it the model there"
                     : " --resume` goes on from it");
}

std::string
resume_text(const fs::path& out, const node_address& named, node_address now) {
  std::string elsewhere;
  if (now.peers != named.peers) { // it may have left by then, too
    elsewhere = " (with --peer " + now.peers.front() + " while that node runs)";
    now = named;
  }
  return "`shoal train " + shell_path(out.string()) + " --resume"
         + options_text(now) + "`" + elsewhere;
}

std::string stopped_text(const fs::path& out, const std::string& resume) {
  return "stopped; steps that no checkpoint in " + out.string()
         + " has are lost. If there is one, " + resume + " goes on from it";
}

std::string unwatched_text(const std::string& job, const std::string& cancel,
                           const std::string& attach) {
  return "stopped watching; job " + job
         + (cancel.empty() ? " ends after its step"
                           : " may go on: " + cancel + " ends it")
         + ". " + attach + " fetches the checkpoint that its peers keep";
}

bool waits_for_room(const runtime::job_event& e) {
  return e.waits && e.text.find("cannot be written") != std::string::npos;
}

std::string ended_text(const follower& watch, const std::string& job) {
  return "job " + job + " "
         + (watch.state() == "failed" ? "failed" : "was " + watch.state())
         + (watch.cause().empty() ? "" : ": " + watch.cause());
}

std::string cancelled_text(const follower& watch, const std::string& resume,
                           const std::string& attach) {
  const std::string what = "the job was cancelled after step "
                           + std::to_string(watch.last_step())
                           + " (by `shoal cancel`, or its last peers left)";
  const std::uint64_t told = watch.told_step().value_or(0);
  const std::string goes_on =
    watch.newest().empty()
      ? "; without it there is no checkpoint to go on from"
      : resume + " goes on from " + watch.newest().string();
  if (told <= watch.newest_step() || attach.empty())
    return what + (watch.newest().empty() ? "" : "; ") + goes_on;
  return what + ". Its last checkpoint, of step " + std::to_string(told)
         + ", is not here: when the peers that hold it are back, " + attach
         + " fetches it"
         + (watch.newest().empty() ? goes_on
                                   : ". Before that, " + goes_on
                                       + " and repeats what was trained since");
}

} // namespace shoal::apps
