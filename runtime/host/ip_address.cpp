// runtime/host/ip_address.cpp -- reads and writes addresses.
#include "runtime/host/ip_address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace shoal::runtime {

static constexpr std::uint8_t mapped[] = {0, 0, 0, 0, 0,    0,
                                          0, 0, 0, 0, 0xff, 0xff};

std::optional<scoped_address> parse_ip(const std::string& text) {
  scoped_address out;
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    out.address = from_v4(&four);
    return out;
  }
  const auto percent = text.find('%');
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), out.address.data())
      != 1)
    return std::nullopt;
  if (percent == std::string::npos)
    return out;
  const std::string scope = text.substr(percent + 1);
  if (scope.empty() || !is_link_local(out.address))
    return std::nullopt;
  const auto* end = scope.data() + scope.size();
  const auto read = std::from_chars(scope.data(), end, out.interface);
  if (read.ec != std::errc() || read.ptr != end)
    out.interface = ::if_nametoindex(scope.c_str());
  if (out.interface == 0)
    return std::nullopt;
  return out;
}

ip_address from_v4(const void* four_bytes) {
  ip_address out{};
  std::ranges::copy(mapped, out.begin());
  std::memcpy(out.data() + sizeof mapped, four_bytes, 4);
  return out;
}

bool is_v4(const ip_address& a) {
  return std::equal(std::begin(mapped), std::end(mapped), a.begin());
}

bool is_any(const ip_address& a) {
  constexpr std::uint8_t zero[4] = {};
  return a == ip_address{} || a == from_v4(zero);
}

bool is_loopback(const ip_address& a) {
  ip_address loopback{};
  loopback.back() = 1;
  return a == loopback || (is_v4(a) && a[sizeof mapped] == 127);
}

bool is_link_local(const ip_address& a) {
  return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

bool is_multicast(const ip_address& a) {
  return a[0] == 0xff || (is_v4(a) && (a[sizeof mapped] & 0xf0) == 0xe0);
}

std::string to_text(const scoped_address& a, std::uint16_t port) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool four = is_v4(a.address);
  ::inet_ntop(four ? AF_INET : AF_INET6,
              a.address.data() + (four ? sizeof mapped : 0), text, sizeof text);
  std::string host = text;
  if (is_link_local(a.address) && a.interface != 0) {
    char name[IF_NAMESIZE] = {};
    host += "%";
    host += ::if_indextoname(a.interface, name) ? std::string(name)
                                                : std::to_string(a.interface);
  }
  return (four ? host : "[" + host + "]") + ":" + std::to_string(port);
}

std::string host_of(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return {};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return host.substr(1, host.size() - 2);
  return host.find_first_of("[]:") == std::string::npos ? host : std::string{};
}

std::string without_interface(const std::string& address) {
  const auto percent = address.find('%');
  const auto end = address.find(']');
  if (percent == std::string::npos || end == std::string::npos || percent > end)
    return address;
  return address.substr(0, percent) + address.substr(end);
}

} // namespace shoal::runtime
