// actors/serving/serve_drain.hpp -- when a served model that is to end may end.
//
// Gateways begin no more requests for it; those that have begun are answered first.
// Each island ends when its pipeline has no streams, and the job with the last of
// them; after longest, the job ends whatever is under way. Streams of a place before
// come to a new one once gateways know that it is ready: so a pipeline counts as
// empty only after it has been ready for a while.
//
// Threads: its owner's. Errors: none.
#pragma once

#include "runtime/core/ids.hpp"

#include <optional>

namespace shoal::actors {

class serve_drain {
public:
  static constexpr core::nanoseconds longest = 30'000'000'000;
  static constexpr core::nanoseconds streams_come_within = 2'000'000'000;
  /// A proposal may be lost.
  static constexpr core::nanoseconds propose_again_after = 1'000'000'000;

  /// What is here of the island's pipeline.
  struct sight {
    bool placed = false;     ///< the island has stages, here or elsewhere
    core::epoch since = 0;   ///< of its place
    bool first_here = false; ///< the first stage, which speaks for it
    bool ready = false;      ///< all stages have their weights
    bool streams = false;
    bool alone = false; ///< the shoal has no other peer, which could compute
  };
  enum class end { none, island, job };

  /// From now on it is to end. @param view number of the newest one
  void begin(core::nanoseconds now, core::epoch view) {
    if (!since_) {
      since_ = now;
      view_ = view;
    }
  }

  /// The model is in this shoal's view from now on. One that another shoal was
  /// asked to end goes on: only that shoal was asked.
  void serve_in(const core::shoal_id& shoal) {
    if (shoal_ && *shoal_ != shoal)
      *this = {};
    shoal_ = shoal;
  }

  [[nodiscard]] bool begun() const noexcept { return since_.has_value(); }

  /// @returns what is to be proposed now
  end look(const sight& is, core::nanoseconds now) {
    if (is.since != place_) {
      place_ = is.since;
      ready_since_.reset();
    }
    if (!is.ready)
      ready_since_.reset();
    else if (!ready_since_)
      ready_since_ = now;
    if (!since_ || now < again_)
      return end::none;
    const bool late = now - *since_ >= longest;
    if (!late && !is_empty(is, now))
      return end::none;
    again_ = now + propose_again_after;
    return late ? end::job : end::island;
  }

private:
  bool is_empty(const sight& is, core::nanoseconds now) const {
    if (!is.placed) // one that has waited for room has no streams
      return is.since <= view_ || is.alone;
    return is.first_here && ready_since_
           && now - *ready_since_ >= streams_come_within && !is.streams;
  }

  std::optional<core::shoal_id> shoal_;
  std::optional<core::nanoseconds> since_, ready_since_;
  core::epoch view_ = 0, place_ = 0;
  core::nanoseconds again_ = 0;
};

} // namespace shoal::actors
