// runtime/core/cluster/wishes.hpp -- a peer's wishes for the next view, and the
// view that grants them.
//
// A wish stays until a decided view has granted it or made it void. So it does
// not matter which peer's proposal wins: the remaining wishes are proposed on
// top of the winner.
#pragma once

#include "runtime/core/cluster/messages.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::core::cluster {

struct wish {
  change what;
  bool own = false;
  nanoseconds since = 0;
  nanoseconds until = 0; ///< when a forwarded one is forgotten
};

struct join_wish {
  join_request request;
  nanoseconds since = 0;
  nanoseconds until = 0;
};

/// Where a shoal goes when it dissolves.
struct merge_wish {
  shoal_id into{};
  std::vector<std::string> addresses;
  nanoseconds since = 0;
  bool has_our_jobs = false; ///< runs, or lists as ended, all jobs that run
                             ///< here
};

struct wishes {
  std::vector<wish> changes;
  std::map<peer_id, join_wish> joins;
  std::map<member_id, nanoseconds> seats;  ///< joining members heard, and when
  std::map<member_id, nanoseconds> losses; ///< confirmed as dead, and when
  std::optional<merge_wish> merge;
};

/// Whether no peer needs to decide anything for it any more: granted or void.
bool settled(const change& c, const view& v);

/// Whether the change says that an island of a job has ended in one of its
/// places.
bool speaks_of_island(const change& c);
/// Whether it does, and the island now has another place. @param planned the
/// assignments of the view
bool outdated(const change& c, const std::vector<assignment>& planned);

/// Updates the list of former members: those of `base` that `v` lacks, unless
/// they were removed on purpose.
void remember_lapsed(const view& base, view& v);

/// The successor of `base` that grants all wishes that can be granted;
/// nothing if that changes nothing.
std::optional<view>
next_view(const view& base, const wishes& w,
          std::vector<assignment> (*plan_jobs)(const view&));

} // namespace shoal::core::cluster
