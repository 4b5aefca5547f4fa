// runtime/discovery/own_addresses.cpp -- lists this machine's reachable addresses.
#include "runtime/discovery/own_addresses.hpp"

#include "runtime/discovery/multicast.hpp" // list_interfaces
#include "runtime/host/ip_address.hpp"

#include <charconv>
#include <cstdint>

namespace shoal::runtime {

/// Addresses of each family. Every one is dialled; while all of them fail
/// quickly, a dead member is noticed sooner than by its silence.
static constexpr std::size_t family_addresses_max = own_addresses_max / 2;

std::vector<std::string> reachable_addresses(const std::string& bound) {
  const auto host = parse_ip(host_of(bound));
  if (!host || !is_any(host->address))
    return {without_interface(bound)};
  std::uint16_t port = 0;
  const auto* digits = bound.data() + bound.rfind(':') + 1;
  std::from_chars(digits, bound.data() + bound.size(), port);
  const bool six = !is_v4(host->address);
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  std::vector<std::string> local;    // of IPv6, within one network
  std::vector<std::string> loopback; // if there are no others
  for (const network_interface& i : list_interfaces())
    for (const ip_address& a : i.addresses) {
      auto& to = i.loopback || is_loopback(a) ? loopback
                 : is_v4(a)                   ? v4
                 : is_link_local(a)           ? local
                                              : v6;
      if ((six || is_v4(a)) && to.size() < family_addresses_max)
        to.push_back(to_text({a, 0}, port));
    }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return !v4.empty() ? v4 : !local.empty() ? local : loopback;
}

} // namespace shoal::runtime
