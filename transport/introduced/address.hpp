// transport/introduced/address.hpp -- the address that a node gives to another
// node.
//
// The opaque string of fabric::local_address(): "paired1." and hexadecimal
// digits of fixed fields, the data that the fabric itself needs, and a
// checksum. One string per value: a string that parses formats back to itself.
//
// Errors: parse_address() returns nothing for any string that format_address()
//         does not produce. It trusts no length.
#pragma once

#include "transport/peer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::transport::introduced {

/// The longest boot id accepted, in bytes; Linux has 36.
inline constexpr std::size_t boot_id_bytes_max = 64;
/// The longest `way` accepted. Shared memory needs 8 bytes, RDMA about 100 per
/// port.
inline constexpr std::size_t way_bytes_max = 4096;

/// A machine, user, pid namespace and network namespace. Shared memory works
/// within the first three. UCX shared memory, which wakes the other end by a
/// socket with an abstract name, works within all four.
struct host_id {
  std::string boot_id;             ///< /proc/sys/kernel/random/boot_id
  std::uint32_t uid = 0;           ///< effective user
  std::uint64_t pid_namespace = 0; ///< inode of /proc/self/ns/pid
  std::uint64_t net_namespace = 0; ///< inode of /proc/self/ns/net
  friend bool operator==(const host_id&, const host_id&) = default;
};

/// The medium that such a fabric runs over: shared_memory for shm::, the others
/// for ucx::.
enum class medium : std::uint8_t { shared_memory = 1, rdma, tcp, ucx_memory };

/// One node of this fabric.
struct node_address {
  medium over = medium::shared_memory;
  host_id host;
  std::uint32_t pid = 0; ///< watched, so that its end is noticed at once
  peer_id peer{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;
  std::uint64_t capabilities = 0;
  std::uint64_t token = 0;    ///< secret; proves that its sender was introduced
  std::vector<std::byte> way; ///< how to connect; only the fabric reads it
  friend bool operator==(const node_address&, const node_address&) = default;
};

std::string format_address(const node_address& address);
std::optional<node_address> parse_address(std::string_view text);

} // namespace shoal::transport::introduced
