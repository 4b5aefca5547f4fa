// apps/chaos/chaos_nodes.hpp -- peers to harm: `shoal node` processes on this
// machine.
//
// Each runs this program again, in its own process group, with its own data
// directory below one temporary folder (0700), the cluster key of a separate
// shoal, and none of the user's settings. All die with this object, or with the
// thread that made it, however that ends; a folder that a killed process left
// behind is removed by the next one.
//
// Threads: one, which lives as long as the nodes.
// Errors:  std::runtime_error, setup_error.
#pragma once

#include "apps/chaos/chaos_network.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/host/child_process.hpp"
#include "runtime/identity/identity.hpp"

#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace shoal::apps {

struct chaos_nodes_config {
  std::size_t count = 4;
  std::string fabric = "auto";      ///< --fabric.force
  chaos_network* network = nullptr; ///< null: all on loopback
};

class chaos_nodes {
public:
  /// Makes the folder; starts no node. @param folder new; see new_folder()
  chaos_nodes(chaos_nodes_config config, std::filesystem::path folder);
  ~chaos_nodes();
  chaos_nodes(const chaos_nodes&) = delete;
  chaos_nodes& operator=(const chaos_nodes&) = delete;

  /// Removes what killed processes left behind, and names a folder for this
  /// one.
  static std::filesystem::path new_folder();

  std::size_t count() const { return all_.size(); }
  static std::string name(std::size_t i);
  std::filesystem::path data_dir(std::size_t i) const;
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& fabric() const { return config_.fabric; }

  /// @pre it is not running. Contacts the `join` addresses.
  void start(std::size_t i, const std::string& join);
  void kill(std::size_t i);  ///< SIGKILL, and waits for its end
  void pause(std::size_t i); ///< SIGSTOP
  void wake(std::size_t i);  ///< SIGCONT
  bool runs(std::size_t i) const { return all_[i].process.running(); }

  /// To poll for lines of a node; -1 while it is not running.
  int descriptor(std::size_t i) const { return all_[i].said.get(); }
  /// New lines, without waiting. Throws if the node has ended, with the way it
  /// ended and its last lines.
  std::vector<std::string> lines(std::size_t i);

private:
  struct node {
    runtime::child_process process;
    runtime::posix::descriptor said;
    std::string rest;             ///< an incomplete line
    std::deque<std::string> last; ///< lines to be shown
  };
  [[noreturn]] void ended(std::size_t i);

  static constexpr std::size_t last_max = 10;
  chaos_nodes_config config_;
  std::filesystem::path folder_;
  std::unique_ptr<runtime::data_dir_lock> lock_; ///< marks the folder as in use
  std::vector<node> all_;
};

} // namespace shoal::apps
