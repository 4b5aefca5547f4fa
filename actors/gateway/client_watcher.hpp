// actors/gateway/client_watcher.hpp -- tells the gateway of what becomes of a
// client: it has gone, or takes more again.
//
// Threads: the HTTP server's.
#pragma once

#include "actors/gateway/gateway.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <utility>

namespace shoal::actors {

class client_watcher final : public runtime::http_watcher {
public:
  client_watcher(caf::actor_addr gateway, std::uint64_t request)
    : gateway_(std::move(gateway)), request_(request) {}
  void closed() override { tell(client_left{request_}); }
  void writable() override { tell(client_ready{request_}); }

private:
  template <class Message>
  void tell(Message m) {
    if (const auto to = caf::actor_cast<caf::actor>(gateway_))
      caf::anon_send(to, m);
  }
  caf::actor_addr gateway_;
  std::uint64_t request_;
};

} // namespace shoal::actors
