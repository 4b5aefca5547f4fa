// transport/ucx/place.cpp -- converts places to bytes and back.

#include "transport/ucx/place.hpp"

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace shoal::transport::ucx {

namespace {

/// A place as it is stored in the list.
struct place {
  std::uint8_t version = 4;
  std::array<std::uint8_t, 2> port{};
  std::array<std::uint8_t, 16> address{}; ///< IPv4: the first four
};
static_assert(sizeof(place) == 19);

place place_of(const sockaddr_storage& socket) {
  place out;
  if (socket.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(socket);
    out.version = 6;
    std::memcpy(out.port.data(), &v6.sin6_port, out.port.size());
    std::memcpy(out.address.data(), &v6.sin6_addr, 16);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(socket);
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

void add_place(const sockaddr_storage& socket, std::vector<std::byte>& way) {
  const place p = place_of(socket);
  const auto first = reinterpret_cast<const std::byte*>(&p);
  way.insert(way.end(), first, first + sizeof p);
}

std::optional<sockaddr_storage>
door_of(std::span<const std::byte> way, std::span<const network> trusted) {
  for (; way.size() >= sizeof(place); way = way.subspan(sizeof(place))) {
    place p;
    std::memcpy(&p, way.data(), sizeof p);
    const auto socket = socket_of(p);
    if (socket
        && contains_any(trusted, reinterpret_cast<const sockaddr&>(*socket)))
      return socket;
  }
  return std::nullopt;
}

} // namespace shoal::transport::ucx
