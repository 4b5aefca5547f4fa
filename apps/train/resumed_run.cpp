// apps/train/resumed_run.cpp -- combines the recorded run with the given
// options.
#include "apps/train/resumed_run.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp" // model_files
#include "apps/remote/remote.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/train/follow.hpp"     // checkpoints
#include "apps/train/out_folder.hpp"
#include "apps/train/run_lines.hpp"
#include "apps/transfer/model_export.hpp"
#include "apps/transfer/model_upload.hpp" // check_model
#include "runtime/model/files/checksums.hpp"
#include "runtime/model/files/safetensors.hpp" // no_weights
#include "runtime/model/hf/hf_directory.hpp"

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;

model::status take_folder(train_options& o) {
  if (o.resume && o.overwrite)
    return failure{"--resume goes on with the run in --out, and --overwrite "
                   "moves it aside: give one of them"};
  if (o.detach && o.out_named && !o.resume)
    return failure{"--detach writes nothing to --out, since the command ends "
                   "before the run: leave --out away, and fetch what the job "
                   "makes with `"
                   + command_line("attach JOB", o.at, o.out) + "`"};
  std::error_code error;
  const fs::path folder = o.run.run_file;
  if (folder.empty())
    return model::done{};
  if (o.resume && !fs::exists(folder, error))
    return failure{"--resume: there is no " + folder.string()
                   + ": name the folder of the run, or a run file"};
  if (!o.resume && fs::exists(folder / record_name, error))
    return failure{folder.string() + " is the folder of a run: `shoal train "
                   + shell_path(folder.string()) + " --resume"
                   + options_text(o.at)
                   + "` goes on with it, and `shoal train RUN_FILE "
                     "--out DIR` starts anew in another folder"};
  if (!o.resume && fs::exists(folder / "config.json", error))
    return failure{folder.string()
                   + " is the folder of a model: `shoal train "
                     "--model.path "
                   + shell_word(folder.string())
                   + " --data ... --out DIR` trains it further"};
  if (!o.resume || !fs::is_directory(folder, error))
    return model::done{};
  if (o.out_named && !fs::equivalent(folder, o.out, error))
    return failure{"--resume: " + folder.string() + " and --out "
                   + o.out.string()
                   + " are two folders: a run goes on in the one where it is"};
  o.out = folder;
  o.out_named = true;
  o.run.run_file.clear();
  return model::done{};
}

model::result<resumed_run> resumed_run::find(const train_options& o) {
  const fs::path& out = o.out;
  if (auto mine = out_folder::free_to_write(out); !mine)
    return mine.why();
  resumed_run found;
  found.out_ = out;
  std::error_code error;
  if (!fs::exists(out, error))
    return failure{"--resume: there is no folder " + out.string()
                   + ": name that of the run, which lies where it was "
                     "submitted (`shoal train DIR --resume`)"};
  if (fs::exists(out / record_name, error)) {
    auto record = read_record(out);
    if (!record)
      return failure{"--resume: " + record.message()
                     + ": start a new run in another --out"};
    found.record_ = *std::move(record);
  }
  const auto all = checkpoints(out);
  const fs::path kept = kept_for(
    out, found.record_ ? found.record_->jobs : std::vector<std::string>());
  if (!kept.empty() && (all.empty() || all.back().first < step_of(kept)))
    return failure{"--resume: " + kept_text(kept, out, false)
                   + "; to go on without it, remove "
                   + kept.parent_path().string()};
  if (!all.empty() && !found.record_)
    return failure{"--resume: " + no_record(out).message};
  if (!all.empty()) {
    found.step_ = std::uint64_t(all.back().first);
    found.from_ = all.back().second;
    return found;
  }
  if (!o.out_named && !found.record_)
    return failure{"--resume: no folder is named, and " + out.string()
                   + " (--out) has no checkpoint: name the folder of the run, "
                     "`shoal train DIR --resume`"};
  std::string why =
    "--resume: no checkpoint in " + (out / "checkpoint").string() + ": ";
  if (found.record_ && !found.record_->jobs.empty()) {
    const std::string& job = found.record_->jobs.back();
    why += "if `" + command_line("jobs", o.at) + "` lists its job " + job
           + ", also as ended, `" + command_line("attach " + job, o.at, out)
           + "` fetches its newest checkpoint, and watches it while it runs; "
             "else ";
  }
  return failure{why
                 + "start anew: `shoal train RUN_FILE --out DIR` in another "
                   "folder, or with --overwrite in this one"};
}

int resumed_run::may_go_alone(const train_options& o) {
  if (!o.resume || o.yes || o.detach || names_a_node(o.at) || !o.join.empty())
    return exit_done;
  const auto found = find(o);
  if (!found || !found->record_ || !found->record_->open
      || runtime::client(client_of(o.at)).connect() != runtime::errc::no_node)
    return exit_done; // the command says what is wrong, if anything is
  const auto run = found->load(o.run);
  if (!run || found->unpublished(*run) || !found->has_steps(*run))
    return exit_done;
  return confirm(
    {"train --resume",
     "Job " + found->record_->jobs.back()
       + " of this run went to a shoal, of which no node answers here: it may "
         "go on there, or have ended there after step "
       + std::to_string(found->step_)
       + ", from which this process would train on by itself. To see what has "
         "become of it, start the node again (`shoal node` with the options "
         "that it had) and run this command then, or name a node by --peer.",
     this_command() + " --yes"});
}

model::result<runtime::run_config>
resumed_run::load(const run_options& given) const {
  const bool recorded = record_ && given.run_file.empty();
  auto run = recorded ? load_run(given, with_paths_from_here(*record_))
                      : load_run(given);
  // A run of an earlier version goes on with its text.
  if (run && record_ && !recorded && !gives(given, "data", "end_of_text"))
    run->data_end_of_text = record_->run.data_end_of_text;
  if (run && record_ && !recorded && !gives(given, "data", "hidden"))
    run->data_hidden = record_->run.data_hidden;
  if (!run || run->data_tokenizer != "bpe")
    return run;
  const auto config = model::load_config(from_);
  if (!config)
    return config.why();
  run->model.vocab_size = config->vocab_size; // from the tokenizer beside it
  return run;
}

std::string resumed_run::name(const runtime::run_config& run) const {
  return record_ && run.job_name == record_->run.job_name ? record_->name
                                                          : std::string();
}

model::status resumed_run::check_models(const model::watch& told) const {
  if (auto whole = check_model(from_, told); !whole)
    return failure{"--resume: " + whole.message()
                   + ": remove that checkpoint to go on from the one before"};
  const auto listed = checksums_of_model(out_);
  const bool own =
    listed && !listed->empty()
      ? bool(model::check_checksums(out_, actors::model_files, told))
      : model_step(out_) >= 0 || !model::no_weights(out_).empty();
  if (own)
    return model::done{};
  return failure{"--resume: the model in " + out_.string()
                 + ", which this run is to replace, is not the one that it has "
                   "left there: move its files elsewhere, or remove them"};
}

model::status resumed_run::has_steps(const runtime::run_config& run) const {
  if (step_ < std::uint64_t(run.steps))
    return model::done{};
  return failure{"--resume: " + from_.string() + " is at step "
                 + std::to_string(step_)
                 + " of training.steps = " + std::to_string(run.steps)
                 + ": raise training.steps to go on"};
}

bool resumed_run::unpublished(const runtime::run_config& run) const {
  // Fewer steps than it has were perhaps meant as steps to add.
  const std::int64_t last = record_ ? record_->run.steps : 0;
  return step_ >= std::uint64_t(std::max(run.steps, last))
         && model_step(out_) < std::int64_t(step_);
}

model::result<std::string>
resumed_run::publish(const runtime::run_config& run) const {
  out_request request;
  request.folder = out_;
  request.what = out_request::purpose::resume;
  request.run = run;
  const auto folder =
    out_folder::open(std::move(request)); // nobody else writes
  if (!folder)
    return folder.why();
  const auto kept = export_model(from_, out_);
  if (!kept)
    return kept.why();
  return "the run has ended: its model, of step " + std::to_string(step_)
         + ", is now in " + out_.string()
         + (kept->empty() ? "" : ". " + kept_files_text(*kept, from_, out_));
}

fs::path resumed_run::tokenizer_of(const runtime::run_config& run) const {
  std::error_code error;
  const bool gone =
    run.data_tokenizer == "model" && !fs::is_directory(run.model_path, error);
  return run.data_tokenizer == "bpe" || gone ? from_ : fs::path();
}

std::string resumed_run::way_to_text(const run_options& given) const {
  if (!record_ || !given.run_file.empty() || !given.data.empty())
    return {};
  return ": the run in " + out_.string()
         + " has read its text there; if it was moved, say where it is with "
           "--data PATH";
}

} // namespace shoal::apps
