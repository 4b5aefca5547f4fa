// runtime/core/view_size.hpp -- how large a view can be when it is written.
//
// A view travels whole in one control message, so what joins it must leave it
// small enough. The core knows no wire format: these are upper bounds of the
// bytes that the parts take there (a test compares them with it).
#pragma once

#include "runtime/core/view.hpp"

namespace shoal::core {

/// Longest encoded view: leaves room for the message around it.
inline constexpr std::size_t view_bytes_max = std::size_t{896} << 10;
/// Of these kept for what changes in members and for cut pairs: joins and
/// submissions may not take it.
inline constexpr std::size_t view_bytes_spare = std::size_t{64} << 10;

std::size_t bytes_bound(const member& m);
std::size_t bytes_bound(const job_entry& j);
std::size_t bytes_bound(const assignment& a);
std::size_t bytes_bound(const view& v);

/// Whether a member or job of so many bytes may still join `v`. What the view
/// says of earlier assignments is left out where it has no room.
bool has_room(const view& v, std::size_t bytes);

} // namespace shoal::core
