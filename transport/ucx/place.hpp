// transport/ucx/place.hpp -- the addresses on which a node listens.
//
// A list of places, 19 bytes each: 4 or 6, the port, the address (16 bytes;
// IPv4 in the first four), all in network order. It comes from another node, so
// a place is dialled only if it lies in a network that is trusted here.
//
// Threads: any. Errors: invalid places are skipped.
#pragma once

#include "transport/ucx/devices.hpp" // network

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shoal::transport::ucx {

/// Adds the place of an IPv4 or IPv6 socket to a list.
void add_place(const sockaddr_storage& socket, std::vector<std::byte>& way);

/// The first of `way` in a network of `trusted`.
std::optional<sockaddr_storage>
door_of(std::span<const std::byte> way, std::span<const network> trusted);

} // namespace shoal::transport::ucx
