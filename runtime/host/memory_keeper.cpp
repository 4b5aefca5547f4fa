// runtime/host/memory_keeper.cpp -- a clone with shared memory that sleeps.
#include "runtime/host/memory_keeper.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

// Sanitizers track threads and memory, and such a clone confuses them. GCC
// reports a sanitizer by a macro, clang by a feature.
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__)                      \
  || defined(__SANITIZE_THREAD__)
#define SHOAL_HAS_MEMORY_KEEPER 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)        \
  || __has_feature(memory_sanitizer)
#define SHOAL_HAS_MEMORY_KEEPER 0
#endif
#endif
#ifndef SHOAL_HAS_MEMORY_KEEPER
#define SHOAL_HAS_MEMORY_KEEPER 1
#endif

namespace shoal::runtime {

#if SHOAL_HAS_MEMORY_KEEPER

namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
/// Sent by the system when the process ends; the keeper blocks all signals.
constexpr int end_signal = SIGUSR1;
constexpr std::size_t kernel_sigset_bytes = 8;

struct birth {
  pid_t parent = 0;
  std::atomic<bool> ready{false};
};

/// A system call that does not touch errno, which belongs to the main thread.
template <class... Args>
long call(long number, Args... args) noexcept {
  const long all[5] = {(long)args..., 0};
  register long d asm("r10") = sizeof...(Args) > 3 ? all[3] : 0;
  long out;
  asm volatile("syscall"
               : "=a"(out)
               : "a"(number), "D"(all[0]),
                 "S"(sizeof...(Args) > 1 ? all[1] : 0),
                 "d"(sizeof...(Args) > 2 ? all[2] : 0), "r"(d)
               : "rcx", "r11", "memory");
  return out;
}

/// The life of the keeper: only system calls, since all other memory is shared
/// with a process that runs, or was killed at any instruction.
int keep(void* of) {
  auto* b = static_cast<birth*>(of);
  const pid_t parent = b->parent;
  // A keeper that holds descriptors, or that is not signalled, would do harm:
  // Linux before 5.9, or a container that forbids the call.
  if (call(SYS_close_range, 0U, ~0U, 0U) != 0
      || call(SYS_prctl, PR_SET_PDEATHSIG, end_signal) != 0)
    call(SYS_exit, 1);
  call(SYS_setsid);
  call(SYS_prctl, PR_SET_NAME, keeper_name);
  b->ready.store(true,
                 std::memory_order_release); // *b may be gone from here on
  const unsigned long wanted = 1UL << (end_signal - 1);
  while (call(SYS_getppid) == parent)
    call(SYS_rt_sigtimedwait, &wanted, nullptr, nullptr, kernel_sigset_bytes);
  const timespec lingers{0, std::chrono::nanoseconds(keeper_lingers).count()};
  call(SYS_nanosleep, &lingers, nullptr);
  call(SYS_exit, 0);
  return 0;
}

} // namespace

memory_keeper::memory_keeper() {
  void* stack = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED)
    return;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  birth b;
  b.parent = ::getpid();
  const pid_t pid =
    ::clone(&keep, static_cast<std::byte*>(stack) + stack_bytes, CLONE_VM, &b);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  bool lives = pid > 0;
  while (lives && !b.ready.load(std::memory_order_acquire)) {
    lives = ::waitpid(pid, nullptr, WNOHANG | __WALL) == 0;
    ::sched_yield();
  }
  if (lives) {
    pid_ = pid;
    stack_ = stack;
  } else {
    ::munmap(stack, stack_bytes);
  }
}

memory_keeper::~memory_keeper() {
  if (pid_ == 0)
    return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, __WALL);
  ::munmap(stack_, stack_bytes);
}

#else

memory_keeper::memory_keeper() = default;
memory_keeper::~memory_keeper() = default;

#endif

} // namespace shoal::runtime
