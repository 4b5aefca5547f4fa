// tests/apps/transfer/checkpoint_fetcher_test.cpp -- downloads of checkpoints
// in the background: overtaken ones, the last one, errors, and cancellation.
//
// A blob is served when the test permits it, so nothing depends on time.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "apps/transfer/checkpoint_fetcher.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>

BOOST_AUTO_TEST_SUITE(fetcher)

using namespace shoal;
using apps::blob_source;
using apps::checkpoint_fetcher;
namespace fs = std::filesystem;

namespace {

core::blob_digest digest_of(std::uint8_t n) {
  core::blob_digest d{};
  d[0] = n;
  return d;
}

/// A shoal with some checkpoints, of one file each, that holds back manifests.
class remote final : public blob_source {
public:
  runtime::job_event add(std::uint8_t step) {
    actors::manifest m;
    m.step = step;
    m.files.push_back({"config.json", digest_of(std::uint8_t(100 + step)), 4});
    blobs_[digest_of(step)] = actors::to_json(m);
    blobs_[digest_of(std::uint8_t(100 + step))] = "text";
    runtime::job_event e;
    e.kind = runtime::job_event_kind::checkpoint;
    e.step = step;
    e.digest = digest_of(step);
    return e;
  }

  std::error_code get(const std::string& where, const core::blob_digest& d,
                      const piece& sink, std::string& why) override {
    std::unique_lock lock(mutex_);
    where_ = where;
    ++asked_;
    changed_.notify_all();
    while (trickles_ && d[0] < 100)
      if (const auto error = sink({}))
        return error;
    changed_.wait(lock, [&] { return open_ || d[0] >= 100; });
    if (!blobs_.contains(d)) {
      why = "it is nowhere";
      return std::make_error_code(std::errc::no_such_file_or_directory);
    }
    const auto error = sink(std::as_bytes(std::span(blobs_.at(d))));
    if (error)
      why = error.message();
    return error;
  }

  /// Waits until `n` blobs have been requested.
  void wait_asked(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ >= n; });
  }
  /// Manifests come, but never more of them.
  void trickle(bool now) {
    std::lock_guard lock(mutex_);
    trickles_ = now;
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::string where() {
    std::lock_guard lock(mutex_);
    return where_;
  }

  shoal::test::folder home_;
  fs::path folder = home_.path;

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<core::blob_digest, std::string> blobs_;
  std::string where_;
  int asked_ = 0;
  bool open_ = false;
  bool trickles_ = false;
};

/// A disk that takes nothing while a file's blob is fetched.
struct full_disk final : blob_source {
  explicit full_disk(blob_source& s) : source(s) {}
  std::error_code get(const std::string& where, const core::blob_digest& d,
                      const piece& sink, std::string& why) override {
    if (d[0] >= 100) { // a file
      const rlimit none{0, RLIM_INFINITY};
      std::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(RLIMIT_FSIZE, &none);
    }
    const auto error = source.get(where, d, sink, why);
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &any);
    return error;
  }
  blob_source& source;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_overtaken_while_waiting_is_left_out) {
  remote r;
  checkpoint_fetcher f(r.folder, r);
  f.want(r.add(1), "a");
  r.wait_asked(1); // it is in progress, and the caller continues
  BOOST_TEST(!f.take().has_value());
  f.want(r.add(2), "b");
  f.want(r.add(3), "c");
  const auto left_out = f.take();
  BOOST_REQUIRE(left_out.has_value());
  BOOST_TEST(left_out->asked.step == 2u);
  BOOST_TEST(left_out->folder.empty());
  BOOST_TEST(left_out->why
             == "that of step 1 is still being fetched, and then a newer one");
  r.open();
  f.settle({});
  for (const std::uint64_t step : {1, 3}) {
    const auto o = f.take();
    BOOST_REQUIRE(o.has_value());
    BOOST_TEST(o->asked.step == step);
    BOOST_TEST(o->folder == r.folder / ("step-" + std::to_string(step)));
    BOOST_TEST(fs::file_size(o->folder / "config.json") == 4u);
  }
  BOOST_TEST(!f.take().has_value());
  BOOST_TEST(r.where() == "c");
  BOOST_TEST(!fs::exists(r.folder / "step-2"));
}

BOOST_AUTO_TEST_CASE(a_failure_leaves_nothing_and_has_a_reason) {
  remote r;
  r.open();
  checkpoint_fetcher f(r.folder, r);
  runtime::job_event none = r.add(1);
  none.digest = digest_of(50);
  f.want(none, "a");
  f.settle({});
  const auto o = f.take();
  BOOST_REQUIRE(o.has_value());
  BOOST_TEST(o->folder.empty());
  BOOST_TEST(o->why == "it is nowhere");
  BOOST_TEST(fs::is_empty(r.folder));
}

// "cannot write the blob: Input/output error", without the file.
BOOST_AUTO_TEST_CASE(a_disk_that_takes_nothing_is_named_and_tried_again) {
  remote r;
  r.open();
  const fs::path parent = r.folder / "checkpoint";
  std::ofstream(parent) << "no folder";
  checkpoint_fetcher f(parent, r);
  f.want(r.add(1), "a");
  f.settle({});
  auto o = f.take();
  BOOST_REQUIRE(o.has_value());
  BOOST_TEST(o->folder.empty());
  BOOST_TEST(o->unwritten);
  BOOST_TEST(o->why.find(parent.string()) != std::string::npos, o->why);
  BOOST_TEST(o->why.find("Not a directory") != std::string::npos, o->why);
  fs::remove(parent);
  f.want(r.add(1), "a");
  f.settle({});
  o = f.take();
  BOOST_REQUIRE(o.has_value());
  BOOST_TEST(o->folder == parent / "step-1");
  BOOST_TEST(!o->unwritten);
}

BOOST_AUTO_TEST_CASE(a_failed_write_is_told_with_the_file_and_its_own_reason) {
  remote r;
  r.open();
  full_disk source(r);
  checkpoint_fetcher f(r.folder, source);
  f.want(r.add(1), "a");
  f.settle({});
  const auto o = f.take();
  BOOST_REQUIRE(o.has_value());
  BOOST_TEST(o->unwritten);
  const std::string file = (r.folder / "step-1.partial/config.json").string();
  BOOST_TEST(o->why
             == file + ": write: " + std::generic_category().message(EFBIG));
  BOOST_TEST(fs::is_empty(r.folder));
}

BOOST_AUTO_TEST_CASE(a_cancelled_fetch_ends_at_the_next_piece) {
  remote r;
  r.trickle(true);
  checkpoint_fetcher f(r.folder, r);
  f.want(r.add(1), "a");
  f.want(r.add(2), "a");
  int times = 0;
  f.settle([&] { return ++times == 3; });
  BOOST_TEST(times == 3);
  r.trickle(false);
  r.open();
  for (int n : {1, 2}) {
    const auto o = f.take();
    BOOST_REQUIRE(o.has_value());
    BOOST_TEST(o->asked.step == std::uint64_t(n)); // overtaken, or interrupted
    BOOST_TEST(o->folder.empty());
  }
  BOOST_TEST(fs::is_empty(r.folder));
  f.want(r.add(3), "a"); // it is of use again
  f.settle({});
  BOOST_TEST(fs::exists(r.folder / "step-3"));
}

BOOST_AUTO_TEST_CASE(a_manifest_without_end_of_lists_is_refused) {
  const std::string deep =
    std::string(2'000'000, '[') + std::string(2'000'000, ']');
  BOOST_TEST(!actors::parse_manifest(R"({"format":)" + deep + "}"));
  BOOST_TEST(!actors::parse_manifest(
    R"({"format":"shoal-checkpoint-1","step":1,"files":)" + deep + "}"));
}

BOOST_AUTO_TEST_CASE(an_end_waits_for_no_checkpoint) {
  remote r;
  auto f = std::make_unique<checkpoint_fetcher>(r.folder, r);
  f->want(r.add(1), "a");
  r.wait_asked(1);
  r.open(); // the piece that is under way comes
  f.reset();
  for (const auto& entry : fs::directory_iterator(r.folder))
    BOOST_TEST(entry.path().filename() == "step-1"); // whole, or not there
}

BOOST_AUTO_TEST_SUITE_END()
