// transport/paired/address.hpp -- what a node tells another to be reached by.
//
// The opaque string of fabric::local_address(): "paired1." and
// hexadecimal digits of fixed fields, what the fabric itself needs and a
// checksum. One string per value: what parses, formats back to itself.
//
// Errors: parse_address() answers nothing for anything else than what
//         format_address() makes. It trusts no length.
#pragma once

#include "transport/peer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::transport::paired {

/// Longest boot id taken, in bytes; Linux has 36.
inline constexpr std::size_t boot_id_bytes_max = 64;
/// Longest way taken. Shared memory needs 8 bytes, a port of RDMA about 100.
inline constexpr std::size_t way_bytes_max = 4096;

/// A machine, user, pid and network namespace. Shared memory works within the
/// first three; that of UCX, which wakes the other end by a socket with an
/// abstract name, within all.
struct host_id {
  std::string boot_id;             ///< /proc/sys/kernel/random/boot_id
  std::uint32_t uid = 0;           ///< effective user
  std::uint64_t pid_namespace = 0; ///< inode of /proc/self/ns/pid
  std::uint64_t net_namespace = 0; ///< inode of /proc/self/ns/net
  friend bool operator==(const host_id&, const host_id&) = default;
};

/// What such a fabric runs over: shm:: the first, ucx:: the others.
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
  std::uint64_t token = 0; ///< secret; a sender proves by it that it was told
  std::vector<std::byte> way; ///< made and understood by the fabric
  friend bool operator==(const node_address&, const node_address&) = default;
};

std::string format_address(const node_address& address);
std::optional<node_address> parse_address(std::string_view text);

} // namespace shoal::transport::paired
