// runtime/identity/kept_folder.cpp -- locks folders, and looks into them.
#include "runtime/identity/kept_folder.hpp"

#include "runtime/files/file.hpp"
#include "runtime/files/file_io.hpp"

#include <stdlib.h> // mkdtemp
#include <sys/file.h>
#include <unistd.h> // rmdir

#include <algorithm>
#include <cerrno>
#include <vector>

namespace shoal::runtime {

namespace fs = std::filesystem;

namespace {

/// Another process may look into the new folder before it is locked, and remove it: it
/// is empty. That takes it some microseconds.
constexpr int tries_max = 100;

posix::descriptor open_folder(const fs::path& folder) {
  return posix::descriptor(
    ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool lock(const posix::descriptor& folder) {
  return folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

/// The same of a new folder. @returns false: another process has it, so it may be about
/// to remove it; true also where folders cannot be locked
bool lock_new(const posix::descriptor& folder) {
  return lock(folder) || (folder && errno != EWOULDBLOCK && errno != EINTR);
}

bool same_folder(const posix::descriptor& opened, const fs::path& folder) {
  struct stat a {};
  struct stat b {};
  return ::fstat(opened.get(), &a) == 0 && ::lstat(folder.c_str(), &b) == 0
         && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_mine(const fs::path& folder) {
  struct stat is {};
  return ::lstat(folder.c_str(), &is) == 0 && S_ISDIR(is.st_mode)
         && is.st_uid == ::geteuid();
}

/// The note, its draft (draft_file), and a checkpoint that has not come whole
/// (checkpoint_fetcher).
bool is_of_no_use(const fs::path& file) {
  const std::string name = file.filename().string();
  return name == kept_note || name == std::string(kept_note) + ".new"
         || (name.starts_with("step-") && name.ends_with(".partial"));
}

} // namespace

bool is_kept(const fs::path& folder) {
  return folder.filename().string().starts_with(kept_folder);
}

held_folder make_kept_folder(const fs::path& parent, const std::string& note) {
  for (int i = 0; i < tries_max; ++i) {
    std::string path = (parent / kept_folder).string() + "XXXXXX";
    if (!::mkdtemp(path.data()))
      return {};
    held_folder out{path, open_folder(path)};
    if (!lock_new(out.lock) || !same_folder(out.lock, out.path)) {
      ::rmdir(path.c_str()); // it is empty; or it has gone
      continue;
    }
    static_cast<void>(model::write_file(out.path / kept_note, note));
    return out;
  }
  return {};
}

kept_state state_of_kept(const fs::path& folder) {
  const posix::descriptor opened = open_folder(folder);
  if (!lock(opened))
    return kept_state::in_use;
  return std::ranges::all_of(paths_in(folder), is_of_no_use)
           ? kept_state::empty
           : kept_state::has_checkpoint;
}

std::error_code remove_if_empty(const fs::path& folder) {
  const posix::descriptor held = open_folder(folder);
  if (!lock(held))
    return std::make_error_code(std::errc::device_or_resource_busy);
  const std::vector<fs::path> files = paths_in(folder);
  if (!std::ranges::all_of(files, is_of_no_use))
    return std::make_error_code(std::errc::directory_not_empty);
  std::error_code wrong;
  for (const fs::path& file : files)
    fs::remove_all(file, wrong);
  fs::remove(folder, wrong);
  return wrong;
}

void remove_empty_kept_folders(const fs::path& parent) {
  for (const fs::path& folder : paths_in(parent))
    if (is_kept(folder) && is_mine(folder))
      static_cast<void>(remove_if_empty(folder));
}

void remove_empty_kept_folders() {
  std::error_code error;
  if (const auto parent = fs::temp_directory_path(error); !error)
    remove_empty_kept_folders(parent);
}

} // namespace shoal::runtime
