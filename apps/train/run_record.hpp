// apps/train/run_record.hpp -- run.json: the run to which a folder of results
// belongs.
//
// It is written by the commands that fill such a folder (out_folder.hpp) and
// read by them and by `shoal audit`. run.toml beside it shows the run to users;
// no command reads it unless it is given as a run file.
//
// Format: {"format": "shoal-run-1", "jobs": ["<16 digits>", ...],
//          "text": "<SHA-256>" or "", "steps_max": N, "folder": "/...",
//          "name": "...", "open": true, "attached": true, "run": {...}}; without
//          "folder" it is unknown
// Errors: a failure names the file and the mistake. The folder may come from
//         another user.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

inline constexpr char record_name[] = "run.json";
/// One for each --resume; the oldest are dropped.
inline constexpr std::size_t record_jobs_max = 1000;
/// A run has at most 64 KiB (core::job_entry), a job's id some 20 bytes.
inline constexpr std::size_t record_bytes_max = 1u << 20;
/// Limit of a path on Linux (PATH_MAX).
inline constexpr std::size_t record_folder_bytes_max = 4096;

struct run_record {
  std::vector<std::string> jobs; ///< ids of the jobs that trained it, oldest
                                 ///< first
  std::string text;              ///< digest of its tokens; empty: unknown
  /// The largest number of steps that it was to take: metrics.jsonl may contain
  /// all steps up to this.
  std::int64_t steps_max = 0;
  runtime::run_config run; ///< resolved
  /// The base of the run's relative paths: the working directory of the command
  /// that began it.
  std::string folder = {};
  /// Of its newest job, which a resumed run keeps wherever the folder lies; empty:
  /// written by an older version.
  std::string name = {};
  /// The last job may have gone on: it went to peers, and the folder does not have
  /// its end.
  bool open = false;
  /// `shoal attach` began the folder: what came before its first step may lie
  /// elsewhere.
  bool attached = false;

  bool has(std::string_view job) const;
  void add(const std::string& job);
};

std::string to_json(const run_record& record);
model::result<run_record>
parse_record(std::string_view json, std::string_view where);

/// The run with its paths relative to the working directory of this process.
runtime::run_config with_paths_from_here(const run_record& record);

/// The working directory; empty if JSON cannot hold it.
std::string this_folder();

/// Why a run cannot go on, and how another can begin with its weights.
model::failure begin_anew(const std::string& why);

/// The same of the run in a folder without a record.
model::failure no_record(const std::filesystem::path& folder);

/// Reads run.json in `folder`.
model::result<run_record> read_record(const std::filesystem::path& folder);

} // namespace shoal::apps
