// runtime/identity/identity.hpp -- a node's key and the cluster key that it shares.
//
// A node's Ed25519 key lies in its data directory. The cluster key is a file
// that the user shares between machines, or the user's own key. That one is
// made on first use, outside the data directories, so that all nodes of one
// user on one machine use the same. Key files hold 64 hexadecimal digits and
// have mode 0600; a key file that others can read is refused.
//
// Threads: any. Errors: setup_error with the file's name and the remedy.
#pragma once

#include "runtime/core/ids.hpp"
#include "transport/tls/identity.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace shoal::runtime {

/// Refuses a secret that others can read. @param file is open as `fd`
/// @param what "key file F"
void check_secret(int fd, const std::string& what);

/// The file of a node's key in its data directory; there is none before its first
/// start.
std::filesystem::path identity_file(const std::filesystem::path& data_dir);
/// Reads the key in `file`, or makes one there.
transport::tls::private_key load_private_key(const std::filesystem::path& file);

/// Makes a new cluster key in `file`, 0600; refuses to overwrite anything.
transport::tls::shared_key new_cluster_key(const std::filesystem::path& file);

/// The fingerprint that users compare: 32 digits that identify a cluster key
/// without showing it.
std::string key_fingerprint(const transport::tls::shared_key& key);

/// Reads a cluster key that must exist.
transport::tls::shared_key load_cluster_key(const std::filesystem::path& file);

/// The file of the cluster key that a node keeps for itself: the key came with
/// an invite, or replaced the key that the user named. It can be given to other
/// machines.
std::filesystem::path own_key_file(const std::filesystem::path& data_dir);
void keep_own_key(const std::filesystem::path& data_dir,
                  const transport::tls::shared_key& key);

/// The name of the cluster for which keep_own_key() has kept an invite's key.
/// @returns nothing if none is kept; then the node belongs to the default
/// cluster.
std::optional<std::string> own_cluster(const std::filesystem::path& data_dir);
void keep_own_cluster(const std::filesystem::path& data_dir,
                      const std::string& name);

/// Reads the user's cluster key, or makes it:
/// $XDG_CONFIG_HOME/shoal/cluster.key. If several processes make it at once,
/// all get the same.
transport::tls::shared_key load_user_key();
std::filesystem::path user_key_file();

/// The user's cluster key for a command. It makes none, since nobody would know
/// a new key.
transport::tls::shared_key existing_user_key();

/// The data directory of `name`: $XDG_DATA_HOME/shoal/<name>; "default" if the
/// name is empty.
std::filesystem::path default_data_dir(const std::string& name);

/// Names of the data directories beside `data_dir` that nodes have used, in order.
std::vector<std::string> nodes_beside(const std::filesystem::path& data_dir);

/// The control socket of the node that uses `data_dir`.
std::filesystem::path control_socket(const std::filesystem::path& data_dir);

/// Makes a data directory private if other users can read it. A directory with
/// files but without a node is refused unchanged: it may be shared on purpose.
/// @returns whether it was accessible and is private now.
bool mend_data_dir(const std::filesystem::path& folder);

/// Throws setup_error, with its pid, if a process has this data directory. Makes
/// nothing.
void check_data_dir_is_free(const std::filesystem::path& folder);

/// A data directory that only this process uses.
class data_dir_lock {
public:
  /// Makes the directory (0700) and locks it; names the pid that holds it.
  explicit data_dir_lock(const std::filesystem::path& folder);
  ~data_dir_lock();
  data_dir_lock(const data_dir_lock&) = delete;
  data_dir_lock& operator=(const data_dir_lock&) = delete;

  /// Whether the directory was removed or moved away meanwhile, also where another
  /// is in its place now. Reads the disk.
  bool lost() const;

private:
  std::filesystem::path file_;
  std::string text_; ///< in the file
  int fd_ = -1;
};

} // namespace shoal::runtime
