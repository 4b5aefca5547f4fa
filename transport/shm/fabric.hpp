// transport/shm/fabric.hpp -- the fabric between processes of one machine.
//
// Same boot, same user, same pid namespace; every other address ends in
// connect_failed(errc::unreachable). Mount and network namespaces do not
// matter. How peers are introduced: transport/introduced/fabric.hpp.
//
// Each process writes its own rings, which the other end maps read-only
// (layout.hpp). So bytes are copied twice while they are in the cache: by the
// sender's progress thread into its ring, and by the receiver's out of it.
// Bytes in an arena (arena.hpp) are copied once, in place, by the receiver's
// thread. In both cases a process may die or hang at any instruction, and the
// only effect on others is that it sends nothing more. A posted region is
// written only within a call on the progress thread, and a copy of a region
// that is no longer exposed is discarded (exposed.hpp): so cancelled memory is
// free at once. There is no checksum: everything else relies on this memory,
// too.
//
// A pidfd reports a dead peer as soon as the kernel has freed its memory, some
// 0.3 s per GB in small pages. A peer that hangs is not noticed here: the
// caller drops it.
//
// Why not the shared memory of UCX: all peers of a receiver write into one
// queue of 64 places. A peer that is killed while it copies into its place
// stops all others for ever (once in 120 kills in the middle of bulk), and
// requests to a dead peer whose queue is full never end (UCX 1.13.1).
//
// Threads:   one progress thread. It spins for config::spin after work, then
//            sleeps.
// Ownership: the handler must outlive the fabric.
// Errors:    the constructor throws std::system_error if there is no memfd,
//            pipe or /proc.
#pragma once

#include "transport/introduced/fabric.hpp"

#include <memory>

namespace shoal::transport::shm {

using introduced::config;
class arena; // arena.hpp

class fabric final : public introduced::fabric {
public:
  /// Peers read memory of `memory` in place; it may be null.
  fabric(const config& settings, fabric_handler& handler,
         std::shared_ptr<const arena> memory = nullptr);
};

} // namespace shoal::transport::shm
