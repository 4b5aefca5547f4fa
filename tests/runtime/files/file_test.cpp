// tests/runtime/files/file_test.cpp -- a file is replaced whole, or not at all.
#include "runtime/files/file.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/home_folder.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(file)

namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const fs::path& file) {
  const auto text = model::read_file(file, 1000);
  return text ? *text : "failed: " + text.message();
}

std::size_t files_in(const fs::path& folder) {
  return std::size_t(
    std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

unsigned mode_of(const fs::path& file) {
  return unsigned(fs::status(file).permissions()) & 0777U;
}

/// A folder with one file, "old".
struct old_file {
  old_file() { BOOST_REQUIRE(!replace_file(file, bytes_of("old"))); }

  test::scratch folder{"shoal-file"};
  fs::path file = folder.path() / "state";
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_draft_takes_its_place_when_it_is_committed,
                        old_file) {
  draft_file draft(file);
  BOOST_REQUIRE(!draft.open());
  BOOST_REQUIRE(!draft.write(bytes_of("new")));
  BOOST_REQUIRE(!draft.write(bytes_of("er")));
  BOOST_TEST(text_of(file) == "old");
  BOOST_REQUIRE(!draft.commit());
  BOOST_TEST(text_of(file) == "newer");
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_draft_that_is_not_committed_goes_away, old_file) {
  {
    draft_file draft(file);
    BOOST_REQUIRE(!draft.open());
    BOOST_REQUIRE(!draft.write(bytes_of("new")));
  }
  BOOST_TEST(text_of(file) == "old");
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(leftovers_of_a_crash_are_no_obstacle) {
  test::scratch folder("shoal-file");
  const fs::path file = folder.path() / "state";
  BOOST_REQUIRE(!write_new_file(folder.path() / "state.new",
                                bytes_of("longer than what comes")));
  BOOST_REQUIRE(!replace_file(file, bytes_of("new")));
  BOOST_TEST(text_of(file) == "new");
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_secret_is_its_owners_and_a_model_is_for_all) {
  test::scratch folder("shoal-file");
  BOOST_REQUIRE(!replace_file(folder.path() / "secret", bytes_of("x")));
  BOOST_TEST(mode_of(folder.path() / "secret") == 0600U);
  BOOST_REQUIRE(model::write_file(folder.path() / "model", "x"));
  BOOST_TEST((mode_of(folder.path() / "model") & 0400U) == 0400U);
  BOOST_TEST((mode_of(folder.path() / "model") & 0111U) == 0U);
}

BOOST_AUTO_TEST_CASE(a_failure_names_the_file_and_the_reason) {
  test::scratch folder("shoal-file");
  const fs::path file = folder.path() / "none" / "model";
  const auto failed = model::write_file(file, "x");
  BOOST_REQUIRE(!failed);
  BOOST_TEST(failed.message()
             == file.string() + ": cannot create: No such file or directory");
  const auto folder_read = model::read_file(folder.path(), 10);
  BOOST_REQUIRE(!folder_read);
  BOOST_TEST(folder_read.message()
             == folder.path().string() + ": is not a regular file");
  BOOST_REQUIRE(model::write_file(folder.path() / "long", "12345678901"));
  const auto too_long = model::read_file(folder.path() / "long", 10);
  BOOST_REQUIRE(!too_long);
  BOOST_TEST(too_long.message().ends_with("is longer than 10 bytes"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_was_moved_is_not_made_again) {
  test::scratch folder("shoal-file");
  const fs::path root = folder.path() / "data";
  BOOST_TEST((make_folder_below(root, root / "jobs" / "1")
              == std::errc::no_such_file_or_directory));
  BOOST_TEST(!fs::exists(root));
  fs::create_directory(root);
  BOOST_TEST(!make_folder_below(root, root / "jobs" / "1"));
  BOOST_TEST(fs::is_directory(root / "jobs" / "1"));
}

BOOST_AUTO_TEST_CASE(a_new_file_replaces_none) {
  test::scratch folder("shoal-file");
  const fs::path file = folder.path() / "key";
  BOOST_REQUIRE(!write_new_file(file, bytes_of("first")));
  BOOST_TEST(
    (write_new_file(file, bytes_of("second")) == std::errc::file_exists));
  BOOST_TEST(text_of(file) == "first");
}

// Under env -i commands refused, with advice that did not help.
BOOST_AUTO_TEST_CASE(a_user_has_a_home_without_the_variable) {
  using shoal::runtime::home_folder;
  using shoal::runtime::xdg_folder;
  const char* const home = std::getenv("HOME");
  const std::string before = home ? home : "";
  ::setenv("HOME", "/h", 1);
  BOOST_TEST(home_folder() == "/h");
  ::setenv("XDG_TEST_HOME", "/x", 1);
  BOOST_TEST(xdg_folder("XDG_TEST_HOME", ".below") == "/x");
  ::unsetenv("XDG_TEST_HOME");
  BOOST_TEST(xdg_folder("XDG_TEST_HOME", ".below") == "/h/.below");
  ::unsetenv("HOME");
  const passwd* const user = ::getpwuid(::geteuid());
  BOOST_TEST(home_folder() == (user ? user->pw_dir : ""));
  if (home)
    ::setenv("HOME", before.c_str(), 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
