// apps/run_file.hpp -- from a run file and its overrides to a job.
//
// Errors: a failure names the file, key or flag.
#pragma once

#include "apps/commands.hpp"
#include "runtime/core/view.hpp"
#include "runtime/model/corpus.hpp"
#include "runtime/run_config.hpp"

namespace shoal::apps {

/// Reads the run file, then flags and variables over it, and checks it all;
/// the configuration of model.path is read, too. data.tokenizer is then
/// "model", "bytes" or "bpe".
model::result<runtime::run_config> load_run(const run_options& o);

/// Whether --data can stand in a run file.
model::status check_data(const std::vector<std::string>& paths);

/// Reads the text of a run as tokens. @pre load_run() made it
/// @param folder  holds the tokenizer that the run has trained ("bpe")
model::result<model::corpus> read_text(const runtime::run_config& run,
                                       const std::filesystem::path& folder = {},
                                       model::corpus_report* report = nullptr,
                                       const model::watch& told = {});

/// The same for a run that trains a tokenizer first, on what of its text is
/// not held out. The tokenizer's files go into `folder`; the model's vocabulary
/// becomes as large as the tokenizer's.
model::result<model::corpus>
read_text_for_tokenizer(runtime::run_config& run,
                        const std::filesystem::path& folder,
                        model::corpus_report& report, const model::watch& told);

/// The job that a run makes, without data and origin: sizes and operations as
/// the planner wants them. @param name for people
core::job_entry
make_entry(const runtime::run_config& run, const std::string& name);

} // namespace shoal::apps
