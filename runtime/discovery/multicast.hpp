// runtime/discovery/multicast.hpp -- the sockets of discovery, for both
// families.
//
// Datagrams go to a group of local scope, one hop far: IPv4 and IPv6 on every
// interface that reaches the listener. On loopback they go by IPv4 even if the
// listener is bound to ::1: Linux has no route for IPv6 multicast there, and
// IPv4 multicast on loopback needs no IPv4 address.
//
// Threads: one. Errors: open() says whether any family works; send() returns
//          the reason.
#pragma once

#include "runtime/files/file.hpp" // unique_fd
#include "runtime/host/ip_address.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

namespace shoal::runtime {

/// Administratively scoped (RFC 2365); transient and link-local (RFC 4291),
/// from the range that is free for everybody (RFC 3307).
inline constexpr const char* discovery_group = "239.255.83.72";
inline constexpr const char* discovery_group6 = "ff12::8053:4841";
inline constexpr std::uint16_t discovery_port = 18372;
inline constexpr std::size_t discovery_interfaces_max = 32;

/// An interface and a family to send by, and the address offered there.
struct beacon_way {
  unsigned interface = 0;
  bool loopback = false;
  bool v6 = false;      ///< the family that carries it
  ip_address source{};  ///< any: the kernel chooses
  ip_address offered{}; ///< the address of the listener there
};

/// One interface of the network as it is now.
struct network_interface {
  unsigned index = 0;
  bool loopback = false;
  bool multicast = false;            ///< on loopback always
  std::vector<ip_address> addresses; ///< in the system's order
};

/// The interfaces that are up.
std::vector<network_interface> list_interfaces();

/// The ways to offer a listener bound to `host`: one for each family on each
/// interface. IPv6 offers the link-local address if there is one, since every
/// node that hears the beacon can reach it.
std::vector<beacon_way>
ways_to(const scoped_address& host, const std::vector<network_interface>& all);

class multicast {
public:
  /// @returns whether IPv4 or IPv6 works here; errno says why not.
  bool open();

  /// Joins the groups on the interfaces that reach a listener bound to `host`.
  /// @returns lines about failures that were not reported before.
  std::vector<std::string>
  join(const scoped_address& host, const std::vector<network_interface>& all);

  std::error_code send(const beacon_way& way, std::span<const std::byte> bytes);

  struct datagram {
    scoped_address source;
    bool loopback = false;
    std::size_t bytes = 0;
  };
  /// Reads one, if there is one; skips those to other addresses.
  std::optional<datagram> receive(std::span<std::byte> into);

  std::vector<int> descriptors() const; ///< to poll for input

private:
  bool open4();
  bool open6();
  std::optional<datagram> receive(int from, bool v6, std::span<std::byte> into);

  unique_fd in4_, out4_, in6_, out6_;
  std::map<unsigned, bool> loopback_;                  ///< by interface
  std::map<std::pair<unsigned, bool>, bool> reported_; ///< failures reported
};

} // namespace shoal::runtime
