// runtime/identity/stale_files.hpp -- files and processes that killed nodes left behind.
//
// It finds those of this user. Shared memory between nodes has no name
// (transport/shm/segment.hpp) and ends with them, and so do locks. These can
// remain: a control socket, until its node starts again; a temporary folder,
// until the next one of its kind is made; and the shared memory of UCX after a
// benchmark. Processes that can remain: a node whose data directory was
// deleted, a killed node that does not end, a node that listens without a data
// directory, and a memory keeper whose node is gone. A port is freed when the
// process that listens at it ends; the process is named with its ports.
//
// Not stale: a folder shoal-votes-*, which the next start of a killed node
// needs (vote_file.hpp). A folder shoal-kept-* (kept_folder.hpp) is found unless it is in
// use, but it is dead only when it has no checkpoint: it may hold the only copy of
// a run's result.
//
// A folder is dead if the process in its name is gone and no process, in any
// container that sees the folder, holds its lock.
//
// Threads: any. Errors: anything that cannot be read is not found.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

/// Temporary folders, below the temporary directory: one of these names, the id
/// of the process that made it, and perhaps "-" and more.
inline constexpr const char* train_folder = "shoal-train-";
inline constexpr const char* chaos_folder = "shoal-chaos-";
inline constexpr const char* bench_folder = "shoal-bench-";
inline constexpr const char* embedded_folder = "shoal-embedded-";
inline constexpr const char* gguf_folder = "shoal-gguf-";

struct stale_file_places {
  std::vector<std::filesystem::path> data_dirs;
  std::filesystem::path temp;
  std::filesystem::path memory = "/dev/shm";
  std::filesystem::path processes = "/proc";
};

/// The usual places: all node directories beside the default one, and `more`.
stale_file_places usual_places(const std::filesystem::path& more);

struct stale_file {
  enum class kind { socket, folder, memory, process };
  kind what = kind::socket;
  std::filesystem::path path;
  bool dead = true; ///< nobody uses it: remove() may be called
  std::string text; ///< for users
};
std::vector<stale_file> find_stale_files(const stale_file_places& in);

/// Removes a socket or folder, unless a process uses it by now.
/// @pre l.dead
[[nodiscard]] std::error_code remove(const stale_file& l);

/// Removes dead folders of one kind.
void remove_abandoned_dirs(const std::filesystem::path& parent,
                           const std::string& prefix);

} // namespace shoal::runtime
