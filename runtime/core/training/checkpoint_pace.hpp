// runtime/core/training/checkpoint_pace.hpp -- when the next checkpoint begins,
// to bound the steps that are lost when all peers die at once.
//
// A checkpoint holds the state of the step at which it begins, but is of use
// only once it is published, `lag` steps later. Until the next one is
// published, the last one lacks the steps between the two begins and the lag of
// the next. To keep that to `every` at most, each checkpoint begins every - lag
// steps after the one before:
//
//     begun        published     begun         published
//       b ----------- b + lag ---- c ------------ c + lag <= b + every
//
// The lag used is one more than the largest of the newest lag_window lags that
// the publisher has seen, since lags vary: a lag two steps longer than all of
// these costs the difference. Before the first, it is half of `every`, or three
// quarters if the state was restored from a disk, since then all caches are
// cold. No checkpoint begins while the one before is in progress: steps never
// wait for a disk, and a slow disk gets no additional work. (A checkpoint that
// is still not published `every` steps later no longer delays the next.)
//
// So where each takes more than half of `every`, one follows the other without
// pause, and the bound is exceeded whenever they begin. That the disk cannot
// keep up is reported once (slow). Where only some take that long, many begins
// for their sake would push older checkpoints out of the stores. So once a lag
// is known, the distance is at least half of `every`, and a lag above half
// counts only while it is among the newest long_lag_window.
//
// C-3: all peers begin the same checkpoints. The decision uses only agreed
//      data: the votes of a committed step (heard) and the seals (resume).
//
// Threads: none. Units: steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace shoal::core {

class checkpoint_pace {
public:
  static constexpr std::size_t lag_window = 32;
  /// Slow moments of a disk come together. Higher: more of them are expected, and
  /// one of them costs more checkpoints: half as many as this.
  static constexpr std::size_t long_lag_window = 4;

  /// @param every 0: none but the last
  explicit checkpoint_pace(std::uint64_t every) : every_(every) {}

  /// Another assignment: a checkpoint in progress is dropped. `newest` is
  /// published, or the run's origin. `lag` is agreed, too (0: unknown), and so
  /// is whether the state was `restored` from the checkpoint.
  void resume(std::uint64_t newest, std::uint64_t lag, bool restored = false);
  /// Takes the votes of a committed step: the lag() of the peer that would publish
  /// the next, and whether any peer still writes or a publisher's is under_way().
  void heard(std::uint64_t lag, bool writing);
  /// The checkpoint of this step begins.
  void begun(std::uint64_t step) { begun_ = step; }
  /// At the publisher: the result of this step's checkpoint is known.
  void ended(std::uint64_t step) { ended_ = std::max(ended_, step + 1); }
  /// At the publisher: a checkpoint was published while step `now` was in
  /// progress.
  /// @pre begun < now
  void published(std::uint64_t begun, std::uint64_t now);

  [[nodiscard]] bool due(std::uint64_t step) const noexcept;
  /// Steps from one checkpoint to the next, if none is late. @pre every > 0
  [[nodiscard]] std::uint64_t distance() const noexcept;
  /// Whether the bound is exceeded because the disk cannot keep up.
  [[nodiscard]] bool slow(std::uint64_t step) const noexcept;
  /// For our vote: the lag to expect of a checkpoint published here; 0: unknown.
  [[nodiscard]] std::uint64_t lag() const noexcept;
  /// For the publisher's vote: a checkpoint is not published yet.
  [[nodiscard]] bool under_way(std::uint64_t step) const noexcept {
    return ended_ <= begun_ && step < begun_ + every_;
  }
  /// The agreed lag, for seals; 0: unknown.
  [[nodiscard]] std::uint64_t agreed_lag() const noexcept { return lag_; }

private:
  std::uint64_t every_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;        ///< step + 1
  std::uint64_t lag_ = 0;          ///< agreed
  bool writing_ = false;           ///< agreed
  bool restored_ = false;          ///< agreed
  std::deque<std::uint64_t> seen_; ///< lags of those published here
};

} // namespace shoal::core
