// apps/serve/cmd_api_key.cpp -- apikey: a key for a client of served models.
#include "apps/common/commands.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/http/keys/api_keys.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

namespace shoal::apps {

namespace {

/// Adds a line to a file that only its owner can read. @returns why not, or ""
std::string append(const std::filesystem::path& file, std::string line) {
  const int at =
    ::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (at < 0)
    return std::strerror(errno);
  // An editor may have left the last line without its end.
  const off_t size = ::lseek(at, 0, SEEK_END);
  if (char last = '\n';
      size > 0 && ::pread(at, &last, 1, size - 1) == 1 && last != '\n')
    line.insert(0, "\n");
  const ssize_t written = ::write(at, line.data(), line.size());
  const int error = written < 0 ? errno : 0;
  const bool whole = written == ssize_t(line.size()) && ::fsync(at) == 0;
  ::close(at);
  return whole ? "" : error != 0 ? std::strerror(error) : "not all was written";
}

} // namespace

int run_api_key(const api_key_options& o) {
  if (!runtime::is_api_key_name(o.name)) {
    if (o.name.starts_with(runtime::api_key_prefix))
      std::cerr << "shoal: NAME begins as a key does: names are in logs and "
                   "metrics, so give it another one\n";
    else
      std::cerr << "shoal: NAME is '" << o.name
                << "'; must be letters, digits, '.', '_' and '-', at most "
                << runtime::api_key_name_max << "\n";
    return exit_usage;
  }
  if (std::error_code none; std::filesystem::exists(o.file, none)) {
    const auto keys = runtime::api_keys::load(o.file);
    if (!keys || keys->has_name(o.name)) {
      std::cerr << "shoal: --file: "
                << (!keys ? keys.message()
                          : o.file.string() + " has a key named '" + o.name
                              + "': choose another name, or delete its line "
                                "first, which takes that key back")
                << "\n";
      return exit_failed;
    }
  }
  try {
    const runtime::new_api_key made = runtime::make_api_key(o.name, o.limits);
    if (const std::string why = append(o.file, made.line); !why.empty()) {
      std::cerr << "shoal: --file: " << o.file.string() << ": " << why << "\n";
      return exit_failed;
    }
    std::cout << made.key << std::endl;
  } catch (const runtime::setup_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  std::cerr
    << "this is the only time that the key of " << o.name
    << " is shown; its hash is in " << o.file.string()
    << ". Nodes read that file when they start (--api-keys); delete its "
       "line to take the key back\n";
  return exit_done;
}

} // namespace shoal::apps
