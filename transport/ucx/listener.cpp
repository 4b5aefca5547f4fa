// transport/ucx/listener.cpp -- opens doors; reads and writes their places.

#include "transport/ucx/listener.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace shoal::transport::ucx {

namespace {

/// One place: 4 or 6, the port, the address; in network order.
struct place {
  std::uint8_t version = 4;
  std::array<std::uint8_t, 2> port{};
  std::array<std::uint8_t, 16> address{}; ///< IPv4: the first four
};
static_assert(sizeof(place) == 19);

place place_of(const sockaddr_storage& at) {
  place out;
  if (at.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
    out.version = 6;
    std::memcpy(out.port.data(), &v6.sin6_port, out.port.size());
    std::memcpy(out.address.data(), &v6.sin6_addr, 16);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(at);
    std::memcpy(out.port.data(), &v4.sin_port, out.port.size());
    std::memcpy(out.address.data(), &v4.sin_addr, 4);
  }
  return out;
}

std::optional<sockaddr_storage> socket_of(const place& p) {
  sockaddr_storage out{};
  if (p.version == 6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_port, p.port.data(), p.port.size());
    std::memcpy(&v6.sin6_addr, p.address.data(), 16);
  } else if (p.version == 4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out);
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_port, p.port.data(), p.port.size());
    std::memcpy(&v4.sin_addr, p.address.data(), 4);
  } else {
    return std::nullopt;
  }
  return out;
}

} // namespace

listeners::listeners(ucp_worker_h worker, std::span<const network> trusted,
                     knock told)
  : told_(std::move(told)) {
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
    const place p = place_of(found.sockaddr);
    const auto first = reinterpret_cast<const std::byte*>(&p);
    way_.insert(way_.end(), first, first + sizeof p);
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
  d.owner->told_(d.handle, request);
}

std::optional<sockaddr_storage>
door_of(std::span<const std::byte> way, std::span<const network> trusted) {
  for (; way.size() >= sizeof(place); way = way.subspan(sizeof(place))) {
    place p;
    std::memcpy(&p, way.data(), sizeof p);
    const auto at = socket_of(p);
    if (at && contains_any(trusted, reinterpret_cast<const sockaddr&>(*at)))
      return at;
  }
  return std::nullopt;
}

} // namespace shoal::transport::ucx
