// apps/signals.cpp -- a thread in sigwait.
#include "apps/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

namespace shoal::apps {

struct signals::state {
  sigset_t set;
  std::mutex mutex;
  std::function<void()> first;
  bool told = false;
  std::atomic<bool> closing{false};
  std::thread thread;
};

signals::signals() : state_(std::make_unique<state>()) {
  sigemptyset(&state_->set);
  for (int s : {SIGINT, SIGTERM, SIGUSR2})
    sigaddset(&state_->set, s);
  pthread_sigmask(SIG_BLOCK, &state_->set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  state_->thread = std::thread([this] { wait(); });
}

signals::~signals() {
  state_->closing = true;
  pthread_kill(state_->thread.native_handle(), SIGUSR2);
  state_->thread.join();
}

void signals::wait() {
  for (;;) {
    int which = 0;
    if (sigwait(&state_->set, &which) != 0)
      continue;
    if (which == SIGUSR2) {
      if (state_->closing)
        return;
      continue;
    }
    if (++count_ > 1) {
      std::fputs("shoal: stopped\n", stderr);
      _exit(1);
    }
    std::function<void()> run;
    {
      std::lock_guard lock{state_->mutex};
      run = state_->first;
      state_->told = bool(run);
    }
    if (run)
      run();
  }
}

void signals::on_first(const std::function<void()>& run) {
  bool late = false;
  {
    std::lock_guard lock{state_->mutex};
    state_->first = run;
    late = count_ > 0 && !state_->told;
    state_->told = state_->told || late;
  }
  if (late)
    run();
}

} // namespace shoal::apps
