// runtime/discovery/host_list.hpp -- lists of hosts by users and schedulers.
//
// A Slurm node list: names with ranges in brackets, "gpu[01-03,7],login".
// A hosts file: one host or host:port on a line, # begins a comment.
//
// Threads: any.
// Errors:  nothing is returned for text that is no node list; a failure of a hosts
//          file names the line.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t hosts_max = 4096;
inline constexpr std::size_t host_bytes_max = 255;
inline constexpr std::size_t host_list_bytes_max = std::size_t{1} << 20;

/// The default port of a node that serves other machines, and of an address
/// without a port. UDP multicast uses the same number (discovery_port), so that
/// a firewall needs only one rule.
inline constexpr std::uint16_t node_port = 18372;

std::optional<std::vector<std::string>>
parse_slurm_hosts(std::string_view list);

/// "host:port" each, with `node_port` if the file names none.
/// A failure names the line that is no host, or that is one too many.
model::result<std::vector<std::string>> parse_hosts_file(std::string_view text);

/// The same of a file. A failure names it, and what is wrong with it.
model::result<std::vector<std::string>>
read_hosts_file(const std::filesystem::path& file);

/// Adds `node_port` to "host", "[IPv6]" or a plain IPv6 address; leaves other
/// text unchanged.
std::string with_node_port(const std::string& address);

/// Splits "host:port" or "[host]:port".
bool split_host_port(const std::string& address, std::string& host,
                     std::string& port);

} // namespace shoal::runtime
