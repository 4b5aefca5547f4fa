// apps/remote/embedded_node.hpp -- the node that a command starts in its process if
// none is running, with its temporary folder.
#pragma once

#include "actors/supervisor.hpp"
#include "apps/common/version.hpp"
#include "runtime/files/temporary_folder.hpp"
#include "runtime/host/memory_keeper.hpp"
#include "runtime/identity/stale_files.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/node/node.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::apps {

struct embedded_config {
  std::string name; ///< of the node
  std::vector<std::string> join;
  std::filesystem::path cluster_key;
  int threads = 0;
  /// A folder on another disk, for blobs that the node's disk refuses; empty:
  /// none.
  std::filesystem::path spare_in;
  std::string http; ///< where it answers clients of models; for display
};

/// A node in this process and its directory, both removed at the end.
class embedded_node {
public:
  /// @param say takes the node's lines, on any thread
  /// @param roles to add to the built-in ones, or instead of those of the same
  /// name
  embedded_node(const embedded_config& e,
                std::function<void(const std::string&)> say,
                const runtime::role_table& more = {})
    : shows_(std::move(say)) {
    runtime::remove_abandoned_dirs(runtime::temporary_folder(),
                                   runtime::train_folder);
    folder_ = runtime::temporary_folder()
              / (runtime::train_folder + std::to_string(getpid()));
    bool made = false; // else it may be another user's
    try {
      make_own(folder_);
      made = true;
      start(e, more);
    } catch (const std::exception& wrong) {
      std::error_code ignored;
      if (made)
        std::filesystem::remove_all(folder_, ignored);
      const std::string what = wrong.what();
      if (what.find(folder_.string()) == std::string::npos)
        throw; // for example another key file
      throw runtime::setup_error(what + "; temporary files are in "
                                 + folder_.parent_path().string()
                                 + ": TMPDIR names another folder for them");
    }
  }
  ~embedded_node() {
    node_->leave(std::chrono::seconds(10), false);
    node_->wait_stopped(std::chrono::seconds(15));
    node_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    if (!spare_.empty())
      std::filesystem::remove_all(spare_, ignored);
  }
  const std::filesystem::path& folder() const { return folder_; }

  std::string where_text() const {
    return "without a node, the text and the checkpoints of a run are in "
           + folder_.string()
           + " until it ends; TMPDIR names another folder than "
           + folder_.parent_path().string();
  }
  /// What to do if `e` is the first to say that this node's disk is full, or
  /// that the spare one is, too; else empty.
  std::string way_out(const runtime::job_event& e) {
    const std::string full = std::generic_category().message(ENOSPC);
    if (e.kind != runtime::job_event_kind::notice
        || e.text.find(full) == std::string::npos)
      return {};
    const bool spare = full_ || !has_other_disk();
    if (spare ? std::exchange(both_full_, true) : std::exchange(full_, true))
      return {};
    const std::string what =
      "the disk of " + folder_.parent_path().string() + " is full";
    if (!spare)
      return what
             + ": from now on the run's checkpoints are kept on the disk of "
             + spare_.parent_path().string() + " until it ends (" + where_text()
             + ")";
    return what
           + (full_ ? ", and that of " + spare_.parent_path().string() + ", too"
                    : "")
           + ": make room there, or start the run again with more room. "
             "Without "
             "room the steps after the newest checkpoint in --out are lost at "
             "Ctrl-C ("
           + where_text() + ")";
  }
  /// Whether no disk takes a checkpoint, as far as it has been said.
  bool is_full() const { return both_full_; }

private:
  /// The command shows its job's log, and the reason of a failure: not twice.
  class node_lines final : public runtime::node_observer {
  public:
    explicit node_lines(std::function<void(const std::string&)> say)
      : say_(std::move(say)) {}
    void say(const std::string& text) override {
      if (!text.starts_with("[job] "))
        say_(text);
    }

  private:
    std::function<void(const std::string&)> say_;
  };

  void start(const embedded_config& e, const runtime::role_table& more) {
    runtime::node_config c;
    c.name = e.name;
    c.version = program_version();
    c.data_dir = folder_;
    c.join = e.join;
    c.cluster_key_file = e.cluster_key;
    c.threads = e.threads;
    c.http = e.http;
    c.embedded = true;
    if (!e.spare_in.empty()) {
      remove_spares(e.spare_in); // of commands that were killed: it is ours
      spare_ = e.spare_in / (spare_name + std::to_string(getpid()));
      c.spare_blobs = spare_;
    }
    c.discover = false;
    c.observer = &shows_;
    runtime::role_table roles;
    actors::add_builtin(roles);
    for (const auto& [name, role] : more)
      roles[name] = role;
    node_ = std::make_unique<runtime::node>(c, roles);
  }

  static constexpr const char* spare_name = ".spare-";

  static void remove_spares(const std::filesystem::path& checkpoints) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(checkpoints, error)) {
      std::error_code ignored;
      if (entry.path().filename().string().starts_with(spare_name))
        std::filesystem::remove_all(entry.path(), ignored);
    }
  }

  /// Whether results go to another file system than this node's folder.
  bool has_other_disk() const {
    struct stat here {};
    struct stat there {};
    std::filesystem::path out = spare_.parent_path().parent_path();
    return !spare_.empty() && ::stat(folder_.c_str(), &here) == 0
           && ::stat(out.empty() ? "." : out.c_str(), &there) == 0
           && here.st_dev != there.st_dev;
  }

  /// Makes a directory that no other user has made or can access.
  static void make_own(const std::filesystem::path& folder) {
    struct stat is {};
    if (::lstat(folder.c_str(), &is) == 0 && S_ISDIR(is.st_mode)
        && is.st_uid == ::getuid())
      std::filesystem::remove_all(
        folder); // left by an earlier process with this number
    if (::mkdir(folder.c_str(), 0700) != 0)
      throw std::system_error(errno, std::generic_category(), folder.string());
  }

  node_lines shows_;
  runtime::memory_keeper keeper_;
  std::filesystem::path folder_;
  std::unique_ptr<runtime::node> node_;
  std::filesystem::path spare_; ///< for its blobs; empty: none
  bool full_ = false;           ///< its disk has refused something
  bool both_full_ = false;      ///< and so has that of `spare_`
};

} // namespace shoal::apps
