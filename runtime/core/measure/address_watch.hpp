// runtime/core/measure/address_watch.hpp -- when a node's addresses are worth a view.
//
// Others dial a member at the addresses that the view says, so these follow
// what the machine has; an interface that comes and goes must not make a view
// each time. An address is told when it has been there for appear_after, and
// taken back when it has been gone for vanish_after: one too many costs others
// a dial that fails. What was told last is never taken back while there is
// nothing else: it may return, and "nowhere" helps nobody.
//
//   absent --seen--> new --appear_after--> told --unseen--> gone
//      `<--unseen--'                        `<--seen--'  `--vanish_after--> absent
//
// Threads: none of its own. Cost: O(addresses) an observation.
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
  /// Addresses looked at; more are passed over.
  static constexpr std::size_t addresses_max = 256;

  /// @param told what the shoal knows, from the start
  explicit address_watch(std::vector<std::string> told);

  /// What the machine has now, best first.
  void observe(nanoseconds now, const std::vector<std::string>& there);

  /// What to tell the shoal, if that is new: those that are there in their
  /// order, then those that may return.
  std::optional<std::vector<std::string>> take(nanoseconds now);

  /// When take() may have something, if nothing else is observed; or never.
  std::optional<nanoseconds> due() const;

private:
  struct entry {
    bool told = false;
    bool there = false;
    nanoseconds since = 0; ///< that `there` is as it is
  };
  bool may_vanish() const;

  std::vector<std::string> order_; ///< of the last observation
  std::map<std::string, entry> entries_;
};

} // namespace shoal::core
