// transport/ucx/listener.hpp -- UCX-TCP listeners and their addresses.
//
// Over TCP, endpoints are made by socket address: one end connects, the other
// makes an endpoint of the request. Worker addresses, as over RDMA, do not work
// here: with those both ends send requests to connect, on sockets of their own,
// and UCX 1.13.1 aborts the process if a request comes after its endpoint has
// been closed (ucp_ep_update_remote_id), or if a socket breaks while a request
// waits for it (ucp_request_send_state_ff), as when a peer is killed.
//
// Threads: the progress thread only.
#pragma once

#include "transport/ucx/place.hpp"

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shoal::transport::ucx {

/// A listener on each of this machine's addresses in `trusted`, up to
/// doors_max.
class listeners {
public:
  static constexpr std::size_t doors_max = 8;
  /// Called for a request to connect. It may run within UCX, so it must not
  /// make an endpoint.
  using knock = std::function<void(ucp_listener_h, ucp_conn_request_h)>;

  /// @throws std::runtime_error if there is no address, or no listener opens
  listeners(ucp_worker_h worker, std::span<const network> trusted, knock told);
  ~listeners();
  listeners(const listeners&) = delete;
  listeners& operator=(const listeners&) = delete;

  /// The addresses of the listeners, for door_of().
  const std::vector<std::byte>& way() const { return way_; }

private:
  static void on_request(ucp_conn_request_h request, void* door);
  struct door {
    listeners* owner = nullptr;
    ucp_listener_h handle = nullptr;
  };

  knock knock_;
  std::vector<std::unique_ptr<door>> doors_;
  std::vector<std::byte> way_;
};

} // namespace shoal::transport::ucx
