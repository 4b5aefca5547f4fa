// runtime/node/status/node_resources.hpp -- what the process of a node uses.
//
// Threads: any. Cost: two system calls and a file of /proc.
#pragma once

#include <cstdint>

namespace shoal::runtime {

class store;

struct node_resources {
  double cpu_seconds = 0; ///< processor time of all threads, since the start
  std::uint64_t resident_bytes = 0;
  std::uint64_t store_bytes = 0;      ///< in the store of files
  std::uint64_t store_room_bytes = 0; ///< that it may still take
};

/// Of this process, whose node has this store.
node_resources resources_now(const store& files);

} // namespace shoal::runtime
