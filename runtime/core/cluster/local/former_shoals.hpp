// runtime/core/cluster/local/former_shoals.hpp -- last views of shoals that
// have dissolved around us, or have sent us away.
//
// A member that was away when its shoal dissolved comes back and waits for a
// quorum that does not exist any more. Any peer that has the last view can tell
// it. If nobody but us has it, others must get it too: before we leave, and
// some time after we have joined another shoal, since we may also die for good.
#pragma once

#include "runtime/core/cluster/local/times.hpp"
#include "runtime/core/random.hpp"
#include "runtime/core/view.hpp"

#include <vector>

namespace shoal::core::cluster {

/// Members that come with us from a shoal that has dissolved have done so by
/// then: a member that is still missing may have to hear of its end from others.
inline constexpr nanoseconds former_patience = 10'000 * milliseconds;

class former_shoals {
public:
  explicit former_shoals(const peer_id& self) : self_(self) {}

  /// As they were stored.
  void restore(std::vector<view> views) { views_ = std::move(views); }
  /// Newest last; the oldest of more than former_max are forgotten.
  void remember(const view& last);
  const std::vector<view>& views() const { return views_; }

  /// The last view of this shoal if it is newer than `number`, else null.
  const view* newer(const shoal_id& shoal, epoch number) const;
  /// The view that dissolved this shoal, or null.
  const view* dissolved(const shoal_id& shoal) const;

  /// Whether a member of some shoal may come back and wait for it, and too few
  /// members of our shoal but us could tell that it has dissolved.
  /// @param ours our view; the former one itself if we have no other yet
  bool others_depend_on_us(const view& ours) const;
  /// Such views. @param all else only of shoals that we were in
  std::vector<const view*> known_to_us_alone(const view& ours, bool all) const;

  /// Shoals in whose place our shoal was made, or one of ours that has gone
  /// over to it; not the shoal to which such a one has come back.
  std::vector<superseded_shoal> superseded(const view& ours) const;

  /// We are in another shoal, or have just started.
  void joined_another(nanoseconds now);
  /// When to tell the others what they may not know; time_max: never.
  nanoseconds due() const { return due_; }
  void told() { due_ = time_max; }

private:
  bool only_we_know(const view& former, const view& ours) const;

  peer_id self_;
  std::vector<view> views_;
  nanoseconds due_ = time_max;
};

} // namespace shoal::core::cluster
