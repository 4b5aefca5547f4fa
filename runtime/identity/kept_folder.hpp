// runtime/identity/kept_folder.hpp -- a temporary folder for the last checkpoint of
// a run that its --out had no room for.
//
// While a process fetches that checkpoint, or tries to write it to --out, it holds a
// lock on the folder itself. Afterwards the folder may have the only copy of a run's
// result: it stays until the user has moved the checkpoint away. A folder that nobody
// holds and that has no checkpoint is empty: its user was killed, or has moved it.
//
// Threads: any. Errors: where folders cannot be locked, they are used without, and
// none is found empty.
#pragma once

#include "runtime/files/posix.hpp"

#include <filesystem>
#include <string>

namespace shoal::runtime {

/// The begin of its name, below the temporary directory; what follows is random.
inline constexpr const char* kept_folder = "shoal-kept-";
/// A file in it: the whole path of that --out.
inline constexpr const char* kept_note = "out.txt";

bool is_kept(const std::filesystem::path& folder);

/// A folder that this process uses.
struct held_folder {
  std::filesystem::path path; ///< empty: none could be made
  posix::descriptor lock;
};
/// Makes one in `parent`, with this note.
held_folder
make_kept_folder(const std::filesystem::path& parent, const std::string& note);

/// What a folder is_kept() is, of this user.
enum class kept_state { in_use, empty, has_checkpoint };
kept_state state_of_kept(const std::filesystem::path& folder);

/// Removes a folder, if it is empty.
std::error_code remove_if_empty(const std::filesystem::path& folder);

/// Removes the empty ones of this user.
void remove_empty_kept_folders(const std::filesystem::path& parent);
/// The same in the temporary directory; where there is none, there is nothing to do.
void remove_empty_kept_folders();

} // namespace shoal::runtime
