// tests/apps/train/model_folder_test.cpp -- which model a folder of a run has: its own,
// or that of its newest checkpoint.
#include "apps/train/model_folder.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/model/files/checksums.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

BOOST_AUTO_TEST_SUITE(model_folder)

namespace fs = std::filesystem;
using shoal::apps::model_in;
namespace model = shoal::model;

namespace {

/// The folder of a run with the checkpoints of steps 100 and 200.
struct run_folder {
  run_folder() {
    fill(step(100), "weights of step 100");
    fill(step(200), "weights of step 200");
  }
  fs::path step(int n) const {
    return top / "checkpoint" / ("step-" + std::to_string(n));
  }
  static void fill(const fs::path& folder, const std::string& weights) {
    fs::create_directories(folder);
    BOOST_TEST_REQUIRE(bool(model::write_file(folder / "config.json", "{}\n")));
    BOOST_TEST_REQUIRE(
      bool(model::write_file(folder / "model.safetensors", weights)));
    BOOST_TEST_REQUIRE(bool(model::write_checksums(folder)));
  }
  /// A copy may leave its files in any order.
  static void age(const fs::path& folder, int minutes) {
    fs::last_write_time(folder / "config.json",
                        fs::file_time_type::clock::now()
                          - std::chrono::minutes(minutes));
  }
  fs::path found() const {
    const auto in = model_in(top);
    BOOST_TEST_REQUIRE(bool(in));
    return *in;
  }
  shoal::test::folder home;
  fs::path top = home.path;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_model_of_the_newest_checkpoint_is_the_folders_own) {
  run_folder run;
  run.fill(run.top, "weights of step 200");
  run.age(run.top, 10);
  BOOST_TEST(run.found() == run.top);
  run.age(run.step(200), 20);
  BOOST_TEST(run.found() == run.top);
}

BOOST_AUTO_TEST_CASE(a_run_that_went_on_has_a_newer_checkpoint) {
  run_folder run;
  run.fill(run.top, "weights of step 100");
  run.age(run.step(200), 10);
  BOOST_TEST(run.found() == run.step(200));
  fs::remove_all(run.step(100)); // few are kept
  BOOST_TEST(run.found() == run.step(200));
}

BOOST_AUTO_TEST_CASE(without_checksums_the_newer_file_counts) {
  run_folder run;
  run.fill(run.top, "weights of another program");
  fs::remove(run.top / model::checksums_name);
  run.age(run.step(200), 10);
  BOOST_TEST(run.found() == run.top);
  run.age(run.top, 20);
  BOOST_TEST(run.found() == run.step(200));
}

BOOST_AUTO_TEST_SUITE_END()
