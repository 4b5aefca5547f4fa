// runtime/leftovers.hpp -- what nodes of this user that were killed have left.
//
// Shared memory between nodes has no name (transport/shm/segment.hpp) and ends
// with them, and so do locks. What can stay is a control socket, until its node
// starts again; a throw-away folder, until the next one of its kind is made;
// and, after a benchmark of UCX, its shared memory. Of processes: a node whose
// data directory was deleted beneath it, one that is killed and does not end,
// one that listens without a data directory, and a memory keeper whose node is
// gone. A port ends with the process that listens at it, which is named with it.
//
// No leftover: a folder shoal-votes-*, which a killed node's next start needs
// (vote_file.hpp).
//
// A folder is dead when the process in its name is gone and nobody, in any
// container that sees it, holds the lock in it.
//
// Threads: any. Errors: what cannot be read is not found.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

/// Throw-away folders: below the temporary directory, one of these names, the
/// process that made it and perhaps "-" and more.
inline constexpr const char* train_folder = "shoal-train-";
inline constexpr const char* chaos_folder = "shoal-chaos-";
inline constexpr const char* bench_folder = "shoal-bench-";
inline constexpr const char* embedded_folder = "shoal-embedded-";

struct leftover_places {
  std::vector<std::filesystem::path> data_dirs;
  std::filesystem::path temp;
  std::filesystem::path memory = "/dev/shm";
  std::filesystem::path processes = "/proc";
};

/// The usual ones: all nodes' directories beside the default one, and `more`.
leftover_places usual_places(const std::filesystem::path& more);

struct leftover {
  enum class kind { socket, folder, memory, process };
  kind what = kind::socket;
  std::filesystem::path path;
  bool dead = true; ///< nobody uses it: remove() may be called
  std::string text; ///< for people
};
std::vector<leftover> find_leftovers(const leftover_places& in);

/// Removes a socket or folder unless somebody uses it by now.
/// @pre l.dead
[[nodiscard]] std::error_code remove(const leftover& l);

/// Removes dead folders of one kind.
void remove_abandoned_dirs(const std::filesystem::path& parent,
                           const std::string& prefix);

} // namespace shoal::runtime
