// apps/terminal/signals.cpp -- a thread that waits for signals by sigwait.
#include "apps/terminal/signals.hpp"

#include "apps/terminal/exit_codes.hpp"
#include "apps/terminal/signal_order.hpp"
#include "runtime/host/hangup.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace shoal::apps {

struct signals::state {
  /// Starts `first` if a signal has come and it is not running yet.
  void run_first(bool signalled);
  [[noreturn]] void stop();
  /// Ends the process if SIGHUP came and is to end it.
  void look_at_hangup();

  sigset_t set;
  std::mutex mutex;
  std::function<void()> first;
  std::string second = "stopped";
  std::optional<std::string> at_hangup; ///< none: SIGHUP is like the others
  bool hung_up = false;
  bool told = false;
  std::atomic<bool> closing{false};
  std::thread runner; ///< of `first`
  std::thread thread;
};

void signals::state::run_first(bool signalled) {
  std::function<void()> run;
  {
    std::lock_guard lock{mutex};
    if (!signalled || told || !first)
      return;
    told = true;
    run = first;
    try {
      runner = std::thread(run);
      return;
    } catch (const std::system_error&) {
    }
  }
  run(); // no thread is available: the second signal then waits for it
}

void signals::state::stop() {
  std::lock_guard lock{mutex};
  std::fprintf(stderr, "shoal: %s\n", second.c_str());
  _exit(exit_interrupted);
}

void signals::state::look_at_hangup() {
  std::lock_guard lock{mutex};
  if (!hung_up || !at_hangup)
    return;
  std::fprintf(stderr, "shoal: %s\n", at_hangup->c_str());
  _exit(exit_interrupted);
}

signals::signals() : state_(std::make_unique<state>()) {
  sigemptyset(&state_->set);
  for (int s : {SIGINT, SIGTERM, SIGUSR2})
    sigaddset(&state_->set, s);
  if (runtime::hangup_is_ignored())
    runtime::restore_hangup();
  else
    sigaddset(&state_->set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &state_->set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  state_->thread = std::thread([this] { wait(); });
}

signals::~signals() {
  state_->closing = true;
  pthread_kill(state_->thread.native_handle(), SIGUSR2);
  state_->thread.join();
  end_first();
}

void signals::end_first() {
  {
    std::lock_guard lock{state_->mutex};
    state_->told = true;
  }
  if (state_->runner.joinable())
    state_->runner.join();
}

void signals::wait() {
  signal_order order;
  for (;;) {
    int which = 0;
    if (sigwait(&state_->set, &which) != 0)
      continue;
    if (which == SIGUSR2) {
      if (state_->closing)
        return;
      continue;
    }
    if (which == SIGHUP) {
      {
        std::lock_guard lock{state_->mutex};
        state_->hung_up = true;
      }
      state_->look_at_hangup();
    }
    switch (order.take(signal_order::clock::now(), which == SIGHUP)) {
    case signal_order::meaning::first:
      seen_ = true;
      state_->run_first(true);
      break;
    case signal_order::meaning::echo:
      break;
    case signal_order::meaning::again:
      state_->stop();
    }
  }
}

void signals::on_first(const std::function<void()>& run) {
  {
    std::lock_guard lock{state_->mutex};
    state_->first = run;
  }
  state_->run_first(seen_);
}

void signals::on_second(std::string line) {
  std::lock_guard lock{state_->mutex};
  state_->second = std::move(line);
}

void signals::hangup_ends(std::string line) {
  {
    std::lock_guard lock(state_->mutex);
    state_->at_hangup = std::move(line);
  }
  state_->look_at_hangup();
}

} // namespace shoal::apps
