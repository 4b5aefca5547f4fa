// tests/runtime/identity/vote_file_test.cpp -- votes survive, also where the
// disk is full or takes nothing; damage is noticed.
#include "runtime/identity/identity.hpp"
#include "runtime/identity/vote_file.hpp"
#include "tests/runtime/node/swarm.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

namespace shoal::runtime {

namespace vote_files {

namespace cl = core::cluster;
namespace fs = std::filesystem;

namespace {

cl::view_record view_of(core::epoch number, std::size_t text = 0) {
  cl::view_record out;
  out.current.number = number;
  out.seated = true;
  while (text > 0) {
    core::job_entry job;
    job.id = out.current.jobs.size() + 1;
    job.run_json.assign(std::min<std::size_t>(text, 60'000), 'x');
    text -= job.run_json.size();
    out.current.jobs.push_back(std::move(job));
  }
  return out;
}

cl::vote_record vote_of(core::epoch base, std::uint64_t round) {
  cl::vote_record out;
  out.base = base;
  out.promised.round = round;
  return out;
}

void flip(const fs::path& file, std::uintmax_t at) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(out.get() ^ 1);
  out.seekp(static_cast<std::streamoff>(at));
  out.put(byte);
}

struct inode_of {
  explicit inode_of(const fs::path& file) {
    struct stat is {};
    BOOST_TEST_REQUIRE(::stat(file.c_str(), &is) == 0);
    inode = is.st_ino;
    bytes = is.st_size;
    blocks = is.st_blocks;
  }
  bool operator==(const inode_of&) const = default;
  ino_t inode = 0;
  off_t bytes = 0;
  blkcnt_t blocks = 0;
};

/// A disk that takes nothing, for root neither: its folder is away.
struct broken_disk {
  explicit broken_disk(fs::path f) : folder(std::move(f)) {
    fs::rename(folder, away());
    std::ofstream(folder) << "no folder";
  }
  ~broken_disk() {
    fs::remove(folder);
    fs::rename(away(), folder);
  }
  fs::path away() const { return folder.string() + ".away"; }
  fs::path folder;
};

struct fixture : tests::swarm {
  fs::path disk = root / "disk";
  fs::path spare = root / "memory" / "votes";
  fixture() {
    fs::create_directories(disk);
    fs::create_directories(spare.parent_path());
  }
};

} // namespace

} // namespace vote_files

BOOST_FIXTURE_TEST_SUITE(vote_files, vote_files::fixture)

BOOST_AUTO_TEST_CASE(an_empty_directory_has_no_history) {
  auto history = vote_file(disk).load();
  BOOST_TEST(!history.view);
  BOOST_TEST(!history.vote);
}

BOOST_AUTO_TEST_CASE(the_newest_records_come_back) {
  vote_file votes(disk);
  for (core::epoch number : {1, 2, 3}) {
    BOOST_TEST(!votes.write(view_of(number)));
    BOOST_TEST(!votes.write(vote_of(number, 1)));
    auto history = vote_file(disk).load();
    BOOST_TEST_REQUIRE((history.view && history.vote));
    BOOST_TEST(history.view->current.number == number);
    BOOST_TEST(history.vote->base == number);
  }
  BOOST_TEST(!votes.erase());
  BOOST_TEST(!vote_file(disk).load().view);
  BOOST_TEST(!votes.write(view_of(4)));
  BOOST_TEST(vote_file(disk).load().view->current.number == 4U);
}

BOOST_AUTO_TEST_CASE(a_process_that_starts_again_goes_on_in_place) {
  for (core::epoch number = 1; number < 6; ++number) {
    vote_file votes(disk);
    auto history = votes.load();
    BOOST_TEST((history.view ? history.view->current.number : 0) == number - 1);
    BOOST_TEST(!votes.write(view_of(number)));
  }
}

/// What takes no more room than there is already fails on no full disk.
BOOST_AUTO_TEST_CASE(a_record_needs_no_more_room_than_was_reserved) {
  vote_file votes(disk);
  BOOST_TEST(!votes.write(view_of(1)));
  const inode_of before(disk / "view.record");
  BOOST_TEST(before.blocks * 512 >= before.bytes);
  for (core::epoch number = 2; number < 20; ++number)
    BOOST_TEST(!votes.write(view_of(number, number * 2000)));
  BOOST_TEST((inode_of(disk / "view.record") == before));
  for (const auto& entry : fs::directory_iterator(disk))
    BOOST_TEST(entry.path().extension() == ".record");
}

BOOST_AUTO_TEST_CASE(room_grows_before_it_is_needed) {
  vote_file votes(disk);
  BOOST_TEST(!votes.write(view_of(1)));
  const inode_of first(disk / "view.record");
  BOOST_TEST(!votes.write(view_of(2, 80'000)));
  const inode_of second(disk / "view.record");
  BOOST_TEST(second.bytes > first.bytes);
  BOOST_TEST(!votes.write(view_of(3, 75'000)));
  BOOST_TEST((inode_of(disk / "view.record") == second));
  BOOST_TEST(!votes.write(view_of(4, 700'000)));
  BOOST_TEST(vote_file(disk).load().view->current.jobs.size() == 12U);
  // Where it cannot grow, it does not have to as long as it fits.
  fs::create_directories(disk / "view.record.new" / "in the way");
  BOOST_TEST(!votes.write(view_of(5, 900'000)));
  BOOST_TEST(!votes.disk_error());
  BOOST_TEST(vote_file(disk).load().view->current.number == 5U);
}

BOOST_AUTO_TEST_CASE(a_damaged_or_cut_file_is_an_error_and_no_empty_history) {
  vote_file votes(disk);
  BOOST_TEST(!votes.write(vote_of(1, 1)));
  BOOST_TEST(!votes.write(vote_of(1, 2))); // in the second slot
  const auto file = disk / "vote.record";
  const auto size = fs::file_size(file);
  flip(file, size / 2 + 8192);
  BOOST_CHECK_THROW(vote_file(disk).load(), setup_error);
  flip(file, size / 2 + 8192);
  BOOST_TEST(vote_file(disk).load().vote->promised.round == 2U);
  fs::resize_file(file, size - 1);
  BOOST_CHECK_THROW(vote_file(disk).load(), setup_error);
  fs::resize_file(file, 3);
  BOOST_CHECK_THROW(vote_file(disk).load(), setup_error);
}

/// The result of a crash during a write: anything, except for the mark.
BOOST_AUTO_TEST_CASE(a_torn_write_leaves_the_record_before) {
  vote_file votes(disk);
  BOOST_TEST(!votes.write(vote_of(1, 1)));
  const auto file = disk / "vote.record";
  const auto half = fs::file_size(file) / 2;
  for (std::uintmax_t byte : {0, 20, 40, 8192, 8200}) {
    const auto copy = root / "whole";
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    {
      vote_file more(disk);
      static_cast<void>(more.load());
      BOOST_TEST(!more.write(vote_of(1, 2)));
    }
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(half + 4096));
    out.write("\0\0\0\0\0\0\0\0", 8);
    out.close();
    flip(file, half + byte);
    BOOST_TEST(vote_file(disk).load().vote->promised.round == 1U);
    fs::copy_file(copy, file, fs::copy_options::overwrite_existing);
  }
}

// A vote of the former one would have been the vote of the peer that came after it.
BOOST_AUTO_TEST_CASE(a_directory_is_lost_once_another_is_in_its_place) {
  const test::scratch root{"shoal-vote-file-test"};
  const fs::path folder = root.path() / "node";
  const data_dir_lock first(folder);
  BOOST_TEST(!first.lost());
  fs::rename(folder, root.path() / "moved");
  BOOST_TEST(first.lost());
  const data_dir_lock second(folder); // of a process with the same number
  BOOST_TEST(first.lost());
  BOOST_TEST(!second.lost());
  fs::remove_all(folder);
  BOOST_TEST(second.lost());
}

BOOST_AUTO_TEST_CASE(records_in_a_folder_that_is_another_peers_stay) {
  const test::scratch folder{"shoal-vote-file-test"},
    spare{"shoal-vote-file-test"};
  bool lost = false;
  vote_file former(folder.path(), {spare.path() / "former"},
                   [&lost] { return lost; });
  static_cast<void>(former.load());
  BOOST_TEST(!former.write(view_of(3)));
  lost = true;
  fs::remove_all(folder.path());
  fs::create_directory(folder.path());
  vote_file next(folder.path());
  static_cast<void>(next.load());
  BOOST_TEST(!next.write(view_of(7)));
  BOOST_TEST(!former.write(view_of(4)));
  BOOST_TEST(!former.write(vote_of(4, 1)));
  former.retry();
  BOOST_TEST(!former.erase());
  BOOST_TEST(!fs::exists(spare.path() / "former"));
  const auto kept = vote_file(folder.path()).load();
  BOOST_TEST_REQUIRE(kept.view.has_value());
  BOOST_TEST(kept.view->current.number == 7u);
  BOOST_TEST(!kept.vote.has_value());
}

BOOST_AUTO_TEST_CASE(a_peer_that_keeps_nothing_writes_nothing) {
  vote_file votes("");
  BOOST_TEST(!votes.write(cl::vote_record{}));
  BOOST_TEST(!votes.load().vote);
}

BOOST_AUTO_TEST_CASE(
  what_the_disk_does_not_take_outlives_the_process_in_memory) {
  vote_file votes(disk, {spare});
  BOOST_TEST(!votes.write(view_of(1)));
  BOOST_TEST(!votes.write(vote_of(1, 1)));
  BOOST_TEST(!fs::exists(spare));
  {
    const broken_disk off(disk);
    BOOST_TEST(!votes.write(vote_of(1, 2)));
    BOOST_TEST(votes.disk_error() != std::error_code{});
    BOOST_TEST(votes.spare_in_use() == spare);
    votes.retry();
    BOOST_TEST(votes.disk_error() != std::error_code{});
  }
  vote_file next(disk, {spare}); // killed, and started when the disk is back
  auto history = next.load();
  BOOST_TEST_REQUIRE((history.view && history.vote));
  BOOST_TEST(history.vote->promised.round == 2U);
  BOOST_TEST(next.disk_error() != std::error_code{});
  next.retry();
  BOOST_TEST(!next.disk_error());
  BOOST_TEST(!fs::exists(spare));
  BOOST_TEST(vote_file(disk).load().vote->promised.round == 2U);
}

BOOST_AUTO_TEST_CASE(each_record_is_loaded_from_its_newest_place) {
  vote_file votes(disk, {spare});
  BOOST_TEST(!votes.write(view_of(1)));
  {
    const broken_disk off(disk);
    BOOST_TEST(!votes.write(view_of(2)));
    BOOST_TEST(!votes.write(vote_of(2, 7)));
  }
  BOOST_TEST(!votes.write(view_of(3)));                // it works again
  BOOST_TEST(votes.disk_error() != std::error_code{}); // the vote is not there
  auto history = vote_file(disk, {spare}).load();
  BOOST_TEST(history.view->current.number == 3U);
  BOOST_TEST(history.vote->base == 2U);
  votes.retry();
  BOOST_TEST(!votes.disk_error());
  BOOST_TEST(!fs::exists(spare));
}

BOOST_AUTO_TEST_CASE(a_record_stored_nowhere_is_an_error_until_stored) {
  fs::create_directories(spare); // open to others: not ours
  fs::permissions(spare, fs::perms::all);
  vote_file votes(disk, {spare});
  BOOST_TEST(!votes.write(vote_of(1, 1)));
  {
    const broken_disk off(disk);
    BOOST_TEST(votes.write(vote_of(1, 2)) != std::error_code{});
  }
  BOOST_TEST(!votes.write(vote_of(1, 2)));
  BOOST_TEST(vote_file(disk).load().vote->promised.round == 2U);
}

/// Files may have no byte: what a process without descriptors, or a machine
/// without memory, meets as well.
BOOST_AUTO_TEST_CASE(a_spare_folder_that_takes_no_record_is_not_left_behind) {
  vote_file votes(disk, {spare});
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit none{0, old.rlim_max};
  BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const auto error = votes.write(vote_of(1, 1));
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  BOOST_TEST(error != std::error_code{});
  BOOST_TEST(!fs::exists(spare));
  BOOST_TEST(!votes.write(vote_of(1, 1)));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
