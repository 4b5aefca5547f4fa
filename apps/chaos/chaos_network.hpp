// apps/chaos/chaos_network.hpp -- simulated hosts whose network can be cut.
//
// One network namespace for each host, on a bridge in another namespace: the
// machine's own network is not changed, and everything disappears with the last
// process inside. The calling thread moves into the bridge's namespace and
// stays there. Without root it first becomes root of a user namespace, if the
// kernel allows that. Needs the program `ip` (iproute2).
//
// Threads: one, and the process may have no other when it is made.
// Errors:  std::runtime_error with what is missing; why_not() checks first,
//          without changing this process.
#pragma once

#include "runtime/files/posix.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace shoal::apps {

class chaos_network {
public:
  /// Why it is impossible here; empty: it is possible.
  static std::string why_not();

  explicit chaos_network(std::size_t hosts);

  /// The address of a host, without port.
  static std::string address(std::size_t host);
  /// For setns() in a new process.
  int descriptor(std::size_t host) const { return hosts_[host].get(); }

  /// Stops all traffic between two hosts, or allows it again.
  void cut(std::size_t a, std::size_t b) { route(a, b, "add"); }
  void heal(std::size_t a, std::size_t b) { route(a, b, "del"); }

  static constexpr std::size_t hosts_max = 200; ///< addresses end in 1 to 254

private:
  void route(std::size_t a, std::size_t b, const char* what);

  runtime::posix::descriptor home_; ///< the bridge's namespace
  std::vector<runtime::posix::descriptor> hosts_;
};

} // namespace shoal::apps
