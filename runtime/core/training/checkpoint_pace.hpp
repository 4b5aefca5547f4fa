// runtime/core/training/checkpoint_pace.hpp -- when the next checkpoint begins,
// so that no more than so many steps are lost when all peers die at once.
//
// A checkpoint holds the state of the step that it was begun at, and is of use
// only when it has been published, `lag` steps later. Until the next one is
// published, what the last one lacks is the steps between the two, and the lag
// of the next. For that to be `every` at most, each begins every - lag steps
// after the one before:
//
//     begun        published     begun         published
//       b ----------- b + lag ---- c ------------ c + lag <= b + every
//
// The lag is the largest of the newest lag_window that the checkpointer has
// seen, and one more, since it is never quite the same: one that is longer than
// all of these by two costs the difference. Until it has seen one, half of
// `every`; three quarters if the state was restored from a disk, since then all
// caches are cold. While the one before is under way none begins: steps never wait for
// a disk, and a disk that is late is not given more to do. (One that is still
// not published `every` steps later holds up no other.) Where that breaks the
// bound the disk cannot keep up, which is said once (slow).
//
// C-3: all peers begin the same checkpoints. What decides is agreed: the votes
//      of a committed step (heard) and the seals (resume).
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

  /// @param every 0: none but the last
  explicit checkpoint_pace(std::uint64_t every) : every_(every) {}

  /// Another assignment: what was under way comes to nothing. `newest` is
  /// published, or the run's origin; `lag` is agreed too, 0 if not known, and so
  /// is whether the state was `restored` from it.
  void resume(std::uint64_t newest, std::uint64_t lag, bool restored = false);
  /// What the votes of a committed step say: of the checkpointer, its lag();
  /// of anybody, whether he still writes, or it is under_way().
  void heard(std::uint64_t lag, bool writing);
  /// One of this step begins.
  void begun(std::uint64_t step) { begun_ = step; }
  /// At the checkpointer: it is known what became of one.
  void ended(std::uint64_t step) { ended_ = std::max(ended_, step + 1); }
  /// Likewise: one has been published, `now` being the step in
  /// progress. @pre begun < now
  void published(std::uint64_t begun, std::uint64_t now);

  [[nodiscard]] bool due(std::uint64_t step) const noexcept;
  /// Steps from one to the next, if nobody is late. @pre every > 0
  [[nodiscard]] std::uint64_t distance() const noexcept;
  /// Whether the bound does not hold since the disk cannot keep up.
  [[nodiscard]] bool slow(std::uint64_t step) const noexcept;
  /// For the own vote: of the checkpoints published here; 0: none was.
  [[nodiscard]] std::uint64_t lag() const noexcept;
  /// For the own vote, of the checkpointer: one is not published yet.
  [[nodiscard]] bool under_way(std::uint64_t step) const noexcept {
    return ended_ <= begun_ && step < begun_ + every_;
  }
  /// The agreed one, 0: not known. For seals.
  [[nodiscard]] std::uint64_t agreed_lag() const noexcept { return lag_; }

private:
  std::uint64_t every_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0; ///< step + 1
  std::uint64_t lag_ = 0;   ///< agreed
  bool writing_ = false;    ///< likewise
  bool restored_ = false;   ///< likewise
  std::deque<std::uint64_t> seen_;
};

} // namespace shoal::core
