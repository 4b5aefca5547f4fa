// tests/actors/job_stalls_test.cpp -- which peer is blamed for a job that does
// not move, and what follows.
//
// Peers that wait for each other's seals, with time, queues and transfers made
// by hand; their reports and verdicts reach each other at once.
#include "actors/job/parts/job_stalls.hpp"
#include "actors/job_peer.hpp"
#include "tests/actors/still_context.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

BOOST_AUTO_TEST_SUITE(job_stalls)

using namespace shoal;
using namespace shoal::test;

namespace event = core::job_event;

namespace {

using core::nanoseconds;
using peers = std::vector<core::peer_id>;

constexpr core::job_id own_job = 7, other_job = 8;
constexpr core::epoch view_number = 5;
constexpr nanoseconds second = 1'000'000'000;
constexpr nanoseconds tick_every = second / 10;

/// Work that is seen, and does not run.
struct shown_queue final : runtime::device_queue {
  void submit_pass(segments, std::function<void()>, label) override {}
  piece_in_front front() const override { return shown; }
  void close() override {}
  piece_in_front shown;
};

/// Transfers that are listed, and do not move.
struct shown_links final : runtime::link_hub {
  void expect(const core::peer_id&, transport::bulk_tag, runtime::shared_bytes,
              callback) override {}
  void send(const core::peer_id&, transport::bulk_tag, runtime::shared_bytes,
            callback) override {}
  void cancel(std::uint64_t) override {}
  std::vector<link_stat> stats() const override { return {}; }
  void list_pending(std::uint64_t,
                    std::function<void(std::vector<pending>)> then) override {
    then(shown);
  }
  std::vector<pending> shown;
};

/// Keeps what it is asked for; actors are not used.
struct lone_node final : test::still_context {
  explicit lone_node(job_peer& p) : peer_(p) {}
  const core::peer_id& self() const override { return peer_.here.self; }
  runtime::link_hub& links() override { return *peer_.here.links; }
  runtime::device_queue& device() override { return *peer_.here.device; }
  runtime::device_queue& reductions() override { return peer_.sums; }
  runtime::device_queue& disk() override { return *peer_.here.disk; }
  runtime::store& blobs() override { return peer_.store; }
  runtime::job_log& log() override { return peer_.log; }
  std::filesystem::path data_dir() const override { return peer_.home.path; }
  std::shared_ptr<const core::view> view() const override {
    return peer_.here.view;
  }
  void
  propose_expulsion(const core::peer_id& who, core::epoch number) override {
    BOOST_TEST(number == view_number);
    still_context::propose_expulsion(who, number);
  }

private:
  job_peer& peer_;
};

struct no_text final : actors::job_text::events {
  void text_loaded(const actors::job_text::text_ptr&) override {}
  void text_damaged() override {}
  void text_unusable(const std::string&) override {}
  void text_found() override {}
};

struct stall_peer : job_peer {
  /// In a view of `members` peers, the first `sealers` of which seal.
  stall_peer(network& wire, std::size_t n, std::size_t members,
             std::size_t sealers)
    : job_peer(wire, n), node(*this) {
    here.entry.id = own_job;
    here.world->node = &node;
    here.device = &shown_device;
    here.links = &shown_transfers;
    see(members);
    auto view = std::make_shared<core::view>(*here.view);
    view->number = view_number;
    here.view = view;
    remarks.learn_names();
    island_place place = two_stages();
    place.sealers.clear();
    for (std::size_t s = 0; s < sealers; ++s)
      place.sealers.push_back(member(s));
    place.keepers = place.sealers;
    if (sealers == 1)
      place.replicas = {pipeline({{0, 2}}, 0, 1)};
    // It waits for the seals of the others, or runs a step alone.
    feed(event::blobs_held{});
    feed(event::view_changed{place.since, place, here.members()});
    feed(event::halted{core.under().digest});
    for (std::uint32_t unit = 0; sealers == 1 && unit < 4; ++unit)
      feed(event::loaded{core.under().digest, unit});
    BOOST_TEST_REQUIRE(core.should_move() == (n < sealers),
                       to_text(core.now_in()));
    here.header = core.under();
    adopt(std::move(place));
  }
  void feed(const core::job_input& input) {
    static_cast<void>(core.step(input, 0));
  }
  /// @pre it is the only sealer
  void end_after_one_step() {
    const std::uint64_t digest = core.under().digest;
    event::prepared step{digest, 1, {}, {1.5}, {}};
    for (std::uint32_t unit = 0; unit < 4; ++unit)
      step.units.push_back({unit, 1});
    feed(event::drain{});
    feed(step);
    feed(event::applied{1});
    feed(event::snapshot_taken{digest, 1});
    BOOST_TEST_REQUIRE((core.now_in() == core::job_core::phase::done),
                       to_text(core.now_in()));
  }
  bool logged(const std::string& part) const {
    return std::ranges::any_of(log.all, [&](const runtime::job_event& e) {
      return e.text.find(part) != std::string::npos;
    });
  }
  /// The first lines of its flight records.
  std::vector<std::string> flights() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(home.path / "flight", none)) {
      std::ifstream file(entry.path());
      std::getline(file, out.emplace_back());
    }
    return out;
  }

  shown_queue shown_device, shown_disk;
  shown_links shown_transfers;
  lone_node node;
  no_text ignored;
  actors::job_remarks remarks{here};
  actors::job_text text{here, ignored};
  actors::job_stalls part{here, node, remarks, text};
};

struct stalled_shoal {
  explicit stalled_shoal(std::size_t members, std::size_t sealers = 0) {
    for (std::size_t n = 0; n < members; ++n)
      all.push_back(std::make_unique<stall_peer>(
        wire, n, members, sealers > 0 ? sealers : members));
  }
  stall_peer& operator[](std::size_t n) { return *all.at(n); }

  void run(nanoseconds span) {
    for (const nanoseconds end = now + span; now < end;) {
      now += tick_every;
      for (auto& p : all)
        p->time = now;
      for (std::size_t n = 0; n < all.size(); ++n)
        if (!dead.contains(n))
          all[n]->part.tick(false);
      deliver();
    }
  }
  void deliver() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t n = 0; n < all.size(); ++n) {
        if (dead.contains(n))
          continue;
        all[n]->settle();
        for (const auto& [to, m] : std::exchange(all[n]->sent, {})) {
          const auto* report = std::get_if<core::stall_report>(&m);
          const std::size_t other = to[0] - 1u;
          if (!report || dead.contains(other))
            continue;
          asked += report->asks;
          all[other]->part.received(peer(n), *report, false);
          more = true;
        }
      }
    }
  }
  /// Whom peer `n` wants to be expelled.
  peers blamed_by(std::size_t n) {
    const auto& all_of = (*this)[n].node.expelled;
    return {all_of.begin(), all_of.end()};
  }

  network wire;
  std::vector<std::unique_ptr<stall_peer>> all;
  std::set<std::size_t> dead; ///< neither tick nor hear
  nanoseconds now = second;
  int asked = 0; ///< questions that have arrived
};

/// Enough for every peer to stand still for its budget, and to give up waiting
/// for an answer; less than another budget.
constexpr nanoseconds one_verdict =
  core::stall_watch::budget_min + core::stall_watch::answer_max + second;

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_asked_while_something_moves) {
  stalled_shoal s(2);
  for (int i = 0; i < 20; ++i) {
    ++s[0].here.world->finished; // the device has finished a piece
    ++s[1].here.world->finished;
    s.run(second);
  }
  BOOST_TEST(s.asked == 0);
  BOOST_TEST(s.blamed_by(0).empty());
}

BOOST_AUTO_TEST_CASE(a_peer_that_does_not_answer_is_blamed_and_no_other) {
  stalled_shoal s(3);
  s.dead = {2};
  s.run(one_verdict);
  for (const std::size_t n : {0u, 1u}) {
    BOOST_TEST((s.blamed_by(n) == peers{peer(2)}));
    BOOST_TEST(s[n].node.retried.empty());
    BOOST_TEST(s[n].logged("peer2 holds the job up and is expelled: it has not "
                           "answered for"));
  }
}

BOOST_AUTO_TEST_CASE(the_peer_whose_device_takes_too_long_is_blamed) {
  stalled_shoal s(3);
  s[1].shown_device.shown = {second, own_job};
  s.run(one_verdict);
  BOOST_TEST(s.asked > 0);
  for (const std::size_t n : {0u, 1u, 2u}) { // itself, too
    BOOST_TEST((s.blamed_by(n) == peers{peer(1)}));
    BOOST_TEST(s[n].node.retried.empty());
    BOOST_TEST(s[n].logged("peer1 holds the job up and is expelled: one piece "
                           "of its work takes"));
  }
}

/// That job watches its work. This one waits, however long it takes.
BOOST_AUTO_TEST_CASE(a_peer_whose_device_is_held_by_another_job_is_not_blamed) {
  stalled_shoal s(3);
  s[1].shown_device.shown = {second, other_job};
  s.run(60 * second);
  BOOST_TEST(s.asked > 0);
  for (const std::size_t n : {0u, 1u, 2u}) {
    BOOST_TEST(s.blamed_by(n).empty());
    BOOST_TEST(s[n].node.retried.empty()); // no message is lost
  }
}

/// The job has no steps left, but the last checkpoint is copied there, and
/// other jobs wait for this one to watch its work.
BOOST_AUTO_TEST_CASE(a_device_that_hangs_after_the_last_step_is_found) {
  stalled_shoal s(2, 1);
  s[0].end_after_one_step();
  s.run(60 * second);
  BOOST_TEST(s[0].flights().empty());
  s[0].shown_device.shown = {s.now, other_job};
  s.run(60 * second);
  BOOST_TEST(s[0].flights().empty());
  s[0].shown_device.shown = {s.now, own_job};
  s.run(one_verdict);
  BOOST_TEST((s.blamed_by(0) == peers{peer(0)}));
}

BOOST_AUTO_TEST_CASE(if_all_wait_for_each_other_the_step_is_begun_anew) {
  stalled_shoal s(2);
  s.run(one_verdict);
  for (const std::size_t n : {0u, 1u}) {
    BOOST_TEST((s[n].node.retried == std::vector<core::epoch>(2, 1)));
    BOOST_TEST(s.blamed_by(n).empty());
    BOOST_TEST(s[n].logged("the step is begun anew: all wait for each other"));
  }
}

/// Of the transfers that are listed only those count that are being sent.
BOOST_AUTO_TEST_CASE(an_end_of_the_stuck_link_is_blamed_after_some_tries) {
  stalled_shoal s(3);
  s[0].shown_transfers.shown = {{peer(1), {}, 8, true, true},
                                {peer(2), {}, 8, true, false},
                                {peer(2), {}, 8, false, true}};
  s.run(30 * second);
  for (const std::size_t n : {0u, 1u, 2u}) {
    BOOST_TEST(s[n].node.retried.size() == core::stall_watch::retries_max);
    BOOST_TEST((s.blamed_by(n) == peers{peer(1)}));
  }
}

BOOST_AUTO_TEST_CASE(without_a_quorum_nobody_is_expelled_and_all_learn_why) {
  stalled_shoal s(3);
  s[1].shown_device.shown = {second, own_job};
  for (auto& p : s.all)
    p->node.quorum = false;
  s.run(one_verdict);
  for (const std::size_t n : {0u, 1u, 2u}) {
    BOOST_TEST(s.blamed_by(n).empty());
    BOOST_TEST(s[n].logged("peer1 holds the job up; without a quorum it cannot "
                           "be expelled"));
  }
}

BOOST_AUTO_TEST_CASE(a_lone_peer_is_slow_and_stays) {
  stalled_shoal s(1);
  s[0].shown_device.shown = {second, own_job};
  s.run(one_verdict);
  BOOST_TEST(s.blamed_by(0).empty());
  BOOST_TEST(s[0].logged("peer0 is slow: one piece of its work takes"));
}

/// A member that does not seal is not asked: it writes its record when it hears
/// the verdict.
BOOST_AUTO_TEST_CASE(every_member_writes_one_flight_record_of_a_stall) {
  stalled_shoal s(4, 3);
  s[1].shown_device.shown = {second, own_job};
  s[0].shown_transfers.shown = {{peer(1), {}, 8, true, true}};
  s.run(one_verdict);
  for (std::size_t n = 0; n < 4; ++n) {
    const auto flights = s[n].flights();
    BOOST_TEST_REQUIRE(flights.size() == 1u, "peer " << n);
    BOOST_TEST((flights[0].find("told by") != std::string::npos) == (n == 3));
    BOOST_TEST((flights[0].find("to peer1: ") != std::string::npos)
               == (n == 0));
    BOOST_TEST_REQUIRE(s[n].node.said.size() == 1u);
    BOOST_TEST(s[n].node.said[0].find("flight record: ") != std::string::npos);
  }
}

/// What it alone holds, others would wait for for ever.
BOOST_AUTO_TEST_CASE(a_peer_whose_own_disk_hangs_ends_and_the_others_do_not) {
  stalled_shoal s(3);
  s[1].shown_disk.shown = {second, 0};
  s[1].here.disk = &s[1].shown_disk;
  s.run(core::stall_watch::loading_min - 2 * second);
  BOOST_TEST(s[1].node.ended.empty());
  s.run(4 * second);
  BOOST_TEST_REQUIRE(s[1].node.ended.size() == 1u);
  BOOST_TEST(s[1].node.ended[0].starts_with("its disk has been at one piece"));
  for (const std::size_t n : {0u, 2u})
    BOOST_TEST(s[n].node.ended.empty());
}

BOOST_AUTO_TEST_CASE(
  inputs_of_the_core_are_in_the_flight_record_but_for_ticks) {
  stalled_shoal s(1);
  s[0].part.record(event::tick{});
  s[0].part.record(event::received{peer(3), core::vote{}});
  s[0].part.record(event::drain{});
  const auto events = s[0].node.flight().events();
  BOOST_TEST_REQUIRE(events.size() == 2u);
  BOOST_TEST(events[0].what == std::string("vote received"));
  BOOST_TEST(events[0].job == own_job);
  BOOST_TEST(events[0].peer[0] == peer(3)[0]);
  BOOST_TEST(events[1].what == std::string("drain"));
}

BOOST_AUTO_TEST_SUITE_END()
