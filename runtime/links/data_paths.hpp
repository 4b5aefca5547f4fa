// runtime/links/data_paths.hpp -- data-path selection per peer, beside TLS.
//
// One fabric for each transport that may be used here: shared memory, RDMA,
// UCX-TCP. Peers send each other their addresses for these over TLS, and both
// connect; links then use the best fabric that is up (fabric_kind order in
// link_service::config). The next best is tried only where a better one is not
// possible. For each pair the reason why a better one is not used is known.
//
// With RDMA and UCX-TCP anyone who reaches the port can write memory. Hence
// only devices with an address in `trusted` are ever opened, none by default.
//
// Threads: any; open() once, close() once, not from the handler.
#pragma once

#include "runtime/links/link_service.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace shoal::transport::shm {
class arena;
}

namespace shoal::runtime {

/// Which fabrics a node may use for tensors.
struct fabric_choice {
  bool shared_memory = true;
  /// "auto", or the only one to use beside TLS: "tls", "shm", "rdma",
  /// "ucx-tcp".
  std::string force = "auto";
  bool ucx_tcp = false;             ///< "auto" includes it
  std::vector<std::string> exclude; ///< left out of "auto"
  std::vector<std::string> trusted; ///< networks, such as 10.1.0.0/16
};

/// Throws setup_error if the choice is invalid.
void check(const fabric_choice& c);

/// A fabric that a pair does not use, and why.
struct fabric_reason {
  std::string fabric;
  std::string why;
};
/// The fabric that the links of a pair use, and why better ones are not used.
struct pair_choice {
  fabric_kind used = fabric_kind::tls;
  std::vector<fabric_reason> instead_of;
};

/// Memory for tensors that peers on this machine may read; null if shared
/// memory is turned off or unavailable, which is reported by `say`.
std::shared_ptr<transport::shm::arena>
make_tensor_memory(const fabric_choice& may,
                   const std::function<void(const std::string&)>& say);

/// What data paths need of their node. Called on any thread; must not wait.
class data_path_handler {
public:
  virtual ~data_path_handler() = default;
  /// Sends an own address to a peer, over TLS.
  virtual std::error_code
  send_address(const core::peer_id& to, const paired_address& address) = 0;
  virtual void say(const std::string& line) = 0;
  /// Reports a fault of a peer.
  virtual void complain(const std::string& line) = 0;
};

class data_paths {
public:
  /// Time that a peer may take to begin a connection that was begun here.
  static constexpr std::chrono::seconds patience{15};

  struct config {
    core::peer_id self{};
    std::uint64_t instance = 0;
    std::string host; ///< boot id
    fabric_choice may;
    std::chrono::milliseconds hello_timeout = patience;
    link_service* links = nullptr;                       ///< outlives this
                                                         ///< object
    std::shared_ptr<const transport::shm::arena> memory; ///< may be null
  };

  /// @pre `handler` outlives it
  data_paths(config c, data_path_handler& handler);
  ~data_paths();
  void open();
  void close();

  void peer_up(const core::peer_id& peer); ///< on TLS
  void peer_down(const core::peer_id& peer);
  void take(const core::peer_id& from, const paired_address& address);
  void tick(std::chrono::steady_clock::time_point now);
  pair_choice choice(const core::peer_id& peer) const;

private:
  static constexpr std::size_t count = 3; ///< transports beside TLS
  class events;
  struct path;
  /// Progress of the connection to a peer over one fabric.
  struct route {
    bool up = false;
    bool hopeless = false; ///< impossible: another machine, or the fabric says
                           ///< so
    int tries = 0;
    std::chrono::steady_clock::time_point next_try{};
    std::string address; ///< the newest that the peer sent
    std::string why;     ///< reason if it is not up
  };
  using routes = std::array<route, count>;

  std::unique_ptr<transport::fabric> make(path& p);
  void open(path& p);
  std::string reason_to_close(const path& p) const;
  void
  changed(path& p, const core::peer_id& peer, bool up, const std::string& why);
  void failed(path& p, const std::string& address, std::error_code why);
  void give_up(const core::peer_id& peer);
  bool better_may_come(const routes& r, std::size_t index) const;

  config config_;
  data_path_handler& handler_;
  std::array<std::unique_ptr<path>, count> paths_; ///< best first
  mutable std::mutex mutex_; ///< guards what follows and path::why
  std::map<core::peer_id, routes> peers_;
};

} // namespace shoal::runtime
