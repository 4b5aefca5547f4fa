// tests/runtime/host/child_process_test.cpp -- children end with their owner,
// and are waited for once.
#include "runtime/host/child_process.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

BOOST_AUTO_TEST_SUITE(child_processes)

using shoal::runtime::child_process;
using shoal::runtime::how_it_ended;

namespace {

int sleep_for_ever() {
  for (;;)
    ::pause();
}

/// Whether this process has a child with this number, dead or alive.
bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, id_t(pid), &info,
                  WEXITED | WSTOPPED | WNOHANG | WNOWAIT)
         == 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_exit_code_is_what_work_returns) {
  child_process child = child_process::fork([] { return 3; });
  BOOST_TEST(child.running());
  BOOST_TEST(how_it_ended(child.wait()) == "ended with code 3");
  BOOST_TEST(!child.running());
  BOOST_TEST(child.wait() == 0);
}

BOOST_AUTO_TEST_CASE(a_child_dies_with_its_owner_and_leaves_no_zombie) {
  std::optional<child_process> child(child_process::fork(sleep_for_ever));
  const pid_t pid = child->pid();
  BOOST_TEST(is_child(pid));
  child.reset();
  BOOST_TEST(!is_child(pid));
}

BOOST_AUTO_TEST_CASE(a_move_leaves_the_child_to_the_new_owner) {
  child_process a = child_process::fork(sleep_for_ever);
  const pid_t first = a.pid();
  child_process b = std::move(a);
  BOOST_TEST(!a.running());
  BOOST_TEST(is_child(first));
  b = child_process::fork(sleep_for_ever); // ends the first
  BOOST_TEST(!is_child(first));
  BOOST_TEST(is_child(b.pid()));
}

BOOST_AUTO_TEST_CASE(a_stopped_child_stands_until_it_is_resumed) {
  child_process child = child_process::fork(sleep_for_ever);
  child.pause();
  siginfo_t info{};
  BOOST_REQUIRE(
    ::waitid(P_PID, id_t(child.pid()), &info, WSTOPPED | WNOHANG | WNOWAIT)
    == 0);
  BOOST_TEST(info.si_pid == child.pid());
  child.resume();
  child.kill();
  BOOST_TEST(!child.running());
}

BOOST_AUTO_TEST_CASE(how_a_child_ended_is_known_after_a_pause_too) {
  child_process child = child_process::fork([] { return 5; });
  siginfo_t info{};
  BOOST_REQUIRE(::waitid(P_PID, id_t(child.pid()), &info, WEXITED | WNOWAIT)
                == 0);
  child.pause(); // it has ended already
  BOOST_TEST(how_it_ended(child.wait()) == "ended with code 5");
}

BOOST_AUTO_TEST_CASE(a_signal_is_named) {
  child_process child = child_process::fork([] {
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  BOOST_TEST(how_it_ended(child.wait()) == "ended by signal 9");
}

BOOST_AUTO_TEST_SUITE_END()
