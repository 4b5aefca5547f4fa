// runtime/node/requests/request_host.hpp -- what a request needs of its node.
//
// Threads: any. No member waits.
#pragma once

#include "runtime/control/control.hpp" // outcome
#include "runtime/core/cluster/events.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace shoal::core {
struct view; // runtime/core/view.hpp
}

namespace shoal::runtime {

class request_host {
public:
  virtual ~request_host() = default;
  /// The view in effect; null before the first.
  virtual std::shared_ptr<const core::view> view() const = 0;
  /// To the cluster core.
  virtual void tell(core::cluster::event e) = 0;
  /// To the client whose request has this token (control::answered()).
  virtual void answer(std::uint64_t token, outcome o) = 0;
  /// Writes a line to the log.
  virtual void say(const std::string& line) = 0;
};

} // namespace shoal::runtime
