// runtime/host/memory_keeper.hpp -- makes peers notice a killed process at once.
//
// Linux closes the sockets of a killed process only after it has freed its
// memory, which takes 0.1 to 0.5 s per GB; during that time its peers believe
// that it lives (do_exit in kernel/exit.c: exit_mm before exit_files). The
// keeper is a second, idle process with the same memory and none of the
// descriptors: while it lives, the memory is in use, so that the sockets close
// at once. It ends keeper_lingers after this process, and the memory is freed
// then.
//
//   memory_keeper keeper; // first thing in the main thread
//
// Threads: the thread that makes it must live as long as the process.
// Cost:    one sleeping process; it is listed with the memory of this one.
// Errors:  if it cannot be made (a processor other than x86-64, sanitizers,
//          Linux before 5.9, no room for a process), everything works as
//          without it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace shoal::runtime {

/// By then the last thread of a killed process has released its descriptors.
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

  /// 0: there is no keeper.
  pid_t pid() const noexcept { return pid_; }

private:
  pid_t pid_ = 0;
  void* stack_ = nullptr;
};

} // namespace shoal::runtime
