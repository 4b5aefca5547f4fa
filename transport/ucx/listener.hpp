// transport/ucx/listener.hpp -- the doors of UCX-TCP, and how they are named.
//
// Over TCP endpoints are made by socket address: one end knocks, the other
// makes an endpoint of the request. Not by worker addresses as over RDMA:
// with those both ends send requests to connect, on sockets of their own, and
// UCX 1.13.1 aborts the process if one comes after the endpoint that it is for
// has been closed (ucp_ep_update_remote_id), or if a socket breaks while a
// request waits for it (ucp_request_send_state_ff), as when a peer is killed.
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

/// A door on each of this machine's addresses in `trusted`, doors_max at most.
class listeners {
public:
  static constexpr std::size_t doors_max = 8;
  /// Somebody knocks; may come from within UCX: no endpoint is made in it.
  using knock = std::function<void(ucp_listener_h, ucp_conn_request_h)>;

  /// @throws std::runtime_error if there is no address, or no door opens
  listeners(ucp_worker_h worker, std::span<const network> trusted, knock told);
  ~listeners();
  listeners(const listeners&) = delete;
  listeners& operator=(const listeners&) = delete;

  /// Where they are, for door_of().
  const std::vector<std::byte>& way() const { return way_; }

private:
  static void on_request(ucp_conn_request_h request, void* door);
  struct door {
    listeners* owner = nullptr;
    ucp_listener_h handle = nullptr;
  };

  knock told_;
  std::vector<std::unique_ptr<door>> doors_;
  std::vector<std::byte> way_;
};

} // namespace shoal::transport::ucx
