// runtime/node/setup.hpp -- turns a node's configuration into its set-up.
//
// Errors: setup_error, whose text names the flag and what to do; usage_error
//         for mistakes in the flags themselves.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/node/node_config.hpp"

#include <memory>
#include <optional>

namespace shoal::runtime {

/// A directory that is removed with its owner.
class throw_away_dir {
public:
  throw_away_dir() = default;
  ~throw_away_dir();
  throw_away_dir(const throw_away_dir&) = delete;
  throw_away_dir& operator=(const throw_away_dir&) = delete;
  const std::filesystem::path& make();

private:
  std::filesystem::path path_;
};

/// Everything checked, locked and loaded.
struct node_setup {
  throw_away_dir embedded;
  std::filesystem::path data_dir;
  std::unique_ptr<data_dir_lock> lock;
  transport::tls::private_key identity{};
  transport::tls::shared_key cluster_key{};
  /// The stored record of earlier replacements of the key, if it still applies.
  std::optional<core::cluster::key_record> keys;
  std::vector<std::string> names; ///< from a Slurm list, "host:port"
  std::vector<std::string> seeds; ///< from a join token
  std::vector<std::string> join;  ///< as configured, each with a port
  std::string cluster;
  std::string listen; ///< "host:port"
  /// Used if the port of `listen` is taken. Empty: none.
  std::string listen_else;
  bool loopback_only = true;
  std::string name;
};

void set_up(const node_config& config, node_setup& out);

} // namespace shoal::runtime
