// transport/shm/fabric.hpp -- the fabric between processes of one machine.
//
// Same boot, same user, same pid namespace; whatever else is asked for ends in
// connect_failed(errc::unreachable). Mount and network namespaces do not
// matter. How peers are told of each other: transport/paired/fabric.hpp.
//
// Each process writes rings of its own, which the other end maps read-only
// (layout.hpp). So bytes are copied twice, by the sender's progress thread
// into its ring and by the receiver's out of it, while they are in the cache;
// what lies in an arena (arena.hpp) is copied once, by the receiver's, from
// where it is. Either way a process may die or hang at any instruction without
// an effect on anybody but that nothing more comes from it. A region is never
// written but within a call on the progress thread, and what is read of one
// that is not exposed any more counts as nothing (exposed.hpp): what is
// cancelled is free at once. There is no checksum: everything else relies on
// this memory, too.
//
// A dead peer is noticed by its pidfd as soon as the kernel has taken its memory
// down, some 0.3 s for each GB in small pages. One that hangs is
// not noticed here: the caller drops it.
//
// Why not UCX, which has shared memory: all peers of its receiver write into
// one queue of 64 places, so one that is killed while it copies into its place
// stops all others for ever (once in 120 kills in the middle of bulk), and
// requests to a dead peer whose queue is full never end (UCX 1.13.1).
//
// Threads:   one progress thread. It spins config::spin after work, then
//            sleeps.
// Ownership: the handler outlives the fabric.
// Errors:    the constructor throws std::system_error if there is no memfd,
//            pipe or /proc.
#pragma once

#include "transport/paired/fabric.hpp"

#include <memory>

namespace shoal::transport::shm {

using paired::config;
class arena; // arena.hpp

class fabric final : public paired::fabric {
public:
  /// `memory`: what lies in it is read by the peers where it is; may be null.
  fabric(const config& settings, fabric_handler& handler,
         std::shared_ptr<const arena> memory = nullptr);
};

} // namespace shoal::transport::shm
