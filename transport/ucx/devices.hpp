// transport/ucx/devices.hpp -- which devices UCX may open.
//
// RDMA and UCX-TCP know no secret that is worth the name: whoever reaches the
// port can write this process's memory. So a device is used only if it has an
// address in a network that somebody has listed as trusted.
//
// Errors: parse_network() answers nothing for what is no network. Devices that
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
  int bits = 0; ///< of the address that count
};
std::optional<network> parse_network(std::string_view text);

/// Whether `address` is one of IPv4 or IPv6 in `n`.
bool contains(const network& n, const sockaddr& address);
bool contains_any(std::span<const network> trusted, const sockaddr& address);

/// Active RDMA ports ("mlx5_0:1") of interfaces in one of `trusted`.
std::vector<std::string> rdma_devices(std::span<const network> trusted);
/// This machine's addresses in one of `trusted`, IPv4 first, port 0; none that
/// is link-local.
std::vector<sockaddr_storage> tcp_addresses(std::span<const network> trusted);
/// Interfaces ("eth0") that have an address in one of `trusted`.
std::vector<std::string> tcp_devices(std::span<const network> trusted);

} // namespace shoal::transport::ucx
