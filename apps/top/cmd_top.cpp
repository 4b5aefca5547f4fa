// apps/top/cmd_top.cpp -- top: a live view of the shoal in a terminal.
//
// The thread of main() draws and reads keys; it waits for a key, an answer of the
// node or a signal, and does nothing in between.
#include "apps/common/report.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/top/curses_screen.hpp"
#include "apps/top/node_source.hpp"
#include "apps/top/top_options.hpp"
#include "runtime/files/posix.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <system_error>

namespace shoal::apps {
namespace {

/// Other threads make the main one look again.
class waker {
public:
  waker() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!fd_)
      throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd_.get(), &one, sizeof one);
  }
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(fd_.get(), &count, sizeof count);
  }
  int fd() const { return fd_.get(); }

private:
  runtime::posix::descriptor fd_;
};

/// While it exists, threads that are started do not get the signal of a window
/// whose size has changed: it has to interrupt the main thread.
class without_resize_signal {
public:
  without_resize_signal() { block(SIG_BLOCK); }
  ~without_resize_signal() { block(SIG_UNBLOCK); }
  without_resize_signal(const without_resize_signal&) = delete;
  without_resize_signal& operator=(const without_resize_signal&) = delete;

private:
  static void block(int how) {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGWINCH);
    ::pthread_sigmask(how, &set, nullptr);
  }
};

/// Returns when there is a key, an answer or a signal. @returns false if the
/// terminal is gone
bool wait_for_news(waker& changed) {
  std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0},
                            pollfd{changed.fd(), POLLIN, 0}};
  if (::poll(fds.data(), fds.size(), -1) <= 0)
    return true; // a signal, such as that of a new size
  if (fds[1].revents != 0)
    changed.clear();
  return (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

int watch(curses_screen& screen, node_source& source, waker& changed,
          const signals& interrupts) {
  top_choice choice;
  int table_rows = 0;
  while (!choice.over && !interrupts.seen()) {
    const bool was_paused = choice.paused;
    for (auto p = screen.next_key(); p.any; p = screen.next_key())
      press(p.key, choice, table_rows);
    if (choice.paused != was_paused)
      source.set_paused(choice.paused);
    source.look([&](const node_source::answers& now) {
      const top_state state{now.status ? &*now.status : nullptr, &now.memory,
                            now.lost, unix_ms()};
      const top_page page =
        page_of(state, choice, screen.columns(), screen.rows());
      table_rows = page.table_rows;
      screen.show(page.lines);
    });
    if (!choice.over && !interrupts.seen() && !wait_for_news(changed))
      break;
  }
  return choice.over ? exit_done : exit_interrupted;
}

} // namespace

int run_top(const top_options& o) {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
    return fail("`shoal top` needs a terminal; elsewhere use `shoal status "
                "--json`, or `shoal status --watch`",
                exit_usage);
  waker changed;
  std::optional<without_resize_signal> starting(std::in_place);
  signals interrupts;
  interrupts.on_first([&changed] { changed.wake(); });
  node_source source(o.at,
                     std::chrono::milliseconds(std::lround(o.interval_s * 1e3)),
                     [&changed] { changed.wake(); });
  if (const std::string why = source.ask_first(); !why.empty())
    return fail(why);
  source.start();
  starting.reset();
  std::string why;
  auto screen = curses_screen::open(why);
  if (!screen)
    return fail(why + "; `shoal status --watch` needs less of it");
  const int code = watch(*screen, source, changed, interrupts);
  screen.reset(); // before threads are waited for
  interrupts.end_first();
  return code;
}

} // namespace shoal::apps
