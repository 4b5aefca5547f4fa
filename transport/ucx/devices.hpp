// transport/ucx/devices.hpp -- the devices that UCX may open.
//
// RDMA and UCX-TCP have no real secret: any host that reaches the port can
// write this process's memory. So a device is used only if it has an address in
// a network that the user has listed as trusted.
//
// Errors: parse_network() returns nothing for an invalid network. Devices that
//         cannot be read are left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;
struct sockaddr_storage;

namespace shoal::transport::ucx {

/// "10.1.0.0/16", "fd00::/8", or one address.
struct network {
  std::array<std::uint8_t, 16> address{}; ///< IPv4: the first four bytes
  bool v6 = false;
  int bits = 0; ///< the length of the prefix
};
std::optional<network> parse_network(std::string_view text);

/// Whether `address` is an IPv4 or IPv6 address in `n`.
bool contains(const network& n, const sockaddr& address);
bool contains_any(std::span<const network> trusted, const sockaddr& address);

/// Active RDMA ports ("mlx5_0:1") of interfaces in one of `trusted`.
std::vector<std::string> rdma_devices(std::span<const network> trusted);
/// This machine's addresses in one of `trusted`, IPv4 first, port 0, without
/// link-local ones.
std::vector<sockaddr_storage> tcp_addresses(std::span<const network> trusted);
/// Interfaces ("eth0") that have an address in one of `trusted`.
std::vector<std::string> tcp_devices(std::span<const network> trusted);

} // namespace shoal::transport::ucx
