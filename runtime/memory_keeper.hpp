// runtime/memory_keeper.hpp -- lets a killed process be missed at once.
//
// Linux closes the sockets of a process that is killed only after it has taken
// its memory down, 0.1 to 0.5 s for each GB: so long its peers believe that it
// lives (do_exit in kernel/exit.c: exit_mm before exit_files). The keeper is a
// second, idle process with the same memory, and with none of the descriptors:
// while it lives the memory has a user, so that the sockets close at once. It
// ends keeper_lingers after this process, and the memory with it.
//
//   memory_keeper keeper; // first thing in the main thread
//
// Threads: the one that makes it has to live as long as the process.
// Cost:    one process that sleeps; it is listed with the memory of this one.
// Errors:  where it cannot be made (another processor than x86-64, sanitizers,
//          Linux before 5.9, no room for a process) all is as without it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace shoal::runtime {

/// By then the last thread of a killed process has let go of its descriptors.
inline constexpr std::chrono::milliseconds keeper_lingers{200};

/// Its name in lists of processes.
inline constexpr const char* keeper_name = "shoal-memory";

class memory_keeper {
public:
  memory_keeper();
  /// Ends it.
  ~memory_keeper();
  memory_keeper(const memory_keeper&) = delete;
  memory_keeper& operator=(const memory_keeper&) = delete;

  /// 0: there is none.
  pid_t pid() const noexcept { return pid_; }

private:
  pid_t pid_ = 0;
  void* stack_ = nullptr;
};

} // namespace shoal::runtime
