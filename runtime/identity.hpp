// runtime/identity.hpp -- who this node is, and which secret it shares.
//
// A node's Ed25519 key lives in its data directory. The cluster key is a file
// that the user shares between machines, or the user's own, which is made on
// first use outside the data directories, so that all nodes of one user on one
// machine agree. Key files hold 64 hexadecimal digits and are mode 0600; one
// that others can read is refused.
//
// Threads: any. Errors: node_error with the file's name and what to do.
#pragma once

#include "runtime/core/ids.hpp"
#include "transport/tls/identity.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace shoal::runtime {

/// Reads the key in `file`, or makes one there.
transport::tls::private_key load_private_key(const std::filesystem::path& file);

/// Makes a new cluster key in `file`, 0600; refuses to overwrite anything.
transport::tls::shared_key new_cluster_key(const std::filesystem::path& file);

/// What people compare: 32 digits that tell a cluster key without showing it.
std::string key_fingerprint(const transport::tls::shared_key& key);

/// Reads a cluster key that must exist.
transport::tls::shared_key load_cluster_key(const std::filesystem::path& file);

/// The cluster key that a node keeps for itself: it came by an invite, or
/// replaced the one that the user named. It can be given to other machines.
std::filesystem::path own_key_file(const std::filesystem::path& data_dir);
void keep_own_key(const std::filesystem::path& data_dir,
                  const transport::tls::shared_key& key);

/// The name of the cluster for which keep_own_key() has kept an invite's key.
/// @returns nothing where none is kept; then a node is of the default one.
std::optional<std::string> own_cluster(const std::filesystem::path& data_dir);
void keep_own_cluster(const std::filesystem::path& data_dir,
                      const std::string& name);

/// Reads the user's cluster key, or makes it: $XDG_CONFIG_HOME/shoal/
/// cluster.key. Of several processes that make it at once, all get the same.
transport::tls::shared_key load_user_key();
std::filesystem::path user_key_file();

/// Makes a data directory that others can look into private. One that holds
/// files but no node is left as it is and refused: it may be shared on purpose.
/// @returns whether it was open and is private now.
bool mend_data_dir(const std::filesystem::path& folder);

/// A data directory that this process uses alone.
class data_dir_lock {
public:
  /// Makes the directory (0700) and locks it; names the pid that holds it.
  explicit data_dir_lock(const std::filesystem::path& folder);
  ~data_dir_lock();
  data_dir_lock(const data_dir_lock&) = delete;
  data_dir_lock& operator=(const data_dir_lock&) = delete;

private:
  int fd_ = -1;
};

} // namespace shoal::runtime
