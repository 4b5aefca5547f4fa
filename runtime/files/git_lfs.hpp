// runtime/files/git_lfs.hpp -- files that Git LFS has not fetched yet.
//
// A clone without LFS holds, in place of each large file, a text of some 130
// bytes that names it. Read as weights or as text it makes no sense, and as
// training text it makes a run that learns nothing: so it is told by its first
// line, which the LFS specification fixes.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace shoal::model {

/// The specification allows no pointer of this size or more.
inline constexpr std::size_t lfs_pointer_bytes_max = 1024;

/// @param begin  of the file: its first 64 bytes will do
inline bool is_lfs_pointer(std::string_view begin) {
  return begin.starts_with("version https://git-lfs.github.com/spec/");
}

/// What to say of it, after the file's name and ": ".
inline constexpr char lfs_pointer_text[] =
  "is a Git LFS pointer, not the file itself: run `git lfs pull` where it was "
  "cloned";

} // namespace shoal::model
