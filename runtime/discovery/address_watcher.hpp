// runtime/discovery/address_watcher.hpp -- reports changes of this machine's addresses.
//
// The kernel reports them (rtnetlink). Nothing is polled, and a machine whose
// network does not change costs nothing. core/measure/address_watch.hpp decides
// which changes are worth telling. A listener that is bound to one address has
// only that one: then there is nothing to watch.
//
// Threads: one of its own, which calls the handler.
// Ownership: the handler outlives it.
// Errors:  without rtnetlink it says so and goes on: addresses stay as told.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

struct address_watcher_config {
  std::string listener; ///< the address that it is bound to, "host:port"
  std::vector<std::string> told;
};

/// What a watcher tells its node. On its thread; must not wait.
class address_handler {
public:
  virtual ~address_handler() = default;
  /// All addresses under which the listener is now reached.
  virtual void addresses_changed(std::vector<std::string> addresses) = 0;
  virtual void say(const std::string& line) = 0;
};

class address_watcher {
public:
  address_watcher(address_watcher_config config, address_handler& node);
  ~address_watcher();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
