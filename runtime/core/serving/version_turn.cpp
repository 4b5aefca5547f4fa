// runtime/core/serving/version_turn.cpp -- whose turn it is.
#include "runtime/core/serving/version_turn.hpp"

namespace shoal::core {

version_turn
turn_of(const version_state& newest, const std::optional<version_state>& former,
        std::optional<std::uint64_t> checkpoint, nanoseconds now) {
  using what = version_turn::what;
  // Streams without a pipeline that answers wait. They go on when it answers again;
  // if that does not come, they begin again elsewhere.
  const auto is_used = [](const version_state& v) {
    return v.streams && v.answers;
  };
  const auto idle_for = [&](nanoseconds time) {
    if (former->streams)
      return !former->answers && now - former->since >= version_turn::loads_max;
    return now - former->idle_since >= time;
  };
  const bool next_waits = checkpoint && *checkpoint > newest.step;
  if (next_waits && newest.ready
      && (!former || idle_for(version_turn::idle_min)))
    return {what::next, newest.step};
  const bool other = former && former->answers;
  if (next_waits && !newest.ready && !is_used(newest)
      && now - newest.since
           >= (other ? version_turn::loads_max : version_turn::alone_loads_max))
    return {what::next, other ? former->step : newest.step};
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
