// tests/runtime/host/memory_keeper_test.cpp -- the keeper of a process's
// memory holds nothing else, and ends with it.
#include "runtime/host/memory_keeper.hpp"

#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

BOOST_AUTO_TEST_SUITE(memory_keeper_suite)

namespace fs = std::filesystem;
using shoal::runtime::memory_keeper;

namespace {

fs::path process(pid_t pid) {
  return fs::path("/proc") / std::to_string(pid);
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string out;
  std::getline(in, out);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(it_holds_no_descriptors_and_ends_when_told) {
  pid_t pid = 0;
  {
    const memory_keeper keeper;
    pid = keeper.pid();
    if (pid == 0) {
      BOOST_TEST_MESSAGE("there is none on this system");
      return;
    }
    BOOST_TEST(fs::is_empty(process(pid) / "fd"));
    BOOST_TEST(first_line(process(pid) / "comm")
               == shoal::runtime::keeper_name);
    // It has the memory of this process, not a copy.
    BOOST_TEST(first_line(process(pid) / "statm")
               == first_line(process(::getpid()) / "statm"));
    BOOST_TEST(::getsid(pid) != ::getsid(0)); // Ctrl-C is not for it
  }
  BOOST_TEST(::kill(pid, 0) != 0);
  BOOST_TEST(errno == ESRCH);
}

BOOST_AUTO_TEST_CASE(signals_but_the_last_leave_it_alone) {
  const memory_keeper keeper;
  if (keeper.pid() == 0)
    return;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    ::kill(keeper.pid(), signal);
  int status = 0;
  BOOST_TEST(::waitpid(keeper.pid(), &status, WNOHANG | __WALL) == 0);
}

BOOST_AUTO_TEST_CASE(it_ends_after_a_process_that_is_killed) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1); // orphans become children of this one
  int told[2];
  BOOST_REQUIRE(::pipe(told) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const memory_keeper keeper;
    const pid_t pid = keeper.pid();
    if (::write(told[1], &pid, sizeof pid) != sizeof pid)
      ::_exit(1);
    for (;;)
      ::pause();
  }
  ::close(told[1]);
  pid_t keeper = 0;
  BOOST_REQUIRE(::read(told[0], &keeper, sizeof keeper) == sizeof keeper);
  ::kill(child, SIGKILL);
  char c = 0;
  BOOST_TEST(::read(told[0], &c, 1) == 0); // closed, and not held by the keeper
  BOOST_TEST(::waitpid(child, nullptr, 0) == child);
  if (keeper > 0) {
    int status = 0;
    BOOST_TEST(::waitpid(keeper, &status, __WALL) == keeper);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
  }
  ::close(told[0]);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

BOOST_AUTO_TEST_SUITE_END()
