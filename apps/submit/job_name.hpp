// apps/submit/job_name.hpp -- the name of a job, as users see it.
//
// The name is job.name of its run, else that of the folder of its results,
// since the user chose that to distinguish runs; a job without a folder is
// named after its run file. A resumed run keeps the name that it had, unless
// job.name has changed. Two jobs that run at the same time never have the
// same name.
//
// Threads: any. Errors: none.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace shoal::apps {

/// Sources of a job's name; the first one that has a value counts.
struct job_namesake {
  std::string kept;               ///< of a resumed run; may be empty
  std::string key;                ///< job.name; may be empty
  std::filesystem::path out;      ///< of its results; empty: none
  std::filesystem::path run_file; ///< may be empty
};

/// @returns "run" if no source has a value; never more bytes than a view
/// accepts, and safe to show
std::string job_name(const job_namesake& from);

/// `name`, with a number appended if a job of that name is running.
std::string
unique_job_name(const std::string& name, const std::set<std::string>& running);

} // namespace shoal::apps
