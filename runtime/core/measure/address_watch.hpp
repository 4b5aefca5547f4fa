// runtime/core/measure/address_watch.hpp -- when new addresses of a node are
// worth a view.
//
// Others dial a member at the addresses in the view, so these follow the
// addresses of the machine; but an interface that comes and goes must not cause
// a view each time. An address is published ("told") when it has been present
// for appear_after, and withdrawn when it has been absent for vanish_after: an
// address too many costs others a dial that fails. The last published addresses
// are never withdrawn while there is no other: they may return, and "nowhere"
// helps nobody.
//
//   absent --seen--> new --appear_after--> told --unseen--> gone --> absent
//      `<--unseen--'                        `<--seen---------'  vanish_after
//
// Threads: none of its own. Cost: O(addresses) per observation.
#pragma once

#include "runtime/core/ids.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

class address_watch {
public:
  static constexpr nanoseconds appear_after = 1'000'000'000;
  static constexpr nanoseconds vanish_after = 10'000'000'000;
  /// Limit of addresses in an observation; more are ignored.
  static constexpr std::size_t addresses_max = 256;

  /// @param told the addresses that the shoal knows at the start
  explicit address_watch(std::vector<std::string> told);

  /// The machine's present addresses, best first.
  void observe(nanoseconds now, const std::vector<std::string>& there);

  /// The addresses to publish, if they have changed: the present ones in their
  /// order, then those that may return.
  std::optional<std::vector<std::string>> take(nanoseconds now);

  /// When take() may return something if nothing else is observed; or never.
  std::optional<nanoseconds> due() const;

private:
  struct entry {
    bool told = false;
    bool there = false;
    nanoseconds since = 0; ///< time since which `there` is unchanged
  };
  bool may_vanish() const;

  std::vector<std::string> order_; ///< of the last observation
  std::map<std::string, entry> entries_;
};

} // namespace shoal::core
