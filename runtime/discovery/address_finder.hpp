// runtime/discovery/address_finder.hpp -- finds peers by DNS, hosts file or Slurm.
//
// Names are resolved to all of their addresses, and again after a while, so
// that a name stands for its current hosts. A hosts file is read again in each
// round. The result is only an address to dial: a peer that answers must prove
// itself, and an address without an answer changes nothing.
//
// Threads: one of its own, since resolving blocks; it calls the handler.
// Ownership: the handler outlives it.
// Cost:    a round takes as long as the resolver; every 2 s while alone,
//          otherwise every 30 s.
#pragma once

#include "runtime/discovery/host_list.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Addresses of one round; more are left out.
inline constexpr std::size_t found_addresses_max = 256;

struct finder_config {
  std::vector<std::string> names; ///< "host:port"
  std::filesystem::path hosts_file;
};

/// What a finder tells its node. On its thread; must not wait.
class finder_handler {
public:
  virtual ~finder_handler() = default;
  /// An address of a name or of the file; may come again.
  virtual void listed(const std::string& address) = 0;
  virtual void say(const std::string& line) = 0;
};

class address_finder {
public:
  address_finder(finder_config config, finder_handler& node);
  ~address_finder(); ///< Waits for a resolver that is running.

  /// Whether any other peer is known: rounds are then rare.
  void set_alone(bool alone);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

/// All addresses of "host:port" as text that can be dialled.
std::vector<std::string> resolve_all(const std::string& address);

} // namespace shoal::runtime
