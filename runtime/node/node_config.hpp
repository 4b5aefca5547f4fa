// runtime/node/node_config.hpp -- the configuration of a node.
//
// Plain data, one field for each flag of `shoal node`, and the observer by
// which the program around the node gets its news.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {
struct view;
}

namespace shoal::runtime {

/// Time for which a leaving node waits for its jobs and for the others to
/// agree.
inline constexpr std::chrono::seconds leave_deadline{60};

inline constexpr char default_cluster[] = "shoal";

/// News for the program around a node. Called on threads of the node; must not
/// wait and must not call the node. What is not overridden is ignored.
class node_observer {
public:
  virtual ~node_observer() = default;
  virtual void ready(const std::string& /*line*/) {} ///< once
  /// Another view is in effect. @param member whether this node is in it
  virtual void agreed(const core::view& /*view*/, bool /*member*/) {}
  virtual void waiting(const std::string& /*line*/) {} ///< while no quorum
  virtual void say(const std::string& /*line*/) {}     ///< everything else
  virtual void stopped(const std::string& /*why*/) {}  ///< once, at the end
  /// A command asks the node to leave. @returns true: the program itself makes
  /// it leave (node::leave), when it has done what comes before
  virtual bool leave_asked() { return false; }
};

struct node_config {
  /// Shown to users; selects <default data directory>/<name>.
  std::string name;
  /// Overrides the directory that `name` selects. Used by one node at a time.
  std::filesystem::path data_dir;
  /// "host:port"; port 0: any free one. Empty: if a cluster key file is given,
  /// node_port of every interface, by IPv6 and IPv4 (any free port if that one
  /// is taken); else any free port of loopback.
  std::string listen;
  /// "host:port" or "host" (node_port) of peers to contact in addition to those
  /// that discovery finds: until one answers, and later now and then while they
  /// are not connected.
  std::vector<std::string> join;
  /// Lists of hosts to contact: a file, read again when it changes, and the
  /// nodes of the Slurm job that this process is part of. Hosts without a port
  /// are tried at node_port, where a node with a list then listens.
  std::filesystem::path hosts_file;
  bool slurm = false;
  /// Shoals with other names are ignored. If left out: the name in the join
  /// token, or the one with which this data directory's node has joined, else
  /// default_cluster.
  std::optional<std::string> cluster;
  /// The secret that the peers share. Empty: the user's own, made on first use;
  /// the node then binds only to loopback.
  std::filesystem::path cluster_key_file;
  /// From `shoal invite`: asks the inviter for the cluster key, which is then
  /// kept in the data directory. Not used again once that has a key.
  std::string join_token;
  /// Version of the program, for display: `shoal status` shows where peers
  /// differ. Cut to codec::version_bytes_max; if left out, peers get none.
  std::string version;
  /// Where the program answers clients of models, "127.0.0.1:8000"; for display.
  std::string http;
  bool witness = false; ///< votes, gets no work
  bool voter = true;    ///< false: works, votes only while it is alone
  int threads = 0;      ///< for computation; 0: all cores
  /// Temporary identity and data directory, no stored view, not discoverable:
  /// `shoal train` without a running node.
  bool embedded = false;
  /// Where blobs go if the disk of data_dir refuses them; empty: nowhere. The
  /// caller removes it.
  std::filesystem::path spare_blobs;
  bool discover = true;      ///< UDP multicast; off: only `join`
  bool shared_memory = true; ///< use shared memory between peers of a host
  /// "auto": same process, else shared memory, else RDMA, else UCX-TCP if it is
  /// enabled, else TLS. Or the only one to use beside TLS: "tls", "shm",
  /// "rdma", "ucx-tcp".
  std::string force_fabric = "auto";
  bool ucx_tcp = false; ///< may end the process: see transport/README.md
  /// Fabrics that "auto" must not use.
  std::vector<std::string> exclude_fabrics;
  /// Networks where RDMA and UCX-TCP may be used, such as 10.1.0.0/16. Every
  /// host in such a network can read and write this process's memory.
  std::vector<std::string> trusted_networks;
  /// Memory that jobs may use; 0: half of the machine's free memory, shared by
  /// all nodes of the machine that have 0 here.
  std::uint64_t memory_bytes = 0;
  /// What the blobs of jobs may take of the disk: texts, checkpoints, files of
  /// models; 0: all but a reserve (store::reserve_share).
  std::uint64_t disk_bytes = 0;
  /// Skips the measurement when not 0 (tests).
  std::uint64_t mflops = 0;
  /// File for the time line of the node's work (timeline.hpp); empty: none.
  std::filesystem::path trace_file;
  node_observer* observer = nullptr; ///< outlives the node; null: none
};

} // namespace shoal::runtime
