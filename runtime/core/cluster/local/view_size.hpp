// runtime/core/cluster/local/view_size.hpp -- upper bounds of the encoded size of a view.
//
// A view is sent as a whole in one control message, so additions must leave it
// small enough. The core knows no wire format: these are upper bounds of the
// bytes that the parts take there (a test compares them with the encoding).
#pragma once

#include "runtime/core/view.hpp"

namespace shoal::core {

/// Longest encoded view: leaves room for the message around it.
inline constexpr std::size_t view_bytes_max = std::size_t{896} << 10;
/// Part of these that is reserved for changes of members and for cut pairs:
/// joins and submissions may not take it.
inline constexpr std::size_t view_bytes_spare = std::size_t{64} << 10;

std::size_t bytes_bound(const member& m);
std::size_t bytes_bound(const job_entry& j);
std::size_t bytes_bound(const assignment& a);
std::size_t bytes_bound(const view& v);

/// Whether a member or job of this size may still join `v`. Earlier assignments
/// in a view are left out where there is no room for them.
bool has_room(const view& v, std::size_t bytes);

} // namespace shoal::core
