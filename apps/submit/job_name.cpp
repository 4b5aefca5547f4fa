// apps/submit/job_name.cpp -- makes a name from the last part of a path.
#include "apps/submit/job_name.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/wire/codec.hpp" // name_bytes_max

namespace shoal::apps {

namespace fs = std::filesystem;

namespace {

/// Reserved for "-2" and so on: the number of jobs has at most 9 digits.
constexpr std::size_t number_bytes_max = 10;
constexpr std::size_t stem_bytes_max =
  runtime::codec::name_bytes_max - number_bytes_max;

/// "model" of "~/runs/model/"; for "." the name of this folder.
std::string last_part(const fs::path& folder) {
  if (folder.empty())
    return {};
  std::error_code error;
  const fs::path full = fs::absolute(folder, error).lexically_normal();
  return (full.has_filename() ? full : full.parent_path()).filename().string();
}

} // namespace

std::string job_name(const job_namesake& from) {
  for (const std::string& name : {from.kept, from.key, last_part(from.out),
                                  from.run_file.stem().string()})
    if (!name.empty())
      return core::shown(name, stem_bytes_max);
  return "run";
}

std::string
unique_job_name(const std::string& name, const std::set<std::string>& running) {
  if (!running.contains(name))
    return name;
  std::size_t number = 2;
  while (running.contains(name + "-" + std::to_string(number)))
    ++number;
  return name + "-" + std::to_string(number);
}

} // namespace shoal::apps
