// actors/serving/offered_room.hpp -- measures the room on this node's disk for files
// of served models, and offers it to plans.
//
// That is what is free, and what such files take already: so files of models that
// are served move in and out without a change of the room. All other files of the
// store count against it: texts, checkpoints, files of jobs that have ended until
// they are removed, and those of a model that has ended and from which a job trains.
// Files that are being written do not: they come and go, and most of them are of served
// models.
//
// A checkpoint that is served while its job still trains counts as room, though the job
// keeps it and nothing else can have its place: else the model would wait for room that
// it does not need, since its files are here. The price: where disks are full, another
// model may be given that room; the disk then refuses its files, which stay where they
// were uploaded.
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
