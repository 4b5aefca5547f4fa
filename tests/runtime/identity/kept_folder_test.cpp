// tests/runtime/identity/kept_folder_test.cpp -- folders of last checkpoints, in use
// and left behind.
#include "runtime/identity/kept_folder.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <stdlib.h>

#include <fstream>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(kept_folder)

using namespace shoal::runtime;
namespace fs = std::filesystem;

namespace {

struct temporary : shoal::test::folder {
  /// One that nobody holds.
  fs::path left() const { return make_kept_folder(path, "/out\n7\n").path; }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_new_folder_has_its_note_and_is_in_use) {
  const temporary t;
  const held_folder held = make_kept_folder(t.path, "/out\n7\n");
  BOOST_TEST(is_kept(held.path));
  std::string line;
  std::ifstream note(held.path / kept_note);
  BOOST_TEST(bool(std::getline(note, line)));
  BOOST_TEST(line == "/out");
  BOOST_TEST((state_of_kept(held.path) == kept_state::in_use));
  BOOST_TEST(bool(remove_if_empty(held.path)));
  remove_empty_kept_folders(t.path);
  BOOST_TEST(fs::exists(held.path));
}

/// A node that starts looks at each folder, also at one that was made just now.
BOOST_AUTO_TEST_CASE(a_folder_is_held_while_others_look_at_it) {
  const temporary t;
  std::jthread looks([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      remove_empty_kept_folders(t.path);
  });
  std::vector<held_folder> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(make_kept_folder(t.path, "/out\n"));
  looks = {};
  for (const held_folder& held : all) {
    BOOST_TEST(fs::exists(held.path / kept_note));
    BOOST_TEST((state_of_kept(held.path) == kept_state::in_use));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_folder_that_nobody_holds_is_removed) {
  const temporary t;
  const fs::path killed = t.left();
  fs::create_directories(killed / "step-5.partial");
  std::ofstream(killed / "step-5.partial/config.json") << "{}";
  const fs::path moved = t.left();
  const fs::path before_its_note = t.path / "shoal-kept-Ab12cD";
  fs::create_directory(before_its_note);
  std::ofstream(before_its_note / "out.txt.new") << "/ou";
  for (const fs::path& folder : {killed, moved, before_its_note})
    BOOST_TEST((state_of_kept(folder) == kept_state::empty));
  remove_empty_kept_folders(t.path);
  BOOST_TEST(fs::is_empty(t.path));
}

/// It may be the only copy of what a run has made.
BOOST_AUTO_TEST_CASE(a_checkpoint_stays_and_so_does_what_is_not_ours) {
  const temporary t;
  const fs::path kept = t.left();
  fs::create_directory(kept / "step-8");
  const fs::path users = t.left();
  std::ofstream(users / "notes.txt") << "mine";
  const fs::path other = t.path / "another";
  fs::create_directory(other);
  const fs::path link = t.path / "shoal-kept-link";
  fs::create_directory_symlink(other, link);
  const fs::path file = t.path / "shoal-kept-file";
  std::ofstream(file) << "";
  BOOST_TEST((state_of_kept(kept) == kept_state::has_checkpoint));
  remove_empty_kept_folders(t.path);
  for (const fs::path& stays :
       {kept / "step-8", users / "notes.txt", other, file})
    BOOST_TEST(fs::exists(stays), stays);
  BOOST_TEST(fs::is_symlink(link));
}

BOOST_AUTO_TEST_CASE(without_a_place_there_is_none) {
  const temporary t;
  BOOST_TEST(make_kept_folder(t.path / "missing", "").path.empty());
}

BOOST_AUTO_TEST_SUITE_END()
