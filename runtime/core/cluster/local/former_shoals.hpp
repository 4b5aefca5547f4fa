// runtime/core/cluster/local/former_shoals.hpp -- last views of shoals that
// dissolved while this peer knew them, or that removed it.
//
// A member that was away when its shoal dissolved comes back and waits for a
// quorum that no longer exists. Any peer that has the last view can tell it. If
// only this peer has that view, it passes the view on, since it may itself die
// for good: before it leaves, and some time after it has joined another shoal.
#pragma once

#include "runtime/core/cluster/local/times.hpp"
#include "runtime/core/random.hpp"
#include "runtime/core/view.hpp"

#include <vector>

namespace shoal::core::cluster {

/// By then the members that come with us from a dissolved shoal have done so. A
/// member that is still missing may have to learn from others that its shoal
/// has ended.
inline constexpr nanoseconds former_patience = 10'000 * milliseconds;

class former_shoals {
public:
  explicit former_shoals(const peer_id& self) : self_(self) {}

  /// Takes the views as they were stored.
  void restore(std::vector<view> views) { views_ = std::move(views); }
  /// Newest last; the oldest of more than former_max are forgotten.
  void remember(const view& last);
  const std::vector<view>& views() const { return views_; }

  /// The last view of this shoal if it is newer than `number`, else null.
  const view* newer(const shoal_id& shoal, epoch number) const;
  /// The view that dissolved this shoal, or null.
  const view* dissolved(const shoal_id& shoal) const;

  /// Whether a member of some former shoal may come back and wait for its
  /// quorum, while we and too few others could tell it that the shoal has
  /// dissolved.
  /// @param ours our view; the former one itself if we have no other yet
  bool others_depend_on_us(const view& ours) const;
  /// Those last views. @param all including those of shoals that we were not in
  std::vector<const view*> known_to_us_alone(const view& ours, bool all) const;

  /// Shoals that ours replaced, or that a former shoal of ours replaced before
  /// it went over to ours. Not the shoal to which such a former shoal has
  /// returned.
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
