// runtime/address_finder.hpp -- peers by DNS name, hosts file or Slurm.
//
// Names are resolved to all of their addresses and again after a while, so
// that a name stands for whoever is there now; a hosts file is read again
// with each round. What is found is only an address to dial: who answers must
// prove itself, and an address that nobody answers at changes nothing.
//
// Threads: one own, since resolving blocks; found() and say() are called on
//          it and must not wait.
// Cost:    a round takes as long as the resolver; every 2 s while alone, every
//          30 s else.
#pragma once

#include "runtime/host_list.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Addresses of one round; more are left out.
inline constexpr std::size_t found_addresses_max = 256;

struct finder_config {
  std::vector<std::string> names; ///< "host:port"
  std::filesystem::path hosts_file;
  std::function<void(const std::string& address)> found;
  std::function<void(const std::string& line)> say;
};

class address_finder {
public:
  explicit address_finder(finder_config config);
  ~address_finder(); ///< Waits for a resolver that is at work.

  /// Whether any other peer is known: rounds are then rare.
  void set_alone(bool alone);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

/// All addresses of "host:port" as text that can be dialled.
std::vector<std::string> resolve_all(const std::string& address);

} // namespace shoal::runtime
