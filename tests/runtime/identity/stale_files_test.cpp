// tests/runtime/identity/stale_files_test.cpp -- files and processes that are
// dead, and that only look dead.
#include "runtime/host/memory_keeper.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/identity/kept_folder.hpp"
#include "runtime/identity/stale_files.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>

BOOST_AUTO_TEST_SUITE(stale_files)

using namespace shoal::runtime;
namespace fs = std::filesystem;

namespace {

/// Places of its own, below a folder that is removed.
struct world {
  world() {
    in.temp = root / "tmp";
    in.memory = root / "shm";
    in.processes = root / "proc";
    for (const fs::path& p : {in.temp, in.memory, in.processes})
      fs::create_directories(p);
  }

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
    for (const stale_file& l : find_stale_files(in))
      out.push_back(l.path);
    return out;
  }

  shoal::test::folder home;
  fs::path root = home.path;
  stale_file_places in;
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

BOOST_AUTO_TEST_CASE(nothing_is_found_where_nothing_is) {
  const world w;
  BOOST_TEST((w.found() == paths{}));
}

BOOST_AUTO_TEST_CASE(the_socket_of_a_dead_node_is_removed_and_its_data_kept) {
  world w;
  const fs::path folder = w.node("dead");
  const auto found = find_stale_files(w.in);
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
  const auto before = find_stale_files(w.in);
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
  BOOST_TEST(!remove(find_stale_files(w.in).at(0)));
  BOOST_TEST((w.found() == paths{}));
}

/// It may be the only copy of what a run has made.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_had_no_room_is_named_and_stays) {
  world w;
  // One whose checkpoint was moved away as told was told of again and again.
  fs::path emptied;
  {
    const held_folder held = make_kept_folder(w.in.temp, "/runs/out\n");
    emptied = held.path;
    BOOST_TEST((w.found() == paths{})); // it is in use
  }
  const auto gone = find_stale_files(w.in);
  BOOST_TEST_REQUIRE(gone.size() == 1u);
  BOOST_TEST(gone[0].dead);
  BOOST_TEST(gone[0].text.find("empty folder") != std::string::npos);
  BOOST_TEST(!remove(gone[0]));
  BOOST_TEST(!fs::exists(emptied));
  const fs::path kept = w.in.temp / "shoal-kept-Ab12cD";
  fs::create_directories(kept / "step-8");
  const auto found = find_stale_files(w.in);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].path == kept);
  BOOST_TEST(!found[0].dead);
  BOOST_TEST(found[0].text.find("last checkpoint") != std::string::npos);
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

BOOST_AUTO_TEST_CASE(memory_of_ucx_is_reported_if_no_process_maps_it) {
  world w;
  const fs::path used = w.in.memory / "ucx_shm_posix_1";
  const fs::path unused = w.in.memory / "ucx_shm_posix_2";
  for (const fs::path& p : {used, unused, w.in.memory / "sem.other"})
    std::ofstream(p) << "x";
  fs::create_directories(w.in.processes / "7");
  std::ofstream(w.in.processes / "7" / "maps")
    << "7f00-7f01 rw-s 00000000 00:19 4 " << used.string() << "\n";
  const auto found = find_stale_files(w.in);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST((found[0].path == unused));
  BOOST_TEST(!found[0].dead); // another container may map it
}

/// Processes as /proc shows them.
struct processes : world {
  fs::path add(const std::string& pid, const std::string& program,
               const std::string& name, const std::string& parent,
               const std::vector<std::string>& open) {
    const fs::path folder = in.processes / pid;
    fs::create_directories(folder / "fd");
    fs::create_directories(folder / "net");
    if (!program.empty())
      fs::create_symlink(program, folder / "exe");
    std::ofstream(folder / "comm") << name << "\n";
    std::ofstream(folder / "status")
      << "Name:\t" << name << "\nPPid:\t" << parent << "\nUid:\t0\n";
    for (std::size_t n = 0; n < open.size(); ++n)
      fs::create_symlink(open[n], folder / "fd" / std::to_string(n));
    const std::string line = " 00000000:0000 0A 00000000:00000000 00:00000000 "
                             "00000000     0        0 ";
    std::ofstream(folder / "net" / "tcp")
      << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
         "retrnsmt   uid  timeout inode\n"
      << "   0: 0100007F:1F90" << line << "501 1\n"
      << "   1: 0100007F:1F91" << line << "502 1\n"
      << "   2: 0100007F:1F92 0100007F:1F90 01 00000000:00000000 00:00000000 "
         "00000000     0        0 503 1\n";
    std::ofstream(folder / "net" / "tcp6")
      << "  sl  local_address                         remote_address\n"
      << "   0: 00000000000000000000000000000000:1B58 "
         "00000000000000000000000000000000:0000 0A 00000000:00000000 "
         "00:00000000 00000000     0        0 504 1\n";
    return folder;
  }
  /// The only stale_file.
  stale_file one() const {
    const auto found = find_stale_files(in);
    BOOST_TEST_REQUIRE(found.size() == 1u);
    BOOST_TEST(!found[0].dead); // the user ends it, or not
    return found[0];
  }
};

BOOST_AUTO_TEST_CASE(a_node_without_its_data_is_reported_with_its_ports) {
  processes w;
  const fs::path lost = w.add(
    "11", "/bin/shoal", "shoal", "1",
    {"/d/lock (deleted)", "socket:[501]", "socket:[503]", "socket:[504]"});
  w.add("12", "/bin/shoal", "shoal", "1", {"/d/lock", "socket:[502]"});
  w.add("13", "/bin/other", "other", "1",
        {"/d/lock (deleted)", "socket:[501]"});
  const stale_file found = w.one();
  BOOST_TEST((found.path == lost));
  BOOST_TEST(found.text.find("kill 11") != std::string::npos);
  BOOST_TEST(found.text.find("at port 7000, 8080:") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_memory_keeper_is_reported_when_its_node_is_gone) {
  processes w;
  w.add("1", "/sbin/init", "init", "0", {});
  w.add("11", "/bin/shoal", "shoal", "1", {"/d/lock"});
  w.add("12", "/bin/shoal", keeper_name, "11", {});
  BOOST_TEST((w.found() == paths{}));
  const fs::path left = w.add("13", "/bin/shoal", keeper_name, "1", {});
  const stale_file found = w.one();
  BOOST_TEST((found.path == left));
  BOOST_TEST(found.text.find("kill -9 13") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_listener_without_a_data_directory_is_reported) {
  processes w;
  w.add("11", "/bin/shoal", "shoal", "1", {"socket:[503]"}); // a command
  BOOST_TEST((w.found() == paths{}));
  const fs::path left =
    w.add("12", "/bin/shoal", "shoal", "1", {"socket:[501]"});
  const stale_file found = w.one();
  BOOST_TEST((found.path == left));
  BOOST_TEST(found.text.find("port 8080") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_killed_node_that_does_not_end_is_reported) {
  processes w;
  w.add("10", "", "kworker/0:1", "2", {}); // has no program either
  const fs::path left =
    w.add("11", "", "shoal", "1", {"/d/lock", "socket:[502]"});
  const stale_file found = w.one();
  BOOST_TEST((found.path == left));
  BOOST_TEST(found.text.find("port 8081") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
