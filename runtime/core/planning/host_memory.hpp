// runtime/core/planning/host_memory.hpp -- what jobs may use on each member.
//
// Members on one host use the same memory, so it is promised only once, however
// many members there are:
//
//   chosen memory   the amount that its user gave the member; if members of one
//                   host were given more together than the host has, each gets
//                   less, in proportion
//   shares          members without a chosen amount together have what one of
//                   them would have alone, at most what the others leave; each
//                   has an equal part
// What a member needs for its place in the running jobs is reserved for it
// before the rest is divided: a peer that joins a host takes no memory away
// from a running job.
//
// Limit: containers of one host with a limit each count as one pool, as large
//        as the largest limit, since a view does not tell them apart.
//
// Units: bytes; integers only. Cost: linear in members and stages.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::core {

struct view; // runtime/core/view.hpp

using memory_by_peer = std::map<peer_id, std::uint64_t>;

/// Memory that jobs may use on each member that gets work, for all jobs
/// together.
/// @param placed where jobs of `v` already run
[[nodiscard]] memory_by_peer
memory_for_jobs(const view& v, const std::vector<assignment>& placed);

} // namespace shoal::core
