// tests/support/scratch_test.cpp -- folders of simulations that were
// killed are removed, those in use are not.
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

BOOST_AUTO_TEST_SUITE(scratch)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(files_of_a_killed_process_are_removed_by_the_next) {
  const shoal::test::scratch home("shoal-scratch-test");
  int told[2];
  BOOST_REQUIRE(::pipe(told) == 0);
  // Two that hold folders; one is killed.
  pid_t children[2];
  std::string names[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = ::fork();
    if (children[i] == 0) {
      const shoal::test::scratch mine("of-one", home.path());
      std::ofstream(mine.path() / "blob") << "bytes";
      const std::string name = mine.path().string() + '\n';
      if (::write(told[1], name.data(), name.size()) < 0)
        ::_exit(1);
      for (;;)
        ::pause();
    }
    char c = 0;
    while (::read(told[0], &c, 1) == 1 && c != '\n')
      names[i] += c;
    BOOST_REQUIRE(fs::exists(names[i]));
  }
  auto end = [&](int i) {
    ::kill(children[i], SIGKILL);
    ::waitpid(children[i], nullptr, 0);
  };
  end(0);
  // The first object of a process removes dead folders: this one is of its own
  // name.
  const pid_t next = ::fork();
  if (next == 0) {
    { const shoal::test::scratch other("of-one", home.path()); }
    ::_exit(0);
  }
  ::waitpid(next, nullptr, 0);
  BOOST_TEST(!fs::exists(names[0]));
  BOOST_TEST(fs::exists(fs::path(names[1]) / "blob"));
  end(1);
  BOOST_TEST(fs::exists(names[1]));
}

BOOST_AUTO_TEST_SUITE_END()
