// runtime/model/data/find_files.cpp -- files, folders and globs as a list of files.
#include "runtime/model/data/documents.hpp"
#include "runtime/model/data/result_names.hpp"
#include "runtime/model/files/safetensors.hpp" // no_weights

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace shoal::model {

namespace fs = std::filesystem;

namespace {

/// The depth of folders within folders.
constexpr int folder_depth_max = 64;

status too_many(const std::string& path) {
  return failure{path + ": names more than " + std::to_string(corpus_files_max)
                 + " files"};
}

/// Whether `path` belongs to a model, or was written by a run: it lies in the folder of
/// one.
bool is_result(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name != results_lock && !is_result_name(name))
    return false;
  const fs::path folder = path.parent_path();
  std::error_code ignored;
  return fs::exists(folder / results_lock, ignored)
         || (fs::exists(folder / "config.json", ignored)
             && no_weights(folder).empty());
}

/// What was found, and what was left out.
struct findings {
  std::vector<corpus_file> files;
  left_out_files left;
  bool all = false; ///< also what is hidden
};

/// Adds all regular files below a folder; leaves out those that cannot be
/// opened, and what is hidden.
status add_folder(const fs::path& folder, findings& into) {
  std::error_code error;
  const auto skip = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator it(folder, skip, error);
  if (error)
    return failure{folder.string() + ": " + error.message()};
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    const bool result = is_result(it->path());
    const bool hidden =
      !into.all && it->path().filename().string().starts_with('.');
    if (it.depth() >= folder_depth_max || result || hidden)
      it.disable_recursion_pending();
    if (result)
      into.left.results.add(it->path().string());
    else if (hidden)
      into.left.hidden.add(it->path().string());
    if (result || hidden)
      continue;
    const bool closed = it->is_directory(ignored) && !it->is_symlink(ignored)
                        && ::access(it->path().c_str(), R_OK | X_OK) != 0;
    if (!closed && !it->is_regular_file(ignored))
      continue;
    if (into.files.size() == corpus_files_max)
      return too_many(folder.string());
    into.files.push_back(
      {it->path().string(),
       it->path().lexically_relative(folder).generic_string(), false});
  }
  if (error)
    return failure{folder.string() + ": " + error.message()};
  return done{};
}

status add_path(const fs::path& path, bool named, findings& into) {
  std::error_code error;
  if (!named && is_result(path)) {
    into.left.results.add(path.string());
    return done{};
  }
  if (fs::is_directory(path, error))
    return add_folder(path, into);
  if (!fs::is_regular_file(path, error))
    return failure{path.string() + ": is neither a file nor a folder"};
  if (into.files.size() == corpus_files_max)
    return too_many(path.string());
  into.files.push_back({path.string(), path.filename().string(), named});
  return done{};
}

status add_glob(const std::string& pattern, findings& into) {
  glob_t matches{};
  const int rc = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  status added = done{};
  if (rc != 0)
    added = failure{pattern + ": no such file, folder or match"};
  for (std::size_t i = 0; rc == 0 && added && i < matches.gl_pathc; ++i) {
    std::error_code error;
    if (fs::exists(matches.gl_pathv[i], error))
      added = add_path(matches.gl_pathv[i], false, into);
  }
  ::globfree(&matches);
  return added;
}

} // namespace

result<std::vector<corpus_file>>
find_files(std::span<const std::string> paths, left_out_files* left, bool all) {
  findings found;
  found.all = all;
  for (const std::string& path : paths) {
    std::error_code error;
    status added = fs::exists(path, error) ? add_path(path, true, found)
                                           : add_glob(path, found);
    if (!added)
      return added.why();
  }
  if (left != nullptr)
    *left = std::move(found.left);
  std::vector<corpus_file> files = std::move(found.files);
  std::ranges::sort(files, [](const corpus_file& a, const corpus_file& b) {
    return std::tie(a.relative, a.path, b.named)
           < std::tie(b.relative, b.path, a.named); // named ones first
  });
  const auto twice =
    std::unique(files.begin(), files.end(),
                [](const auto& a, const auto& b) { return a.path == b.path; });
  files.erase(twice, files.end());
  return files;
}

} // namespace shoal::model
