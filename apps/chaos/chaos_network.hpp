// apps/chaos/chaos_network.hpp -- hosts of this machine whose ways can be cut.
//
// One network namespace for each host, on a bridge in a namespace of its own:
// nothing of the machine's network is touched, and all is gone with the last
// process inside. The calling thread moves into the bridge's namespace and
// stays there. Without root it first becomes root of a user namespace, where
// the kernel allows that. Needs the program `ip` (iproute2).
//
// Threads: one, and the process may have no other when it is made.
// Errors:  std::runtime_error with what is missing; why_not() asks first,
//          without changing this process.
#pragma once

#include "runtime/files/posix.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace shoal::apps {

class chaos_network {
public:
  /// Why there can be none here; empty: there can.
  static std::string why_not();

  explicit chaos_network(std::size_t hosts);

  /// Of a host, without port.
  static std::string address(std::size_t host);
  /// For setns() in a new process.
  int descriptor(std::size_t host) const { return hosts_[host].get(); }

  /// Nothing passes between two hosts any more, or again.
  void cut(std::size_t a, std::size_t b) { route(a, b, "add"); }
  void heal(std::size_t a, std::size_t b) { route(a, b, "del"); }

  static constexpr std::size_t hosts_max = 200; ///< addresses end in 1 to 254

private:
  void route(std::size_t a, std::size_t b, const char* what);

  runtime::posix::descriptor home_; ///< the bridge's namespace
  std::vector<runtime::posix::descriptor> hosts_;
};

} // namespace shoal::apps
