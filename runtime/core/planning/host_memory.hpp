// runtime/core/planning/host_memory.hpp -- what jobs may use on each member.
//
// Members on one host use the same memory, so it is promised once, whatever
// number of them there is:
//
//   chosen memory   what its user gave the member; where members of a host were
//                   given more together than the host has, each has less, in
//                   proportion
//   shares          members whose memory nobody chose have together what one of
//                   them would have alone, and no more than the others leave;
//                   each has an equal part
//
// What a member needs for its place in the jobs that run is its own before the
// rest is divided: a peer that joins a host takes no memory from under a job.
//
// Limit: containers of one host with a limit each count as one pool, as large
//        as the largest limit, since a view does not tell them apart.
//
// Units: bytes; integers only. Cost: linear in members and stages.
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::core {

using memory_by_peer = std::map<peer_id, std::uint64_t>;

/// What jobs may use on each member that gets work, all jobs together.
/// @param placed where jobs of `v` run already
[[nodiscard]] memory_by_peer
memory_for_jobs(const view& v, const std::vector<assignment>& placed);

} // namespace shoal::core
