// apps/train/run_file.hpp -- from a run file and its overrides to a job.
//
// Errors: a failure names the file, key or flag.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/transfer/tokenizer_files.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/model/data/corpus.hpp"

namespace shoal::apps {

/// Reads the run file, then flags and variables over it, and checks it all;
/// the configuration of model.path is read, too. data.tokenizer is then
/// "model", "bytes" or "bpe".
model::result<runtime::run_config> load_run(const run_options& o);

/// The same for a command that reads no text: a vocabulary of any size may
/// belong to a tokenizer that the model is given later.
model::result<runtime::run_config> load_run_without_text(const run_options& o);

/// The same where a run is known already: flags and variables over it.
/// @pre no run file is given
model::result<runtime::run_config>
load_run(const run_options& o, const runtime::run_config& recorded);

/// Whether --data can stand in a run file.
model::status check_data(const std::vector<std::string>& paths);

/// How the text of a run is read; bytes are its tokens unless `by` is set.
model::corpus_options
corpus_options_of(const runtime::run_config& run, const model::watch& told);

/// Fails where a run has less text than a sequence.
model::status
enough_text(const runtime::run_config& run, const model::corpus& text);

/// Reads the text of a run as tokens. @pre load_run() made it
/// @param folder  holds the tokenizer that the run has trained ("bpe"), or one
///                to take for that of model.path
model::result<model::corpus> read_text(const runtime::run_config& run,
                                       const std::filesystem::path& folder = {},
                                       model::corpus_report* report = nullptr,
                                       const model::watch& told = {});

/// The same for a run that trains a tokenizer first, on what of its text is
/// not held out. `made` becomes the tokenizer's files; the model's vocabulary
/// becomes as large as the tokenizer's.
model::result<model::corpus>
read_text_for_tokenizer(runtime::run_config& run, tokenizer_files& made,
                        model::corpus_report& report, const model::watch& told);

/// Reads the text once more, by the tokenizer that was trained for it.
model::result<model::corpus>
read_text(const runtime::run_config& run, const tokenizer_files& trained);

/// The job that a run makes, without data and origin: sizes and operations as
/// the planner wants them. @param name for people
core::job_entry
make_entry(const runtime::run_config& run, const std::string& name);

} // namespace shoal::apps
