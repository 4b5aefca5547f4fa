// apps/train/job_name.hpp -- the name by which users call a job.
//
// By job.name of its run, else as the folder of its results is called, since
// that is what its user chose to tell runs apart; a job without a folder goes
// by its run file. Of jobs that run at the same time no two get one name.
//
// Threads: any. Errors: none.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace shoal::apps {

/// What gives a job its name, the first that does.
struct job_namesake {
  std::string key;                ///< job.name; may be empty
  std::filesystem::path out;      ///< of its results; empty: none
  std::filesystem::path run_file; ///< may be empty
};

/// @returns "run" where nothing gives a name; never more bytes than a view
///          takes, and nothing that steers a terminal
std::string job_name(const job_namesake& from);

/// `name`, or with a number after it where a job of that name runs.
std::string
unique_job_name(const std::string& name, const std::set<std::string>& running);

} // namespace shoal::apps
