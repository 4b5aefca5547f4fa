// tests/actors/load_wait_test.cpp -- a stage that cannot be loaded says why.
#include "actors/serving/file_keeper.hpp"
#include "actors/serving/served_weights.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/view.hpp"
#include "runtime/model/units.hpp"
#include "support/folder.hpp"
#include "tests/actors/inline_queue.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <deque>

BOOST_AUTO_TEST_SUITE(load_waits)

using namespace shoal;
using namespace shoal::actors;

namespace {

const core::peer_id me{1}, other{2};
constexpr core::job_id job = 5;

/// A peer with a stage of a model none of whose files can come.
struct peer final : test::still_context, weights_owner {
  const core::peer_id& self() const override { return me; }
  runtime::device_queue& disk() override { return work; }
  runtime::store& blobs() override { return store; }
  std::filesystem::path data_dir() const override { return home.path; }
  void fetch_blob(const core::blob_digest&, std::vector<core::peer_id>,
                  std::function<void(std::error_code)> done) override {
    done(error);
  }
  void say(const std::string& text) override { said_here.push_back(text); }
  void load_waits(const std::string& why) override { waits.push_back(why); }
  void unusable(const std::string& why) override { BOOST_ERROR(why); }
  std::vector<core::peer_id> members() const override { return {me, other}; }
  void run_later(std::chrono::seconds, std::function<void()> run) override {
    later.push_back(std::move(run));
  }
  void pass() {
    auto all = std::exchange(later, {});
    for (const auto& run : all)
      run();
  }

  test::folder home;
  test::small_store store{home.path / "blobs"};
  test::inline_queue work;
  std::error_code error = std::make_error_code(std::errc::no_space_on_device);
  std::vector<std::string> said_here, waits;
  std::deque<std::function<void()>> later;
};

const poster at_once = [](std::function<void()> run) { run(); };
const std::string full =
  "its disk takes no files of the model: "
  + std::make_error_code(std::errc::no_space_on_device).message();

const auto layout =
  std::make_shared<const model::unit_layout>(model::model_config{});

} // namespace

/// Nothing was said, and the model was "being loaded" for ever.
BOOST_AUTO_TEST_CASE(a_disk_that_takes_no_list_of_files_is_told) {
  peer p;
  file_keeper keeper(p, job, layout, nullptr, true, p, at_once, [] {});
  auto v = std::make_shared<core::view>();
  for (const core::peer_id& id : {me, other})
    v->members.emplace_back().id.peer = id;
  core::job_entry& e = v->jobs.emplace_back();
  e.id = job;
  e.kind = core::job_kind::serve;
  e.origin = {7};
  core::island_place place;
  place.replicas.emplace_back().stages.push_back(core::stage_on({me, 0}, 0, 1));
  keeper.set(v, {job, {place}});
  BOOST_TEST(p.waits == std::vector{full}, boost::test_tools::per_element());
  p.pass();
  BOOST_TEST(p.waits.size() == 2u); // again and again
  p.error = runtime::errc::not_found;
  p.pass();
  BOOST_TEST(p.waits.size() == 2u); // it may still be uploaded
}

BOOST_AUTO_TEST_CASE(a_disk_that_takes_no_weights_is_told) {
  peer p;
  const auto share = std::make_shared<file_share>();
  served_weights weights(p, job, {7}, {}, layout, share, p, at_once);
  weights.want({0});
  BOOST_TEST(p.waits.empty());
  share->set({}, false);
  weights.go_on();
  BOOST_TEST(p.waits == std::vector{full}, boost::test_tools::per_element());
  p.error = runtime::errc::not_found;
  p.pass();
  BOOST_TEST(p.waits.size() == 1u);
  BOOST_TEST(p.said_here.size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_change_is_told_once_and_now_and_then_again) {
  constexpr core::nanoseconds second = 1'000'000'000;
  load_wait w;
  const auto set = [&](const std::string& why, core::nanoseconds now) {
    return w.set("h2", {2}, 3, why, now);
  };
  BOOST_TEST(set("", second) == "");
  BOOST_TEST(set("no room", second) == "h2 cannot load stage 3 of 3: no room");
  BOOST_TEST(set("no room", 2 * second) == "");
  BOOST_TEST(set("no room", 40 * second)
             == "h2 cannot load stage 3 of 3: no room");
  BOOST_TEST(w.set("h2", {0, 2}, 3, "no disk", 41 * second)
             == "h2 cannot load stages 1, 3 of 3: no disk");
  BOOST_TEST(set("", 42 * second) == "h2 goes on loading stage 3 of 3");
  BOOST_TEST(set("", 90 * second) == "");
}

BOOST_AUTO_TEST_CASE(a_line_that_comes_again_is_noted_once) {
  load_wait w;
  BOOST_TEST(w.take("a"));
  BOOST_TEST(!w.take("a"));
  BOOST_TEST(w.take("b"));
  std::size_t noted = 0;
  for (int i = 0; i < 1000; ++i)
    noted += w.take(std::to_string(i));
  BOOST_TEST(noted < 100u); // peers cannot fill the log
}

BOOST_AUTO_TEST_SUITE_END()
