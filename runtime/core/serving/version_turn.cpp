// runtime/core/serving/version_turn.cpp -- whose turn it is.
#include "runtime/core/serving/version_turn.hpp"

namespace shoal::core {

version_turn
turn_of(const version_state& newest, const std::optional<version_state>& former,
        std::optional<std::uint64_t> checkpoint, nanoseconds now) {
  using what = version_turn::what;
  const auto idle_for = [&](nanoseconds time) {
    return !former->streams && now - former->idle_since >= time;
  };
  const bool next_waits = checkpoint && *checkpoint > newest.step;
  if (next_waits && newest.ready
      && (!former || idle_for(version_turn::idle_min)))
    return {what::next, newest.step};
  // Streams without a pipeline that answers wait, too.
  const bool waits = !newest.ready && (!newest.streams || !newest.answers);
  if (next_waits && waits
      && now - newest.since >= (former ? version_turn::loads_max
                                       : version_turn::alone_loads_max))
    return {what::next, former ? former->step : newest.step};
  if (!next_waits && newest.ready && former
      && idle_for(version_turn::release_after))
    return {what::release, newest.step};
  return {};
}

bool must_leave(bool slow, bool next_waits, nanoseconds former_since,
                nanoseconds now) {
  return slow && next_waits && now - former_since >= version_turn::former_max;
}

} // namespace shoal::core
