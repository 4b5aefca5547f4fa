// tests/runtime/files/mapped_file_test.cpp -- files that change under us.
#include "runtime/files/mapped_file.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

BOOST_AUTO_TEST_SUITE(mapped_files)

using namespace shoal::model;
using namespace shoal::tests;

namespace {

/// What a child that runs `body` leaves: its wait status and its stderr.
struct ended {
  int status = 0;
  std::string said;
};

template <class Body>
ended run_child(Body body) {
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGBUS, SIG_DFL); // not the test program's handler
    body();
    ::_exit(77);
  }
  ::close(ends[1]);
  ended out;
  char buffer[512];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    out.said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, &out.status, 0);
  return out;
}

char touch(const mapped_file& file, std::size_t at) {
  return static_cast<char>(
    *static_cast<const volatile std::byte*>(file.bytes().data() + at));
}

} // namespace

BOOST_AUTO_TEST_CASE(bytes_are_those_of_the_file) {
  temporary_folder folder;
  write_text(folder / "a", "some bytes");
  write_text(folder / "empty", "");
  const auto file = mapped_file::open(folder / "a");
  BOOST_REQUIRE(file);
  BOOST_TEST((*file)->bytes().size() == 10u);
  BOOST_TEST(touch(**file, 5) == 'b');
  const auto empty = mapped_file::open(folder / "empty");
  BOOST_REQUIRE(empty);
  BOOST_TEST((*empty)->bytes().empty());
  BOOST_TEST(why(mapped_file::open(folder / "none")).find("cannot open")
             != std::string::npos);
  BOOST_TEST(why(mapped_file::open(folder.path())).find("regular")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_replaces_it_is_another) {
  temporary_folder folder;
  write_text(folder / "a", "old");
  write_text(folder / "b", "new");
  const auto file = mapped_file::open(folder / "a");
  std::filesystem::rename(folder / "b", folder / "a");
  BOOST_TEST(touch(**file, 0) == 'o');
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_off_is_named) {
  temporary_folder folder;
  const auto path = folder / "weights";
  write_text(path, std::string(100'000, 'x'));
  const ended end = run_child([&] {
    const auto other = mapped_file::open(path);
    const auto file = mapped_file::open(path);
    explain_truncation();
    std::filesystem::resize_file(path, 10);
    touch(**file, 90'000);
  });
  BOOST_TEST(WIFEXITED(end.status));
  BOOST_TEST(WEXITSTATUS(end.status) == 1);
  BOOST_TEST(end.said
             == "shoal: " + path.string()
                  + ": the file was truncated, or cannot be read, while it was "
                    "in use\n");
}

BOOST_AUTO_TEST_CASE(other_bus_errors_end_the_process_as_before) {
  const ended end = run_child([] {
    explain_truncation();
    ::raise(SIGBUS);
    ::raise(SIGBUS);
  });
  BOOST_TEST(WIFSIGNALED(end.status));
  BOOST_TEST(WTERMSIG(end.status) == SIGBUS);
  BOOST_TEST(end.said.empty());
}

BOOST_AUTO_TEST_SUITE_END()
