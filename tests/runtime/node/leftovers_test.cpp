// tests/runtime/node/leftovers_test.cpp -- what is dead, and what only looks
// so.
#include "runtime/identity.hpp"
#include "runtime/leftovers.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>

using namespace shoal::runtime;
namespace fs = std::filesystem;

namespace {

/// Places of its own, below a folder that is removed.
struct world {
  world() {
    std::string name = (fs::temp_directory_path() / "left-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()));
    root = name;
    in.temp = root / "tmp";
    in.memory = root / "shm";
    in.processes = root / "proc";
    for (const fs::path& p : {in.temp, in.memory, in.processes})
      fs::create_directories(p);
  }
  ~world() { fs::remove_all(root); }

  /// A data directory with a socket, whose lock is free.
  fs::path node(const std::string& name) {
    const fs::path folder = root / name;
    { data_dir_lock made(folder); }
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, (folder / "control.sock").c_str(),
                 sizeof at.sun_path - 1);
    BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    ::close(fd);
    in.data_dirs.push_back(folder);
    return folder;
  }

  fs::path temporary(const std::string& name) {
    const fs::path folder = in.temp / name;
    data_dir_lock made(folder);
    return folder;
  }

  std::vector<fs::path> found() const {
    std::vector<fs::path> out;
    for (const leftover& l : find_leftovers(in))
      out.push_back(l.path);
    return out;
  }

  fs::path root;
  leftover_places in;
};

/// The number of a process that has ended.
std::string dead_pid() {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return std::to_string(pid);
}

using paths = std::vector<fs::path>;

} // namespace

BOOST_AUTO_TEST_SUITE(leftovers)

BOOST_AUTO_TEST_CASE(nothing_is_found_where_nothing_is) {
  const world w;
  BOOST_TEST((w.found() == paths{}));
}

BOOST_AUTO_TEST_CASE(the_socket_of_a_dead_node_is_removed_and_its_data_kept) {
  world w;
  const fs::path folder = w.node("dead");
  const auto found = find_leftovers(w.in);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST((found[0].path == folder / "control.sock"));
  BOOST_REQUIRE(found[0].dead);
  BOOST_TEST(!remove(found[0]));
  BOOST_TEST(fs::exists(folder / "lock"));
  BOOST_TEST((w.found() == paths{}));
}

BOOST_AUTO_TEST_CASE(the_socket_of_a_node_that_runs_is_none) {
  world w;
  const fs::path folder = w.node("alive");
  const auto before = find_leftovers(w.in);
  const data_dir_lock held(folder);
  BOOST_TEST((w.found() == paths{}));
  // It has started since we looked.
  BOOST_REQUIRE(before.size() == 1u);
  BOOST_TEST(bool(remove(before[0])));
  BOOST_TEST(fs::exists(folder / "control.sock"));
}

BOOST_AUTO_TEST_CASE(folders_of_dead_processes_are_removed_by_kind) {
  world w;
  const std::string pid = dead_pid();
  const fs::path train = w.temporary(train_folder + pid);
  const fs::path embedded = w.temporary(embedded_folder + pid + "-abcdef");
  BOOST_TEST((w.found() == paths{train, embedded}));
  remove_abandoned_dirs(w.in.temp, train_folder);
  BOOST_TEST((w.found() == paths{embedded}));
  BOOST_TEST(!remove(find_leftovers(w.in).at(0)));
  BOOST_TEST((w.found() == paths{}));
}

BOOST_AUTO_TEST_CASE(folders_of_others_are_left_alone) {
  world w;
  const std::string pid = dead_pid();
  w.temporary(chaos_folder + std::to_string(::getpid())); // runs
  w.temporary("shoal-" + pid);                            // the user's own
  w.temporary(chaos_folder + pid + "x");
  w.temporary(std::string(chaos_folder) + "-1");
  fs::create_directories(w.in.temp / (bench_folder + pid)); // without a lock
  const fs::path elsewhere = w.root / "elsewhere";
  { const data_dir_lock made(elsewhere); }
  fs::create_directory_symlink(elsewhere, w.in.temp / (train_folder + pid));
  // A process of another container that we cannot see.
  const data_dir_lock held(w.in.temp / (embedded_folder + pid));
  BOOST_TEST((w.found() == paths{}));
  remove_abandoned_dirs(w.in.temp, bench_folder);
  BOOST_TEST(fs::exists(w.in.temp / (bench_folder + pid)));
}

BOOST_AUTO_TEST_CASE(memory_of_ucx_is_told_when_nobody_maps_it) {
  world w;
  const fs::path used = w.in.memory / "ucx_shm_posix_1";
  const fs::path unused = w.in.memory / "ucx_shm_posix_2";
  for (const fs::path& p : {used, unused, w.in.memory / "sem.other"})
    std::ofstream(p) << "x";
  fs::create_directories(w.in.processes / "7");
  std::ofstream(w.in.processes / "7" / "maps")
    << "7f00-7f01 rw-s 00000000 00:19 4 " << used.string() << "\n";
  const auto found = find_leftovers(w.in);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST((found[0].path == unused));
  BOOST_TEST(!found[0].dead); // another container may map it
}

BOOST_AUTO_TEST_CASE(a_node_without_its_data_is_told) {
  world w;
  auto process = [&](const char* pid, const char* program, const char* file) {
    const fs::path folder = w.in.processes / pid;
    fs::create_directories(folder / "fd");
    fs::create_symlink(program, folder / "exe");
    fs::create_symlink(file, folder / "fd" / "9");
    return folder;
  };
  const fs::path lost = process("11", "/bin/shoal", "/d/lock (deleted)");
  process("12", "/bin/shoal", "/d/lock");
  process("13", "/bin/other", "/d/lock (deleted)");
  const auto found = find_leftovers(w.in);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST((found[0].path == lost));
  BOOST_TEST(!found[0].dead);
  BOOST_TEST(found[0].text.find("kill 11") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
