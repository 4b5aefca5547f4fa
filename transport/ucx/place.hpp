// transport/ucx/place.hpp -- where a node listens, as its address tells it.
//
// A list of places, 19 bytes each: 4 or 6, the port, the address (16 bytes;
// IPv4 in the first four), all in network order. It comes from another node: a
// place is dialled only if it lies in a network that is trusted here.
//
// Threads: any. Errors: places that make no sense are passed over.
#pragma once

#include "transport/ucx/devices.hpp" // network

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shoal::transport::ucx {

/// Adds the place of a socket of IPv4 or IPv6 to a list.
void add_place(const sockaddr_storage& at, std::vector<std::byte>& way);

/// The first of `way` in a network of `trusted`.
std::optional<sockaddr_storage>
door_of(std::span<const std::byte> way, std::span<const network> trusted);

} // namespace shoal::transport::ucx
