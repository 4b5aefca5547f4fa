// apps/remote/local_nodes.hpp -- a shoal of processes on this machine, to
// measure.
//
// Each node runs in a process of its own, on loopback, in a shoal with its own
// name and a temporary directory; each on one core, assigned in turn. All end
// with this object, or with this process; a folder left by a killed process is
// removed by the next one.
//
// Threads: forks, so the caller must have none yet. One at a time.
// Errors:  std::runtime_error when a process fails or cannot be created.
#pragma once

#include "runtime/files/posix.hpp"
#include "runtime/host/child_process.hpp"
#include "runtime/identity/identity.hpp"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::runtime {
struct node_config;
struct role_table;
} // namespace shoal::runtime

namespace shoal::apps {

class local_nodes {
public:
  /// In a node's process: sends line() a text, "WORD rest". Any thread.
  using sayer = std::function<void(const std::string& line)>;
  /// In a node's process, before it starts: adds roles, changes settings.
  using prepare = std::function<void(runtime::node_config&,
                                     runtime::role_table&, const sayer&)>;

  /// Starts the nodes; they may not have met yet. @pre count >= 1
  local_nodes(int count, const prepare& p);
  ~local_nodes();
  local_nodes(const local_nodes&) = delete;
  local_nodes& operator=(const local_nodes&) = delete;

  /// The next line of node `i`: its first word, and the rest. A node that sends
  /// "failed WHY", or ends, is an error.
  std::pair<std::string, std::string> line(std::size_t i);

  /// The data directory by which a command finds node `i`.
  std::filesystem::path data_dir(std::size_t i) const;

private:
  void start_all(int count, const prepare& p);
  void start(const std::string& join, const prepare& p);
  void end() noexcept;

  struct node {
    runtime::child_process process;
    std::FILE* said = nullptr;
    runtime::posix::descriptor stop; ///< its end ends the node
  };
  std::filesystem::path folder_;
  std::unique_ptr<runtime::data_dir_lock> lock_; ///< marks the folder as in use
  std::vector<node> all_;
};

} // namespace shoal::apps
