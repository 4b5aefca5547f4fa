// tests/actors/serving_test.cpp -- the stages of a pipeline, and who watches them.
//
// Stages of a golden model compute passes; what one sends another is carried by the
// test, which may change it. Watches see what the test shows them.
#include "actors/serving/serve_drain.hpp"
#include "actors/serving/serve_stalls.hpp"
#include "actors/serving/stage_runner.hpp"
#include "runtime/context.hpp"
#include "runtime/core/view.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "tests/actors/drawn_links.hpp"
#include "tests/actors/small_device.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/actors/still_context.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <set>

BOOST_AUTO_TEST_SUITE(serving)

using namespace shoal;
using namespace shoal::test;

namespace {

constexpr core::job_id job = 7;
constexpr core::nanoseconds second = 1'000'000'000;

/// Computes at once, and may be shown to be at a piece for a while.
struct shown_device final : inline_device {
  piece_in_front front() const override { return shown; }
  piece_in_front shown;
};

/// Keeps what it is asked for.
struct serve_node final : test::still_context {
  serve_node(network& wire, std::size_t n)
    : me(peer(n)), hub_(wire, me), store_(home_.path / "blobs") {}
  const core::peer_id& self() const override { return me; }
  runtime::link_hub& links() override { return hub_; }
  runtime::device_queue& device() override { return queue; }
  runtime::device_queue& reductions() override { return queue; }
  runtime::device_queue& disk() override { return queue; }
  runtime::store& blobs() override { return store_; }
  std::filesystem::path data_dir() const override { return home_.path; }
  void send(const core::peer_id& to, core::job_message m) override {
    reports.emplace_back(to, std::get<core::stall_report>(m));
  }
  void send(const core::peer_id&, core::serve_message m) override {
    answers.push_back(std::get<core::serve_chosen>(m));
  }

  core::peer_id me;
  shown_device queue;
  std::vector<core::serve_chosen> answers;
  std::vector<std::pair<core::peer_id, core::stall_report>> reports;

private:
  hub hub_;
  folder home_;
  small_store store_;
};

std::filesystem::path golden() {
  return std::filesystem::path(std::getenv("SHOAL_GOLDEN")) / "tiny_llama3";
}

/// A golden model in stages, each on a node of its own.
struct stages {
  explicit stages(std::vector<model::unit_index> cuts) {
    const auto loaded = model::load_for_inference(golden(), {}, *device);
    BOOST_REQUIRE(loaded);
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(model::unit_index(loaded->units.size()));
    std::vector<core::peer_id> all;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s)
      all.push_back(peer(s));
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      nodes.push_back(std::make_unique<serve_node>(wire, s));
      actors::runner_config c;
      c.node = nodes.back().get();
      c.header = {job, 77, 1, 0};
      c.stage = std::uint32_t(s);
      c.stages = all;
      c.model = std::make_shared<actors::loaded_stage>();
      c.model->stage = std::make_unique<model::inference_stage>(
        std::vector(loaded->units.begin() + cuts[s],
                    loaded->units.begin() + cuts[s + 1]),
        *device);
      c.model->cache = std::make_unique<model::paged_cache>(
        *c.model->stage, 8, model::kv_type::f32);
      c.buffers = std::make_shared<actors::buffer_pool>();
      c.post = [](const std::function<void()>& run) { run(); };
      c.broken = [this](const std::string& why) { broken.push_back(why); };
      c.damaged = [this](const core::peer_id& by, std::uint64_t pass) {
        damaged.emplace_back(by, pass);
      };
      runners.push_back(std::make_shared<actors::stage_runner>(std::move(c)));
    }
  }

  /// A prompt, and the token that follows.
  void give_pass() {
    core::serve_row row;
    row.sequence = 1;
    row.tokens = {1, 5, 9, 2, 30};
    row.pages = {3};
    row.choice.emplace();
    row.choice->how.temperature = 0;
    const core::serve_pass p{{job, 77, 1, 0}, 1, {row}, {}};
    for (const auto& r : runners)
      r->take(peer(0), p);
  }

  kernels::thread_team team{1};
  std::unique_ptr<kernels::backend> device = kernels::make_cpu_backend(team);
  network wire;
  std::vector<std::unique_ptr<serve_node>> nodes;
  std::vector<std::shared_ptr<actors::stage_runner>> runners;
  std::vector<std::string> broken;
  std::vector<std::pair<core::peer_id, std::uint64_t>> damaged;
  std::mt19937 random{1};
};

core::view three_members() {
  core::view v;
  v.number = 5;
  for (std::size_t n = 0; n < 3; ++n) {
    core::member m;
    m.id = {peer(n), 1};
    m.name = std::string(1, char('a' + n));
    m.device.mflops = 100'000;
    v.members.push_back(m);
  }
  return v;
}

/// Three peers with a stage each; what they say reaches all at once.
struct watched {
  struct peer_of {
    peer_of(network& wire, std::size_t n, std::vector<std::string>& said)
      : node(wire, n), stalls(node, {job, 0}, [&said](const std::string& t) {
          said.push_back(t);
        }) {}
    serve_node node;
    actors::serve_stalls stalls;
    actors::pipeline_sight sees;
  };
  watched() {
    for (std::size_t n = 0; n < 3; ++n) {
      peers.push_back(std::make_unique<peer_of>(wire, n, said));
      auto& p = *peers.back();
      p.stalls.predict(std::make_shared<const core::view>(three_members()), {},
                       {});
      p.sees.header = {job, 77, 5, 0};
      p.sees.stages = {peer(0), peer(1), peer(2)};
      p.sees.works = true;
      p.sees.where = "pass 17, stage " + std::to_string(n + 1);
    }
  }
  void run(core::nanoseconds time) {
    for (const auto end = now + time; now < end; now += second) {
      for (auto& p : peers)
        p->stalls.tick(p->sees, now);
      for (int round = 0; round < 2; ++round) // a question, and its answer
        for (auto& p : peers)
          for (const auto& [to, r] : std::exchange(p->node.reports, {}))
            peers[to[0] - 1u]->stalls.received(p->node.me, r,
                                               peers[to[0] - 1u]->sees, now);
    }
  }
  void next_place() {
    for (auto& p : peers) {
      ++p->sees.header.digest;
      ++p->sees.header.since;
    }
  }
  bool anybody_said(const std::string& what) const {
    return std::ranges::any_of(said, [&](const std::string& s) {
      return s.find(what) != std::string::npos;
    });
  }

  network wire;
  std::vector<std::string> said;
  std::vector<std::unique_ptr<peer_of>> peers;
  core::nanoseconds now = second;
};

} // namespace

BOOST_AUTO_TEST_CASE(two_stages_choose_the_token_of_one) {
  stages one({}), two({2});
  one.give_pass();
  BOOST_REQUIRE(one.nodes[0]->answers.size() == 1u);
  two.give_pass();
  BOOST_TEST(two.nodes[1]->answers.empty());
  BOOST_REQUIRE(two.wire.size() == 1u);
  carry(two.wire, two.wire.begin()->first, two.random);
  BOOST_REQUIRE(two.nodes[1]->answers.size() == 1u);
  BOOST_TEST((two.nodes[1]->answers[0] == one.nodes[0]->answers[0]));
  BOOST_TEST(two.damaged.empty());
}

/// Whatever bit is another: the stage names the sender, and computes nothing.
BOOST_AUTO_TEST_CASE(a_changed_bit_of_hidden_states_is_found) {
  std::size_t bytes = 1;
  for (std::size_t at = 0; at < bytes; at += 37) {
    stages s({2});
    s.give_pass();
    BOOST_REQUIRE(s.wire.size() == 1u);
    auto& sent = s.wire.begin()->second.from->bytes;
    bytes = sent.size();
    sent[at] ^= std::byte(1 << (at % 8));
    carry(s.wire, s.wire.begin()->first, s.random);
    BOOST_TEST(s.nodes[1]->answers.empty());
    BOOST_REQUIRE(s.damaged.size() == 1u);
    BOOST_TEST((s.damaged[0].first == peer(0)));
    BOOST_TEST(s.damaged[0].second == 1u);
    BOOST_TEST(s.broken.empty());
  }
  BOOST_TEST(bytes > 600u);
}

BOOST_AUTO_TEST_CASE(a_digest_is_of_one_pass_to_one_stage) {
  const std::vector<std::byte> hidden(64);
  const auto sum = actors::digest_of(hidden, 7, 1, 5);
  BOOST_TEST(sum == actors::digest_of(hidden, 7, 1, 5));
  BOOST_TEST(sum != actors::digest_of(hidden, 8, 1, 5));
  BOOST_TEST(sum != actors::digest_of(hidden, 7, 2, 5));
  BOOST_TEST(sum != actors::digest_of(hidden, 7, 1, 6));
}

BOOST_AUTO_TEST_CASE(passes_that_end_are_no_stall) {
  watched w;
  for (int i = 0; i < 100; ++i) {
    w.run(8 * second);
    for (auto& p : w.peers)
      ++p->sees.moved;
  }
  BOOST_TEST(w.said.empty());
}

BOOST_AUTO_TEST_CASE(a_device_that_does_not_end_is_passed_over) {
  watched w;
  w.run(5 * second);
  w.peers[1]->node.queue.shown = {w.now, job};
  w.peers[2]->sees.waits_for = peer(1);
  w.run(20 * second);
  for (auto& p : w.peers) {
    BOOST_TEST(p->node.expelled == std::set<core::peer_id>{peer(1)});
    BOOST_TEST(p->node.retried.empty());
  }
  BOOST_TEST(w.anybody_said("stands still at c"));
  BOOST_TEST(w.anybody_said("pass 17, stage 3, waits for b"));
  BOOST_TEST(w.anybody_said("b holds the job up and is expelled"));
}

BOOST_AUTO_TEST_CASE(a_lost_message_begins_the_pipeline_anew) {
  watched w;
  w.run(5 * second);
  w.peers[1]->sees.works = false;
  w.peers[2]->sees.waits_for = peer(1);
  w.peers[0]->sees.waits_for = peer(2);
  w.run(12 * second);
  BOOST_TEST((w.peers[0]->node.retried == std::vector<core::epoch>{5}));
  BOOST_TEST(w.peers[0]->node.expelled.empty());
  BOOST_TEST(w.anybody_said("begins anew"));
  for (int i = 0; i < 2; ++i) { // again and again
    w.next_place();
    w.run(15 * second);
  }
  BOOST_TEST(w.peers[0]->node.expelled
             == std::set<core::peer_id>{peer(1)}); // that should send
}

/// Training goes on beside it, and keeps the device busy.
BOOST_AUTO_TEST_CASE(work_of_another_job_hides_no_lost_message) {
  watched w;
  w.peers[1]->sees.works = false;
  w.peers[2]->sees.waits_for = peer(1);
  for (int i = 0; i < 20; ++i) {
    for (auto& p : w.peers)
      p->node.queue.shown = {w.now, job + 1};
    w.run(second);
  }
  BOOST_TEST(w.peers[0]->node.retried.size() == 1u);
}

/// That job finds the peer, by its own budget.
BOOST_AUTO_TEST_CASE(a_hung_piece_of_another_job_is_left_to_that_job) {
  watched w;
  w.peers[1]->node.queue.shown = {w.now, job + 1};
  w.run(60 * second);
  for (auto& p : w.peers) {
    BOOST_TEST(p->node.retried.empty());
    BOOST_TEST(p->node.expelled.empty());
  }
}

BOOST_AUTO_TEST_CASE(work_that_cannot_be_stopped_ends_its_node) {
  watched w;
  w.run(5 * second);
  w.peers[1]->sees.ends = true;
  w.peers[1]->node.queue.shown = {w.now, job};
  w.run(30 * second);
  BOOST_TEST(w.peers[1]->node.ended.size() == 1u);
  BOOST_TEST(w.peers[0]->node.ended.empty());
}

BOOST_AUTO_TEST_CASE(who_sends_damaged_passes_is_expelled_in_the_end) {
  watched w;
  auto& p = *w.peers[2];
  p.stalls.damaged(peer(0), 3, 5);
  p.stalls.damaged(peer(1), 4, 5);
  p.stalls.damaged(peer(1), 16, 6);
  BOOST_TEST(p.node.expelled.empty());
  BOOST_TEST((p.node.retried == std::vector<core::epoch>{5, 5, 6}));
  p.stalls.damaged(peer(1), 17, 7);
  BOOST_TEST(p.node.retried.size() == 3u);
  BOOST_TEST(p.node.expelled == std::set<core::peer_id>{peer(1)});
  BOOST_TEST(w.anybody_said("b has sent hidden states of pass 17 that are not "
                            "those it computed, 3 times so far: it is "
                            "expelled"));
}

/// Nobody can be expelled, but nothing damaged is computed with.
BOOST_AUTO_TEST_CASE(without_a_quorum_damaged_passes_only_begin_anew) {
  watched w;
  auto& p = *w.peers[2];
  p.node.quorum = false;
  for (int i = 0; i < 10; ++i)
    p.stalls.damaged(peer(1), 17, 5);
  BOOST_TEST(p.node.expelled.empty());
  BOOST_TEST(p.node.retried.size() == 10u);
}

BOOST_AUTO_TEST_CASE(a_model_ends_after_what_it_answers) {
  using actors::serve_drain;
  using end = serve_drain::end;
  const serve_drain::sight idle{true, 3, true, true, false},
    busy{true, 3, true, true, true};
  serve_drain d;
  BOOST_TEST((d.look(idle, 1 * second) == end::none)); // it is not to end
  d.begin(10 * second, 5);
  BOOST_TEST((d.look(busy, 10 * second) == end::none));
  BOOST_TEST((d.look(idle, 11 * second) == end::island));
  BOOST_TEST((d.look(idle, 11 * second + 1) == end::none)); // proposed just now
  BOOST_TEST((d.look(busy, 40 * second) == end::job));      // late
}

BOOST_AUTO_TEST_CASE(a_model_that_another_shoal_was_to_end_goes_on) {
  using actors::serve_drain;
  using end = serve_drain::end;
  const serve_drain::sight idle{true, 3, true, true, false};
  serve_drain d;
  d.serve_in({1});
  d.begin(10 * second, 5);
  d.serve_in({1}); // its next view
  BOOST_TEST(d.begun());
  d.serve_in({2});
  BOOST_TEST(!d.begun());
  BOOST_TEST((d.look(idle, 60 * second) == end::none));
  d.begin(61 * second, 5); // this one, too, is asked
  d.serve_in({2});
  static_cast<void>(d.look(idle, 61 * second));
  BOOST_TEST((d.look(idle, 64 * second) == end::island));
}

// Its streams were cut: in a new place they come after it is ready.
BOOST_AUTO_TEST_CASE(a_model_that_moves_ends_after_its_streams_have_come) {
  using actors::serve_drain;
  using end = serve_drain::end;
  serve_drain d;
  static_cast<void>(d.look({true, 3, true, true, true}, 1 * second));
  d.begin(10 * second, 5);
  BOOST_TEST((d.look({false, 6, false, false, false}, 11 * second)
              == end::none)); // no place yet
  BOOST_TEST(
    (d.look({true, 7, true, false, false}, 12 * second) == end::none)); // loads
  BOOST_TEST((d.look({true, 7, true, true, false}, 13 * second) == end::none));
  BOOST_TEST((d.look({true, 7, true, true, true}, 14 * second) == end::none));
  BOOST_TEST(
    (d.look({true, 7, true, true, false}, 20 * second) == end::island));
  // Another peer knows of no streams, and does not speak for the pipeline.
  serve_drain other;
  other.begin(10 * second, 5);
  BOOST_TEST(
    (other.look({true, 3, false, false, false}, 15 * second) == end::none));
  // An island that has waited for room holds up nothing.
  serve_drain waits;
  waits.begin(10 * second, 5);
  BOOST_TEST(
    (waits.look({false, 4, false, false, false}, 10 * second) == end::island));
  // Nor does one that lost its place to the last other peer's leave.
  serve_drain last;
  last.begin(10 * second, 5);
  serve_drain::sight lost{false, 6, false, false, false};
  BOOST_TEST((last.look(lost, 11 * second) == end::none));
  lost.alone = true;
  BOOST_TEST((last.look(lost, 12 * second) == end::island));
}

BOOST_AUTO_TEST_SUITE_END()
