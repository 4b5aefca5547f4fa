// runtime/files/home_folder.hpp -- the user's home, and the folders below it that
// the XDG base directory specification names.
//
// Threads: one at a time where HOME is not set (getpwuid).
// Errors:  none; an empty path means that there is no such folder.
#pragma once

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace shoal::runtime {

/// HOME, or what the system has for this user, as under `env -i`; empty if it has
/// none.
inline std::filesystem::path home_folder() {
  if (const char* home = std::getenv("HOME"); home && *home)
    return home;
  const passwd* const user = ::getpwuid(::geteuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

/// The variable's folder, or the one below the home; empty if there is no home.
inline std::filesystem::path
xdg_folder(const char* variable, const std::filesystem::path& below_home) {
  if (const char* named = std::getenv(variable); named && *named)
    return named;
  const std::filesystem::path home = home_folder();
  return home.empty() ? home : home / below_home;
}

} // namespace shoal::runtime
