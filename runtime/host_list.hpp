// runtime/host_list.hpp -- lists of hosts that people and schedulers write.
//
// A Slurm node list: names with ranges in brackets, "gpu[01-03,7],login".
// A hosts file: one host or host:port on a line, # begins a comment.
//
// Threads: pure functions. Errors: nothing, for what is not such a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t hosts_max = 4096;
inline constexpr std::size_t host_bytes_max = 255;
inline constexpr std::size_t host_list_bytes_max = std::size_t{1} << 20;

/// Where a node listens that serves other machines and was told no port; also
/// what an address without a port means. UDP multicast uses the same number
/// (discovery_port), so that a firewall needs one rule.
inline constexpr std::uint16_t node_port = 18372;

std::optional<std::vector<std::string>>
parse_slurm_hosts(std::string_view list);

/// "host:port" each; `node_port` where the file names none.
std::optional<std::vector<std::string>> parse_hosts_file(std::string_view text);

/// "host", "[IPv6]" or an IPv6 address alone, with `node_port`; the rest as it
/// is.
std::string with_node_port(const std::string& address);

/// Splits "host:port" or "[host]:port".
bool split_host_port(const std::string& address, std::string& host,
                     std::string& port);

} // namespace shoal::runtime
