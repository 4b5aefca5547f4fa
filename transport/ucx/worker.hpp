// transport/ucx/worker.hpp -- the UCX context and worker of one fabric.
//
// Sets UCX up for active messages over one medium with peer error handling, and
// fails if UCX would use anything else. It never uses the environment for that;
// the user's UCX_TLS and UCX_NET_DEVICES are overridden.
//
// Threads:   made, used and destroyed on one thread, except for signal().
// Ownership: endpoints are plain handles; each must be closed, and its close
//            request have ended, before the worker is destroyed.
#pragma once

#include "transport/introduced/address.hpp"

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::transport::ucx {

using namespace introduced;

class worker {
public:
  /// @throws std::runtime_error if UCX does not support it here
  worker(medium over, const std::string& devices,
         const std::function<void(std::string_view)>& log);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  ucp_worker_h handle() const noexcept { return worker_; }
  std::vector<std::byte> address() const;

  /// Handles every active message by `callback`, whole messages only.
  void on_message(unsigned id, ucp_am_recv_callback_t callback, void* arg);

  /// Makes an endpoint of `address`, which must come from a worker's address().
  /// @returns its status; `out` is set if that is UCS_OK and the endpoint uses
  /// only transports of the medium
  ucs_status_t connect(std::span<const std::byte> address,
                       ucp_err_handler_cb_t failed, void* arg, ucp_ep_h& out);

  /// The same by the address of a listener (not connected yet when this
  /// returns), and by a request that one of our listeners received.
  ucs_status_t dial(const sockaddr_storage& door, ucp_err_handler_cb_t failed,
                    void* arg, ucp_ep_h& out);
  ucs_status_t accept(ucp_conn_request_h request, ucp_err_handler_cb_t failed,
                      void* arg, ucp_ep_h& out);
  /// Ends everything on `endpoint`. Not for UCX callbacks. @returns the request
  /// of the close, nullptr if it has ended
  void* force_close(ucp_ep_h endpoint);

  unsigned progress() noexcept { return ucp_worker_progress(worker_); }
  /// Wakes wait(). From any thread.
  void signal() noexcept { ucp_worker_signal(worker_); }

  /// Adds `fd` to the events that wake wait(); `cookie` identifies it.
  bool watch(int fd, std::uint64_t cookie) noexcept;
  /// Sleeps until there is something to progress, a signal, or a ready watched
  /// descriptor, or until `timeout_ms` (-1: for ever) is over. Returns at once
  /// if there was something before. Calls `ready` with each ready descriptor's
  /// cookie.
  void wait(int timeout_ms, const std::function<void(std::uint64_t)>& ready);
  /// As wait() for watched descriptors, without sleeping.
  void poll(const std::function<void(std::uint64_t)>& ready);

private:
  void check_lanes();

  medium over_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int epoll_ = -1;
};

} // namespace shoal::transport::ucx
