// runtime/http/listen_address.hpp -- where an HTTP server listens.
//
// Threads: pure functions. Errors: usage_error for what the user gave.
#pragma once

#include "runtime/host/ip_address.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::runtime {

struct listen_address {
  scoped_address ip;
  std::uint16_t port = 0;
};

/// Reads "127.0.0.1:8080", "[::1]:8080" or "localhost:8080" (as 127.0.0.1).
listen_address parse_listen(const std::string& text);

/// Throws usage_error if other machines reach the address and there are no keys.
void check_exposure(const listen_address& address, const std::string& text,
                    bool has_keys);

/// Whether a Host header names this machine by a name that no other can have:
/// "localhost", "127.0.0.1:8080", "[::1]". Any port.
bool is_loopback_host(std::string_view host);

} // namespace shoal::runtime
