// apps/submit/run_file.hpp -- makes a job from a run file and its overrides.
//
// Errors: a failure names the file, key or flag.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/transfer/tokenizer_files.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/model/text/tokenizer.hpp"

namespace shoal::apps {

/// Reads the run file and puts flags and variables over it, and checks it all;
/// also reads the configuration of model.path. data.tokenizer is then "model",
/// "bytes" or "bpe". @param code  becomes the exit code for a failure: a model
/// that cannot be read is no wrong use
model::result<runtime::run_config>
load_run(const run_options& o, int* code = nullptr);

/// The same for a command that reads no text: a vocabulary of any size may
/// belong to a tokenizer that the model gets later.
model::result<runtime::run_config>
load_run_without_text(const run_options& o, int* code = nullptr);

/// The same for a run that is known already: puts flags and variables over it.
/// @pre no run file is given
model::result<runtime::run_config>
load_run(const run_options& o, const runtime::run_config& recorded);

/// Whether the run file, or what is put over it, has this key.
bool gives(const run_options& o, const std::string& section,
           const std::string& key);

/// Whether a run file can contain --data.
model::status check_data(const std::vector<std::string>& paths);

/// Options for reading the text of a run; its tokens are bytes unless `by` is
/// set.
model::corpus_options
corpus_options_of(const runtime::run_config& run, const model::watch& told);

/// The tokens that end a text of this model (model::ends_of_text).
/// @param directory  of the model
model::result<std::vector<model::token_id>>
model_ends(const model::tokenizer& by, const model::model_config& config,
           const std::filesystem::path& directory);

/// Fails if a run has less text than a sequence.
model::status
enough_text(const runtime::run_config& run, const model::corpus& text);

/// A line for each key of the run file that a variable or the configuration file
/// changes: neither is on the command line, where the run file is.
std::vector<std::string> changed_keys(const run_options& o);

/// What `message` says of keys that a variable or the configuration file has set: "";
/// or "; SHOAL_TRAINING_STEPS sets training.steps".
std::string who_sets(const run_options& o, const std::string& message);

/// Reads the text of a run as tokens. @pre load_run() made the run
/// @param folder  holds the tokenizer that the run has trained ("bpe"), or one
/// to use instead of that of model.path
model::result<model::corpus> read_text(const runtime::run_config& run,
                                       const std::filesystem::path& folder = {},
                                       model::corpus_report* report = nullptr,
                                       const model::watch& told = {});

/// The same for a run that first trains a tokenizer, on the part of its text
/// that is not held out. `made` becomes the tokenizer's files; the model's
/// vocabulary gets the tokenizer's size.
model::result<model::corpus>
read_text_for_tokenizer(runtime::run_config& run, tokenizer_files& made,
                        model::corpus_report& report, const model::watch& told);

/// Reads the text once more, with the tokenizer that was trained for it.
model::result<model::corpus>
read_text(const runtime::run_config& run, const tokenizer_files& trained);

/// The job of a run, without data and origin: sizes and operations as the
/// planner needs them. @param name for display
core::job_entry
make_entry(const runtime::run_config& run, const std::string& name);

/// "user@host" of this command, for display.
std::string user_at_host();

} // namespace shoal::apps
