// transport/ucx/devices.cpp -- networks, and the RDMA ports listed in /sys.

#include "transport/ucx/devices.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

namespace shoal::transport::ucx {

namespace fs = std::filesystem;

namespace {

/// The longest text of an IPv6 network.
constexpr std::size_t network_text_max = 49;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The entries of a folder of /sys; none if it cannot be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    out.push_back(at->path());
  std::sort(out.begin(), out.end());
  return out;
}

/// The network interfaces behind one port: RoCE names them per address, an
/// InfiniBand or iWARP device and soft RoCE per device.
std::set<std::string>
interfaces_of(const fs::path& device, const fs::path& port) {
  std::set<std::string> out;
  for (const auto& gid : entries(port / "gid_attrs" / "ndevs"))
    out.insert(first_line(gid));
  for (const auto& net : entries(device / "device" / "net"))
    out.insert(net.filename().string());
  out.insert(first_line(device / "parent"));
  out.erase("");
  return out;
}

/// Calls `take` with each address in `trusted` of an interface that is up.
template <class Take>
void for_each_address(std::span<const network> trusted, Take take) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    return;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && (i->ifa_flags & IFF_UP) != 0
        && contains_any(trusted, *i->ifa_addr))
      take(*i);
  freeifaddrs(list);
}

} // namespace

std::optional<network> parse_network(std::string_view text) {
  if (text.size() > network_text_max)
    return std::nullopt;
  const auto slash = text.find('/');
  const std::string host(text.substr(0, slash));
  network n;
  n.v6 = host.find(':') != host.npos;
  if (inet_pton(n.v6 ? AF_INET6 : AF_INET, host.c_str(), n.address.data()) != 1)
    return std::nullopt;
  const int all = n.v6 ? 128 : 32;
  n.bits = all;
  if (slash == text.npos)
    return n;
  const auto digits = text.substr(slash + 1);
  const auto [end, error] =
    std::from_chars(digits.data(), digits.data() + digits.size(), n.bits);
  if (error != std::errc{} || end != digits.data() + digits.size() || n.bits < 0
      || n.bits > all)
    return std::nullopt;
  return n;
}

bool contains(const network& n, const sockaddr& address) {
  std::array<std::uint8_t, 16> raw{};
  if (n.v6 && address.sa_family == AF_INET6)
    std::memcpy(raw.data(),
                &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 16);
  else if (!n.v6 && address.sa_family == AF_INET)
    std::memcpy(raw.data(),
                &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  else
    return false;
  for (int bit = 0; bit < n.bits; ++bit) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if ((raw[at] & mask) != (n.address[at] & mask))
      return false;
  }
  return true;
}

bool contains_any(std::span<const network> trusted, const sockaddr& address) {
  return std::any_of(trusted.begin(), trusted.end(),
                     [&](const network& n) { return contains(n, address); });
}

std::vector<std::string> tcp_devices(std::span<const network> trusted) {
  std::set<std::string> out;
  for_each_address(trusted, [&](const ifaddrs& i) { out.insert(i.ifa_name); });
  return {out.begin(), out.end()};
}

std::vector<sockaddr_storage> tcp_addresses(std::span<const network> trusted) {
  std::vector<sockaddr_storage> out;
  for_each_address(trusted, [&](const ifaddrs& i) {
    const bool v6 = i.ifa_addr->sa_family == AF_INET6;
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(i.ifa_addr);
    if (v6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
      return;
    sockaddr_storage at{};
    std::memcpy(&at, i.ifa_addr,
                v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    out.push_back(at);
  });
  std::stable_partition(out.begin(), out.end(),
                        [](const auto& a) { return a.ss_family == AF_INET; });
  return out;
}

std::vector<std::string> rdma_devices(std::span<const network> trusted) {
  const auto interfaces = tcp_devices(trusted);
  std::vector<std::string> out;
  for (const auto& device : entries("/sys/class/infiniband"))
    for (const auto& port : entries(device / "ports")) {
      if (first_line(port / "state").find("ACTIVE") == std::string::npos)
        continue;
      const auto behind = interfaces_of(device, port);
      if (std::any_of(interfaces.begin(), interfaces.end(),
                      [&](const auto& name) { return behind.contains(name); }))
        out.push_back(device.filename().string() + ":"
                      + port.filename().string());
    }
  return out;
}

} // namespace shoal::transport::ucx
