// actors/serving/offered_room.hpp -- measures the room on this node's disk for files
// of served models, and offers it to plans.
//
// That is what is free, and what such files take already: so files of models that
// are served move in and out without a change of the room. All other files of the
// store count against it: texts, checkpoints, files of jobs that have ended until
// they are removed. Files that are being written do not: they come and go, and most
// of them are of served models.
//
// Threads: blocks on the disk: call it from disk work.
#pragma once

namespace shoal::core {
struct view; // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

/// @param refused the disk has just refused a file of a served model
void offer_room(runtime::context& node, const core::view& v, bool refused);

} // namespace shoal::actors
