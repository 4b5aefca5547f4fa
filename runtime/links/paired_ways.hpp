// runtime/links/paired_ways.hpp -- ways to peers beside TLS, and why not better.
//
// One fabric for each transport that may be used here: shared memory, RDMA,
// UCX-TCP. Peers tell each other over TLS how to reach them, and both
// connect; links then go by the best that is up (fabric_kind order in
// link_service::config). The next best is tried only where a better cannot be.
//
// RDMA and UCX-TCP let whoever reaches the port write memory, hence only
// devices with an address in `trusted` are ever opened, none by default.
//
// Threads: any; open() once, close() once, not from a hook.
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
  /// "auto", or the only one beside TLS: "tls", "shm", "rdma", "ucx-tcp".
  std::string force = "auto";
  bool ucx_tcp = false;             ///< "auto" has it, too
  std::vector<std::string> exclude; ///< of "auto"
  std::vector<std::string> trusted; ///< networks, such as 10.1.0.0/16
};

/// Throws setup_error if it cannot be meant.
void check(const fabric_choice& c);

/// A fabric that a pair does not use, and why.
struct fabric_reason {
  std::string fabric;
  std::string why;
};
/// What the links of a pair use, and why not what would be better.
struct pair_choice {
  fabric_kind used = fabric_kind::tls;
  std::vector<fabric_reason> instead_of;
};

/// Memory that peers of this machine may read, for tensors; null if shared
/// memory is turned off or cannot be had, which `say` is told.
std::shared_ptr<transport::shm::arena>
make_tensor_memory(const fabric_choice& may,
                   const std::function<void(const std::string&)>& say);

class paired_ways {
public:
  /// So long a peer may take to begin a connection that was begun here.
  static constexpr std::chrono::seconds patience{15};

  struct config {
    core::peer_id self{};
    std::uint64_t instance = 0;
    std::string host; ///< boot id
    fabric_choice may;
    std::chrono::milliseconds hello_timeout = patience;
    link_service* links = nullptr;                       ///< outlives it
    std::shared_ptr<const transport::shm::arena> memory; ///< may be null
    std::function<std::error_code(const core::peer_id&, const paired_address&)>
      send;
    std::function<void(const std::string&)> say;
    std::function<void(const std::string&)> complain; ///< of a peer
  };

  explicit paired_ways(config c);
  ~paired_ways();
  void open();
  void close();

  void peer_up(const core::peer_id& peer); ///< on TLS
  void peer_down(const core::peer_id& peer);
  void take(const core::peer_id& from, const paired_address& address);
  void tick(std::chrono::steady_clock::time_point now);
  pair_choice choice(const core::peer_id& peer) const;

private:
  static constexpr std::size_t count = 3; ///< transports beside TLS
  class handler;
  struct way;
  /// How far the way to a peer has come.
  struct route {
    bool up = false;
    bool hopeless = false; ///< another machine, or the fabric says it cannot
    int tries = 0;
    std::chrono::steady_clock::time_point next_try{};
    std::string address; ///< the newest that it sent
    std::string why;     ///< not up
  };
  using routes = std::array<route, count>;

  std::unique_ptr<transport::fabric> make(way& w);
  void open(way& w);
  std::string reason_to_close(const way& w) const;
  void
  changed(way& w, const core::peer_id& peer, bool up, const std::string& why);
  void failed(way& w, const std::string& address, std::error_code why);
  void give_up(const core::peer_id& peer);
  bool better_may_come(const routes& r, std::size_t index) const;

  config config_;
  std::array<std::unique_ptr<way>, count> ways_; ///< best first
  mutable std::mutex mutex_; ///< guards what follows and way::why
  std::map<core::peer_id, routes> peers_;
};

} // namespace shoal::runtime
