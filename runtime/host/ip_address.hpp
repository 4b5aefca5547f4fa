// runtime/host/ip_address.hpp -- addresses of both families as one type.
//
// A link-local address is useless without its interface: as text it is
// "fe80::1%eth0". Other machines get it without the interface, since theirs has
// another name; their transport then tries each of its own.
//
// Threads: pure functions, except for those that look up an interface's name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace shoal::runtime {

/// IPv6, or IPv4 mapped into it (::ffff:a.b.c.d).
using ip_address = std::array<std::uint8_t, 16>;

/// An address and, if it is link-local and known, its interface; otherwise 0.
struct scoped_address {
  ip_address address{};
  unsigned interface = 0;
};

/// "127.0.0.1", "::1", "fe80::1%eth0", "fe80::1%2"; no host names.
std::optional<scoped_address> parse_ip(const std::string& text);

ip_address from_v4(const void* four_bytes);
bool is_v4(const ip_address& a);
bool is_any(const ip_address& a); ///< 0.0.0.0 or ::
bool is_loopback(const ip_address& a);
bool is_link_local(const ip_address& a); ///< fe80::/10
bool is_multicast(const ip_address& a);

/// "10.0.0.1:7", "[fd00::1]:7", "[fe80::1%eth0]:7".
std::string to_text(const scoped_address& a, std::uint16_t port);

/// The host of "host:port" or "[host]:port", without brackets. @returns "" if
/// it is neither.
std::string host_of(const std::string& address);

/// Removes the interface: "[fe80::1%eth0]:7" becomes "[fe80::1]:7" for others.
std::string without_interface(const std::string& address);

} // namespace shoal::runtime
