// apps/submit/run_submission.hpp -- what a job needs of its run, given to a node.
//
// `train` uses the parts, since it also resumes runs and keeps a folder of
// results; submit_new_run() is all of them, as for `train --detach`.
//
// Threads: blocking. Errors: a failure says what is wrong with which file or key.
#pragma once

#include "apps/remote/status_json.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/transfer/model_upload.hpp"
#include "runtime/control/client.hpp"

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace shoal::apps {

/// The text of a run that is not resumed, as tokens; its tokenizer is first trained
/// if requested, and is then in `trained`.
model::result<model::corpus>
read_new_text(runtime::run_config& run, std::optional<tokenizer_files>& trained,
              model::corpus_report& report, const model::watch& told);

/// Fails if a run has less text than a sequence, and says what was left out.
model::status
check_text(const runtime::run_config& run, const model::corpus& text,
           const model::corpus_report& report);

/// What `put` uploads to: the node's store.
/// @param goes_on  asked before each part of a file; false ends with an error
put_pieces
put_to(runtime::client& client, const std::function<bool()>& goes_on = {});

/// Uploads initial weights or a checkpoint of `step`, or the trained tokenizer.
/// @param from  a directory; empty: random weights
/// @param trained  may be null
model::status put_origin(core::job_entry& entry,
                         const std::filesystem::path& from, std::uint64_t step,
                         const tokenizer_files* trained, const put_pieces& put);

/// Names of the jobs that run.
std::set<std::string> running_jobs(const status_json& status);

/// Held from the look at the names of jobs until the job is submitted: submissions of
/// one process that are side by side take different names.
std::mutex& submission_turn();

struct submitted_job {
  core::job_id id = 0;
  std::string name;
};

/// Reads the files of a run, uploads them, and submits its job.
model::result<submitted_job>
submit_new_run(runtime::client& client, runtime::run_config run,
               const std::string& name, const model::watch& told);

} // namespace shoal::apps
