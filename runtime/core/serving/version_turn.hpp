// runtime/core/serving/version_turn.hpp -- when a served model that follows a
// training job takes its next version, and lets the former one go.
//
// Requests keep the version that they began with, and at most two versions are
// served. So a checkpoint becomes the next version only while the version before
// the present one has no stream anywhere; until then it waits, and a newer one
// takes its place. A version that is not ready in time is replaced, too: its files
// may be gone; also if it is the only one, later, as that may just be large. What
// waits for it begins again with another one. A former version without streams goes,
// so that its memory is free until the next one comes.
//
// A client that takes its answer slowly would keep its version for as long as it
// likes. While a next version waits for it, it may do so for former_max.
//
// Threads: none. Pure: the caller has the clock.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <optional>

namespace shoal::core {

/// A version, as a gateway knows it.
struct version_state {
  std::uint64_t step = 0;
  bool ready = false;         ///< all of its pipelines
  bool answers = false;       ///< one of them is ready
  bool streams = false;       ///< there are some, of any gateway
  nanoseconds since = 0;      ///< it has been served; not ready: not been ready
  nanoseconds idle_since = 0; ///< it has had no streams
};

struct version_turn {
  /// It has to be without streams for this time: those of a pipeline that has
  /// another place now come again in less.
  static constexpr nanoseconds idle_min = 5'000'000'000;
  /// A version that is not ready after this time is replaced by a newer one.
  static constexpr nanoseconds loads_max = 60'000'000'000;
  /// The same where no former one answers meanwhile.
  static constexpr nanoseconds alone_loads_max = 300'000'000'000;
  /// A former version without streams goes after this time. Longer than idle_min:
  /// while the newest one has just been loaded, some gateways may still begin
  /// requests with the former.
  static constexpr nanoseconds release_after = 60'000'000'000;
  /// Slow clients may keep a former version from making room for this time.
  static constexpr nanoseconds former_max = 300'000'000'000;

  enum class what {
    nothing,
    next,    ///< the checkpoint becomes the newest version, beside `keeps`
    release, ///< the newest is the only one
  };
  what to_do = what::nothing;
  std::uint64_t keeps = 0; ///< step
};

/// @param former nothing: there is one version
/// @param checkpoint step of the newest one of the training job
[[nodiscard]] version_turn
turn_of(const version_state& newest, const std::optional<version_state>& former,
        std::optional<std::uint64_t> checkpoint, nanoseconds now);

/// Whether a stream of a former version has to end, or to begin anew with another
/// one. @param former_since when that version was known to be former, and the newest
/// to be ready
/// @param slow its client has been slower than its tokens
[[nodiscard]] bool must_leave(bool slow, bool next_waits,
                              nanoseconds former_since, nanoseconds now);

} // namespace shoal::core
