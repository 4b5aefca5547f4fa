// runtime/host/thread_room.cpp -- threads that wait until all have started.
#include "runtime/host/thread_room.hpp"

#include <pthread.h>

#include <climits>
#include <csignal>
#include <mutex>
#include <vector>

namespace shoal::runtime {

std::size_t try_threads(std::size_t wanted) {
  std::mutex gate; // held until all have started
  std::unique_lock closed(gate);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, std::size_t(PTHREAD_STACK_MIN));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // no signal for these threads
  std::vector<pthread_t> started;
  started.reserve(wanted);
  pthread_t next{};
  while (started.size() < wanted
         && pthread_create(
              &next, &small,
              [](void* g) -> void* {
                const std::lock_guard open(*static_cast<std::mutex*>(g));
                return nullptr;
              },
              &gate)
              == 0)
    started.push_back(next);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  closed.unlock();
  for (const pthread_t t : started)
    pthread_join(t, nullptr);
  pthread_attr_destroy(&small);
  return started.size();
}

} // namespace shoal::runtime
