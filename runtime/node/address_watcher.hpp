// runtime/node/address_watcher.hpp -- hears when this machine's addresses
// change.
//
// The kernel says so (rtnetlink); nothing is polled, and a machine whose
// network stays as it is costs nothing. core/address_watch.hpp decides what is
// worth telling. A listener that is bound to one address has that one alone:
// then there is nothing to watch.
//
// Threads: one own; changed() is called on it and must not wait.
// Errors:  without rtnetlink it says so and goes on: addresses stay as told.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

struct address_watcher_config {
  std::string listener; ///< what it is bound to, "host:port"
  std::vector<std::string> told;
  std::function<void(std::vector<std::string> addresses)> changed;
  std::function<void(const std::string& line)> say;
};

class address_watcher {
public:
  explicit address_watcher(address_watcher_config config);
  ~address_watcher();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
