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
/// "model" or "bytes".
model::result<runtime::run_config> load_run(const run_options& o);

/// Reads the text of a run as tokens. @pre load_run() made it
model::result<model::corpus> read_text(const runtime::run_config& run,
                                       model::corpus_report* report = nullptr,
                                       const model::watch& told = {});

/// The job that a run makes, without data and origin: sizes and operations as
/// the planner wants them. @param name for people
core::job_entry
make_entry(const runtime::run_config& run, const std::string& name);

} // namespace shoal::apps
