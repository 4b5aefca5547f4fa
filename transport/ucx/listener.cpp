// transport/ucx/listener.cpp -- opens listeners.

#include "transport/ucx/listener.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <stdexcept>

namespace shoal::transport::ucx {

listeners::listeners(ucp_worker_h worker, std::span<const network> trusted,
                     knock told)
  : knock_(std::move(told)) {
  auto at = tcp_addresses(trusted);
  at.resize(std::min(at.size(), doors_max));
  for (const auto& address : at) {
    auto made = std::make_unique<door>();
    made->owner = this;
    ucp_listener_params_t params{};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR
                        | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address);
    params.sockaddr.addrlen = address.ss_family == AF_INET6
                                ? sizeof(sockaddr_in6)
                                : sizeof(sockaddr_in);
    params.conn_handler.cb = &listeners::on_request;
    params.conn_handler.arg = made.get();
    if (ucp_listener_create(worker, &params, &made->handle) != UCS_OK)
      continue;
    ucp_listener_attr_t found{};
    found.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    const auto status = ucp_listener_query(made->handle, &found);
    doors_.push_back(std::move(made));
    if (status != UCS_OK)
      continue;
    add_place(found.sockaddr, way_);
  }
  if (!way_.empty())
    return;
  for (const auto& d : doors_)
    ucp_listener_destroy(d->handle);
  throw std::runtime_error("ucx: cannot listen on any address in a trusted "
                           "network");
}

listeners::~listeners() {
  for (const auto& d : doors_)
    ucp_listener_destroy(d->handle);
}

void listeners::on_request(ucp_conn_request_h request, void* at) {
  const auto& d = *static_cast<door*>(at);
  d.owner->knock_(d.handle, request);
}

} // namespace shoal::transport::ucx
