// runtime/hub/hub_cache.hpp -- the cache of one repository, shared with the
// hub's other tools.
//
//   CACHE/models--ORG--NAME/blobs/HASH                the bytes of a file
//                          /blobs/HASH.incomplete     the first of them
//                          /snapshots/COMMIT/PATH     -> ../../blobs/HASH
//                          /refs/REVISION             the commit, as text
//   CACHE/.locks/models--ORG--NAME/HASH.lock          flock: one writer
//
// A blob is complete and checked from the moment it has its name. A ref is
// written when its snapshot is complete, so that without a network the commit
// before is found as long as a newer one is incomplete.
//
// Threads: one for each object. Processes: any, by the locks.
// Errors:  a failure names the file and the system's reason.
// Source:  huggingface_hub, file_download.py and
//          https://huggingface.co/docs/hub/local-cache
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/hub/hub_name.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace shoal::hub {

/// A lock that other processes respect, until the object goes.
class blob_lock {
public:
  explicit blob_lock(runtime::posix::descriptor file)
    : file_(std::move(file)) {}
  /// False where the file system has no locks: then nobody else may be kept from
  /// writing the same.
  bool held() const noexcept { return bool(file_); }

private:
  runtime::posix::descriptor file_;
};

class hub_cache {
public:
  /// @pre repository is of a hub_name
  hub_cache(const std::filesystem::path& root, const std::string& repository);

  std::filesystem::path blob(const std::string& hash) const;
  std::filesystem::path snapshot(const std::string& commit) const;
  bool has_blob(const std::string& hash) const;

  /// Makes the folders that a download needs, and CACHEDIR.TAG for programs
  /// that make backups.
  model::status make_folders() const;

  /// Waits until no other process has the lock. @param waits  is called again
  /// and again meanwhile; false ends that
  model::result<blob_lock>
  lock(const std::string& hash, const std::function<bool()>& waits) const;

  /// Puts a blob into a snapshot, unless it is there.
  /// @pre is_file_path(path)
  model::status link(const std::string& commit, const std::string& path,
                     const std::string& hash) const;

  model::status
  write_ref(const std::string& revision, const std::string& commit) const;
  /// The commit of a revision, as far as the cache knows.
  std::optional<std::string> commit_of(const std::string& revision) const;

  /// What of a model a snapshot has.
  enum class found {
    nothing, ///< or not all that is needed
    weights, ///< configuration and weights, but no tokenizer
    all
  };
  /// @param file  in GGUF, which is then all; empty: a model in safetensors
  found look(const std::string& commit, const std::string& file) const;

private:
  std::filesystem::path root_;
  std::string folder_; ///< "models--ORG--NAME"
};

} // namespace shoal::hub
