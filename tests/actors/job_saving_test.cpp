// tests/actors/job_saving_test.cpp -- the checkpoints of a job on one peer.
#include "actors/job/parts/job_remarks.hpp"
#include "actors/job/parts/job_rescue.hpp"
#include "actors/job/parts/job_saving.hpp"
#include "actors/job_peer.hpp"

BOOST_AUTO_TEST_SUITE(job_saves)

using namespace shoal;
using namespace shoal::test;

namespace event = core::job_event;

namespace {

struct saving_events final : actors::job_saving::events {
  void saving_changed(const core::job_input& what) override {
    if (const auto* held = std::get_if<event::checkpoint_held>(&what))
      steps.push_back(int(held->checkpoint.step)), lacks = held->lacks;
    if (const auto* old = std::get_if<event::checkpoint_dropped>(&what))
      steps.push_back(-int(old->checkpoint.step));
  }
  void found(std::vector<core::job_input>) override {}
  void write(const actors::write_shards& m) override { written.push_back(m); }
  void refuse(const actors::refuse_shards& m) override {
    refused.push_back(m.step);
  }
  void end(const actors::checkpoint_over&) override {}
  void fetch(actors::lasting_fetch f) override { fetches.push_back(f); }
  void hand_over(core::epoch) override {}
  std::vector<int> steps; ///< held; negative: dropped
  core::part_set lacks;   ///< of the one held last
  std::vector<actors::write_shards> written;
  std::vector<std::uint64_t> refused;
  std::vector<actors::lasting_fetch> fetches;
};

struct saving_peer : job_peer {
  saving_peer(network& wire, std::size_t n) : job_peer(wire, n) {
    see(2);
    adopt(two_stages());
    for (model::unit_index u = 0; u < here.world->layout->unit_count(); ++u)
      here.world->units[u] = here.world->make_unit(u);
  }
  core::part_set all() const {
    return core::part_set(
      core::part_range{0, core::part_index(here.world->layout->unit_count())});
  }
  /// Everything but the disk.
  void run_queues() {
    while (!sums.waiting.empty() || !device.waiting.empty() || !turns.empty()) {
      if (!sums.waiting.empty())
        sums.run_one();
      run_device();
    }
  }
  void run_device() {
    while (!device.waiting.empty())
      device.run_one();
    while (!turns.empty()) {
      turns.front()();
      turns.pop_front();
    }
  }
  saving_events seen;
  actors::job_remarks remarks{here};
  std::shared_ptr<actors::needed_checkpoints> needed =
    std::make_shared<actors::needed_checkpoints>();
  actors::job_saving part{here, needed, remarks, seen};
};

core::checkpoint_ref checkpoint(std::uint64_t step, core::epoch since = 1) {
  core::checkpoint_ref out{step, {}, since};
  out.manifest[0] = std::uint8_t(step);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_the_newest_checkpoints_stay) {
  network wire;
  saving_peer p(wire, 0);
  p.here.world->run.keep_latest_k = 2;
  for (const std::uint64_t step : {4u, 8u, 12u})
    p.part.hold(checkpoint(step));
  BOOST_TEST((p.seen.steps == std::vector<int>{4, 8, 12, -4}));
  BOOST_TEST(p.log.all.size() == 3u);
}

BOOST_AUTO_TEST_CASE(an_offer_is_compared_with_the_newest_of_that_step) {
  network wire;
  saving_peer p(wire, 0);
  p.part.hold(checkpoint(4, 1));
  p.part.hold(checkpoint(4, 3));
  BOOST_REQUIRE(p.part.logged(4).has_value());
  BOOST_TEST(p.part.logged(4)->since == 3u);
  BOOST_TEST(!p.part.logged(8).has_value());
}

BOOST_AUTO_TEST_CASE(one_checkpoint_is_written_at_a_time) {
  network wire;
  saving_peer p(wire, 0);
  p.part.begin({plan_digest, 4, false, {}, peer(0)});
  p.run_device();
  BOOST_REQUIRE(p.seen.written.size() == 1u);
  BOOST_TEST(p.part.writing());
  p.part.begin({plan_digest, 8, false, {}, peer(0)});
  p.run_device();
  BOOST_TEST((p.seen.refused == std::vector<std::uint64_t>{8}));
  p.seen.written.clear(); // it has been written
  BOOST_TEST(!p.part.writing());
  p.part.begin({plan_digest, 12, false, {}, peer(0)});
  p.run_device();
  BOOST_TEST(p.seen.written.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_too_slow_is_noted_with_what_follows) {
  network wire;
  saving_peer p(wire, 0);
  p.here.world->run.checkpoint_interval = 50;
  p.part.slow({794, 235});
  BOOST_REQUIRE(p.log.all.size() == 1u);
  const std::string& text = p.log.all.back().text;
  BOOST_TEST(text.find("longer than 50 steps (checkpoint.interval)")
             != std::string::npos);
  BOOST_TEST(text.find("each begins as soon as the one before is done")
             != std::string::npos);
}

/// The whole of it, and of its files: job_checkpoints_test.cpp.
BOOST_AUTO_TEST_CASE(state_that_is_not_whole_is_not_saved_but_reported) {
  network wire;
  saving_peer p(wire, 0);
  actors::job_rescue rescue{p.here, p.remarks, p.part};
  p.part.hold(checkpoint(4));
  p.remarks.log_step({{6, 1}, 1.0, 1.0, 1, 1}, 0);
  BOOST_TEST(!rescue.begun());
  const std::size_t before = p.log.all.size();
  auto lease = std::make_shared<int>();
  rescue.begin(lease);
  BOOST_TEST(rescue.begun());
  BOOST_TEST(lease.use_count() == 2); // until what was begun is over
  p.run_queues();
  BOOST_TEST(lease.use_count() == 1);
  BOOST_REQUIRE(p.log.all.size() == before + 1);
  const std::string& text = p.log.all.back().text;
  BOOST_TEST(text.find("the state at step 6 ends with this node")
             != std::string::npos);
  BOOST_TEST(text.find("the checkpoint of step 4") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_fetched_until_a_newer_one_is_here) {
  network wire;
  saving_peer p(wire, 1);
  p.part.keep({checkpoint(4), p.all(), peer(0)});
  p.part.keep({checkpoint(4), p.all(), peer(0)});
  BOOST_REQUIRE(p.seen.fetches.size() == 1u);
  BOOST_TEST(p.seen.fetches[0].set.manifests.size() == 1u);
  BOOST_TEST(p.seen.fetches[0].wanted());
  p.part.hold(checkpoint(8));
  BOOST_TEST(!p.seen.fetches[0].wanted());
}

BOOST_AUTO_TEST_CASE(a_keeper_gets_its_share_and_more_when_others_refuse) {
  network wire;
  saving_peer p(wire, 1);
  const core::part_set low(core::part_range{0, 2}),
    most(core::part_range{0, 3});
  p.part.keep({checkpoint(4), low, peer(0)});
  p.part.keep({checkpoint(4), low, peer(0)}); // is being fetched
  BOOST_REQUIRE(p.seen.fetches.size() == 1u);
  BOOST_REQUIRE(p.seen.fetches[0].set.shares.size() == 1u);
  BOOST_TEST((p.seen.fetches[0].set.shares[0].parts == low));
  p.part.keep({checkpoint(4), most, peer(0)});
  BOOST_TEST(p.seen.fetches.size() == 2u);
  p.seen.fetches[0].then();
  core::part_set lacks = p.all();
  lacks.remove(low);
  BOOST_TEST((p.seen.lacks == lacks));
  p.seen.fetches[1].then();
  lacks.remove(most);
  BOOST_TEST((p.seen.lacks == lacks));
}

/// Three stay, since the newest may not be everywhere yet.
BOOST_AUTO_TEST_CASE(of_shared_checkpoints_three_stay_at_least) {
  network wire;
  saving_peer p(wire, 0);
  p.here.world->run.keep_latest_k = 1;
  const core::part_set low(core::part_range{0, 2});
  p.part.hold(checkpoint(4));
  p.part.hold(checkpoint(8), low); // interrupted, and replaces none
  BOOST_TEST((p.seen.steps == std::vector<int>{4, 8}));
  core::island_place place = p.here.plan->where;
  place.part_keepers = place.sealers;
  p.adopt(place);
  for (const std::uint64_t step : {12u, 16u, 20u})
    p.part.hold(checkpoint(step), low);
  BOOST_TEST((p.seen.steps == std::vector<int>{4, 8, 12, 16, -4, 20, -8}));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_reported_once_and_so_is_its_end) {
  network wire;
  saving_peer p(wire, 0);
  p.part.failed({4, peer(1), "no room", false, false});
  p.part.failed({8, peer(1), "no room", false, false});
  BOOST_TEST(p.log.all.size() == 1u);
  p.part.known({checkpoint(12), peer(0), 1, {}});
  p.part.known({checkpoint(16), peer(0), 1, {}});
  std::size_t notices = 0;
  for (const runtime::job_event& e : p.log.all)
    notices += e.kind == runtime::job_event_kind::notice;
  BOOST_TEST(notices == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
