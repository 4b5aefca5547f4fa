// tests/runtime/node/node_wiring_test.cpp -- which part of a node gets which
// event, and in which order. The actors run under CAF's test coordinator.
#include "runtime/node/node_wiring.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/store/exchange.hpp"
#include "tests/runtime/node/lone_ports.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <functional>

namespace shoal::tests {
BOOST_AUTO_TEST_SUITE(node_wirings)

namespace {

namespace cl = core::cluster;
using core::peer_id;

peer_id peer(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  return id;
}

/// Records its requests.
class fake_exchange final : public runtime::blob_exchange {
public:
  void use_links(runtime::blob_links&) override {}
  void has(const core::blob_digest&, core::job_id, const peer_id&,
           std::function<void(bool)> done) override {
    done(false);
  }
  void fetch(const core::blob_digest&, std::optional<std::uint64_t>,
             std::vector<peer_id> from, callback done) override {
    holders.push_back(std::move(from));
    done({});
  }
  void request_received(const peer_id&, const runtime::blob_request&) override {
    ++requests;
  }
  void chunk_received(const peer_id&, runtime::blob_chunk) override {
    ++chunks;
  }
  void peer_down(const peer_id& p) override { gone.push_back(p); }
  std::uint64_t moved_bytes() const override { return 4711; }
  void tick(core::nanoseconds) override {}
  void close() override {}
  void list_queues(std::function<void(queues)> then) override { then({}); }

  std::vector<std::vector<peer_id>> holders;
  int requests = 0;
  int chunks = 0;
  std::vector<peer_id> gone;
};

/// What a role's actor has heard.
struct heard {
  std::vector<core::epoch> views;
  std::vector<core::epoch> shown; ///< in view() meanwhile
  std::vector<peer_id> jobs;      ///< the sender of a job's message
  std::vector<peer_id> serving;   ///< the same, about a served model
  std::vector<std::size_t> bytes; ///< of messages to the role
  int stopping = 0;
};

caf::behavior
listen(caf::event_based_actor*, runtime::context* world, heard* out) {
  return {
    [=](const runtime::view_changed& m) {
      out->views.push_back(m.view->number);
      out->shown.push_back(world->view() ? world->view()->number : 0);
    },
    [=](const runtime::job_message_in& m) { out->jobs.push_back(m.from); },
    [=](const runtime::serve_message_in& m) { out->serving.push_back(m.from); },
    [=](const runtime::role_message_in& m) {
      out->bytes.push_back(m.bytes->size());
    },
    [=](const runtime::node_stopping&) { ++out->stopping; },
  };
}

/// Lets a test look in when members are set and a view is adopted.
class watched_ports final : public lone_ports {
public:
  void set_members(std::set<peer_id> now) override {
    lone_ports::set_members(std::move(now));
    if (on_members)
      on_members();
  }
  void
  adopting(const core::view* before,
           const std::shared_ptr<const core::view>& now, bool member) override {
    steps.push_back("adopting " + std::to_string(now->number) + " after "
                    + std::to_string(before ? before->number : 0)
                    + (member ? "" : ", outside"));
    if (on_adopting)
      on_adopting();
  }
  void adopted(const core::view& now, bool) override {
    steps.push_back("adopted " + std::to_string(now.number));
  }

  runtime::training_operations& operations(const core::island_id&) override {
    return *trains_by;
  }

  runtime::training_operations* trains_by = &runtime::plain_operations();
  std::function<void()> on_members;
  std::function<void()> on_adopting;
  std::vector<std::string> steps;
};

const peer_id self = peer(1);

struct world {
  world() {
    config.set("scheduler.policy", caf::atom("testing"));
    config.set("middleman.attach-utility-actors", true);
    system = std::make_unique<caf::actor_system>(config);
    scheduler =
      dynamic_cast<caf::scheduler::test_coordinator*>(&system->scheduler());
    BOOST_REQUIRE(scheduler);
    for (const char* role : {"supervisor", "gateway", "mine"})
      roles[role] = [this, role](caf::actor_system& s, runtime::context& c) {
        if (on_make)
          on_make();
        kept.push_back(s.spawn(listen, &c, &of[role]));
        return kept.back();
      };
    running_before = system->registry().running();
    runtime::node_parts p;
    p.self = self;
    p.system = system.get();
    p.exchange = &exchange;
    p.roles = &roles;
    node = std::make_unique<runtime::node_wiring>(p, ports, ports);
  }
  ~world() {
    node->end_actors();
    run();
    kept.clear();
    system.reset();
  }
  void run() { scheduler->run(); }

  /// A view of these peers is decided.
  cl::new_view view_of(const std::vector<std::uint8_t>& peers) {
    cl::new_view v;
    v.current.number = ++number;
    for (const std::uint8_t n : peers) {
      core::member m;
      m.id.peer = peer(n);
      v.current.members.push_back(m);
    }
    v.member = true;
    return v;
  }
  void adopt(const std::vector<std::uint8_t>& peers) {
    node->adopt(view_of(peers));
    run();
  }
  template <class Event>
  std::size_t count() const {
    std::size_t n = 0;
    for (const cl::event& e : ports.told)
      n += std::holds_alternative<Event>(e);
    return n;
  }

  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  caf::scheduler::test_coordinator* scheduler = nullptr;
  std::size_t running_before = 0;  ///< actors of the system itself
  std::map<std::string, heard> of; ///< by role
  /// Actors of roles: held, they live on until they are told to end.
  std::vector<caf::actor> kept;
  std::function<void()> on_make;
  runtime::role_table roles;
  fake_exchange exchange;
  watched_ports ports;
  std::unique_ptr<runtime::node_wiring> node;
  core::epoch number = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_first_view_starts_the_actors_of_roles) {
  world w;
  BOOST_TEST(!w.node->find("mine"));
  w.adopt({1});
  BOOST_TEST(bool(w.node->find("mine")));
  const auto first = w.node->find("mine");
  w.adopt({1, 2});
  BOOST_TEST((w.node->find("mine") == first));
  BOOST_TEST(w.of["mine"].views.size() == 2u);
  BOOST_TEST(w.of["supervisor"].views.size() == 2u);
}

// A revoked node ends while it adopts the view that says so, its first one.
BOOST_AUTO_TEST_CASE(a_node_that_ends_in_its_first_view_makes_no_actors) {
  world w;
  w.ports.on_adopting = [&] { w.node->end_actors(); };
  w.adopt({1});
  BOOST_TEST(!w.node->find("mine"));
  BOOST_TEST(w.kept.empty());
}

BOOST_AUTO_TEST_CASE(actors_that_are_made_while_the_node_ends_end) {
  world w;
  w.on_make = [&] { w.node->end_actors(); };
  w.adopt({1});
  BOOST_TEST(!w.node->find("mine"));
  BOOST_TEST(w.kept.size() == 3u); // the others, too, as they were begun
  BOOST_TEST(w.system->registry().running() == w.running_before);
}

BOOST_AUTO_TEST_CASE(actors_end_with_the_node) {
  world w;
  w.adopt({1});
  w.node->end_actors();
  w.run();
  BOOST_TEST(w.system->registry().running() == w.running_before);
}

BOOST_AUTO_TEST_CASE(actors_find_the_view_that_they_are_told_of) { // W-1
  world w;
  w.adopt({1});
  w.adopt({1, 2});
  BOOST_TEST(w.of["mine"].shown == w.of["mine"].views,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_members_messages_pass_after_actors_know_it) { // W-2
  world w;
  core::epoch known = 0;
  w.ports.on_members = [&] {
    w.run();
    known = w.of["mine"].views.empty() ? 0 : w.of["mine"].views.back();
  };
  w.node->adopt(w.view_of({1, 2}));
  BOOST_TEST(known == 1u);
  BOOST_TEST((w.ports.members == std::set<peer_id>{peer(1), peer(2)}));
}

BOOST_AUTO_TEST_CASE(the_node_hears_of_a_view_before_and_after_actors) {
  world w;
  w.adopt({1});
  core::epoch shown = 0;
  w.ports.on_adopting = [&] { shown = w.node->view()->number; };
  auto v = w.view_of({1, 2});
  v.member = false;
  w.node->adopt(v);
  BOOST_TEST(shown == 1u);
  BOOST_TEST(
    w.ports.steps
      == (std::vector<std::string>{"adopting 1 after 0", "adopted 1",
                                   "adopting 2 after 1, outside", "adopted 2"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(actors_do_not_see_a_view_of_a_former_process) {
  world w;
  w.adopt({1});
  auto v = w.view_of({1, 2}); // it names this peer, but not this process
  v.member = false;
  w.node->adopt(v);
  w.run();
  BOOST_TEST(w.node->view()->number == 2u);
  BOOST_TEST(w.of["mine"].views.size() == 1u);
  v = w.view_of({2}); // whose actors have lost their work
  v.member = false;
  w.node->adopt(v);
  w.run();
  BOOST_TEST(w.of["mine"].views.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_view_comes_with_its_own_plan_and_names_it_to_links) {
  world w;
  auto v = w.view_of({1});
  v.current.members[0].device.mflops = 100000;
  v.current.members[0].device.memory_bytes = std::uint64_t{1} << 34;
  core::job_entry j;
  j.id = 7;
  j.blocks = j.microbatches = 1;
  j.block_flops = j.head_flops = 1000000;
  j.block_state_bytes = 1000;
  v.current.jobs = {j};
  const core::plan want = core::make_plan(v.current);
  BOOST_REQUIRE(want.jobs.size() == 1u);
  w.node->adopt(v);
  const auto [view, plan] = w.node->view_and_plan();
  BOOST_TEST(view->number == 1u);
  BOOST_TEST((plan->jobs == want.jobs));
  BOOST_REQUIRE(w.ports.named.size() == 1u);
  BOOST_TEST(w.ports.named[0].first
             == core::digest({want.jobs[0].job, 0}, want.jobs[0].islands[0]));
  BOOST_TEST(w.ports.named[0].second == 7u);
}

BOOST_AUTO_TEST_CASE(jobs_messages_go_to_the_supervisor) {
  world w;
  w.node->take(peer(2), core::job_message{}); // no peer is there yet
  w.adopt({1, 2});
  w.node->take(peer(2), core::job_message{});
  w.run();
  BOOST_TEST((w.of["supervisor"].jobs == std::vector<peer_id>{peer(2)}));
  BOOST_TEST(w.of["mine"].jobs.empty());
}

BOOST_AUTO_TEST_CASE(messages_about_a_served_model_go_to_who_takes_them) {
  world w;
  w.adopt({1, 2});
  w.node->take(peer(2), core::serve_message(core::serve_pass{}));
  w.node->take(peer(2), core::serve_message(core::serve_news{}));
  w.node->send(self, core::serve_message(core::pipeline_report{}));
  w.run();
  BOOST_TEST((w.of["supervisor"].serving == std::vector<peer_id>{peer(2)}));
  BOOST_TEST((w.of["gateway"].serving == std::vector<peer_id>{peer(2), self}));
  BOOST_TEST(w.of["mine"].serving.empty());
}

BOOST_AUTO_TEST_CASE(messages_of_a_node_to_itself_are_not_sent) {
  world w;
  w.adopt({1, 2});
  w.node->send(self, core::job_message{});
  w.node->send_role(self, "mine", std::vector<std::byte>(3));
  w.run();
  BOOST_TEST((w.of["supervisor"].jobs == std::vector<peer_id>{self}));
  BOOST_TEST(w.of["mine"].bytes == std::vector<std::size_t>{3},
             boost::test_tools::per_element());
  BOOST_TEST(w.ports.sent.empty());
  BOOST_TEST(w.ports.envelopes.empty());
  w.node->send(peer(2), core::job_message{});
  w.node->send_role(peer(2), "mine", std::vector<std::byte>(3));
  BOOST_TEST(w.ports.envelopes.size() == 1u);
  BOOST_TEST(w.ports.sent.size() == 1u);
}

BOOST_AUTO_TEST_CASE(bytes_for_a_role_reach_it_but_not_the_supervisor) {
  world w;
  w.adopt({1, 2});
  w.node->take(peer(2), runtime::role_message{"mine", {}});
  w.node->take(peer(2), runtime::role_message{"nobody", {}});
  w.node->take(peer(2), runtime::role_message{"supervisor", {}});
  w.run();
  BOOST_TEST(w.of["mine"].bytes.size() == 1u);
  BOOST_TEST(w.of["supervisor"].bytes.empty());
  BOOST_REQUIRE(w.ports.said.size() == 1u);
  BOOST_TEST(w.ports.said[0].find("it is ignored") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_address_that_is_bound_is_found_until_it_is_not) {
  world w;
  w.adopt({1});
  w.node->bind_role("placed", w.node->find("mine"));
  w.node->take(peer(2), runtime::role_message{"placed", {}});
  w.run();
  BOOST_TEST(w.of["mine"].bytes.size() == 1u);
  w.node->bind_role("placed", {});
  w.node->take(peer(2), runtime::role_message{"placed", {}});
  w.run();
  BOOST_TEST(w.of["mine"].bytes.size() == 1u);
}

BOOST_AUTO_TEST_CASE(connections_are_told_to_the_core_and_the_exchange) {
  world w;
  w.node->up(peer(2), 9);
  BOOST_TEST(w.count<cl::peer_up>() == 1u);
  w.node->down(peer(2));
  BOOST_TEST(w.count<cl::peer_down>() == 1u);
  BOOST_TEST((w.exchange.gone == std::vector<peer_id>{peer(2)}));
}

BOOST_AUTO_TEST_CASE(blobs_go_through_the_exchange) {
  world w;
  w.node->take(peer(2), runtime::blob_request{});
  w.node->take(peer(2), runtime::blob_chunk{});
  BOOST_TEST(w.exchange.requests == 1);
  BOOST_TEST(w.exchange.chunks == 1);
  bool done = false;
  w.node->fetch_blob({}, {peer(2), self, peer(3)},
                     [&](std::error_code) { done = true; });
  BOOST_TEST(done);
  BOOST_REQUIRE(w.exchange.holders.size() == 1u);
  BOOST_TEST((w.exchange.holders[0] == std::vector<peer_id>{peer(2), peer(3)}));
  BOOST_TEST(w.node->blob_bytes_moved() == 4711u);
}

BOOST_AUTO_TEST_CASE(the_cores_message_goes_to_each_that_it_names) {
  world w;
  w.node->send({peer(2), peer(3)}, cl::message{});
  BOOST_REQUIRE(w.ports.sent.size() == 2u);
  BOOST_TEST((w.ports.sent[0].first == peer(2)));
  BOOST_TEST((w.ports.sent[1].first == peer(3)));
  w.node->take(peer(2), cl::message{});
  BOOST_TEST(w.count<cl::received>() == 1u);
}

BOOST_AUTO_TEST_CASE(proposals_of_actors_reach_the_core) {
  world w;
  w.node->propose_end({7, 0}, core::job_state::failed, 12, 3, "why");
  w.node->propose_retry({7, 0}, 3);
  w.node->propose_arrived({7, 0}, 3);
  w.node->propose_expulsion(peer(2), 4);
  BOOST_REQUIRE(w.ports.told.size() == 4u);
  const auto& s = std::get<cl::set_job_state>(w.ports.told[0]);
  BOOST_TEST(s.id == 7u);
  BOOST_TEST((s.state == core::job_state::failed));
  BOOST_TEST(s.done_step == 12u);
  BOOST_TEST(s.since == 3u);
  BOOST_TEST(s.cause == "why");
  BOOST_TEST(std::get<cl::retry_job>(w.ports.told[1]).since == 3u);
  BOOST_TEST(std::get<cl::job_arrived>(w.ports.told[2]).since == 3u);
  BOOST_TEST(std::get<cl::expel_member>(w.ports.told[3]).number == 4u);
}

BOOST_AUTO_TEST_CASE(actors_train_by_the_operations_of_their_node) {
  world w;
  BOOST_TEST(&w.node->operations({7, 0}) == &runtime::plain_operations());
  runtime::training_operations others;
  w.ports.trains_by = &others;
  BOOST_TEST(&w.node->operations({7, 0}) == &others);
}

BOOST_AUTO_TEST_CASE(a_node_that_leaves_goes_when_its_jobs_release_it) {
  world w;
  w.ports.leaves = true;
  w.adopt({1, 2});
  w.node->stop_jobs(false);
  w.run();
  BOOST_TEST(w.of["supervisor"].stopping == 1);
  BOOST_TEST(w.count<cl::leave_now>() == 0u);
  w.node->released();
  BOOST_TEST(w.count<cl::leave_now>() == 1u);
}

BOOST_AUTO_TEST_CASE(a_node_without_jobs_goes_at_once) {
  world w; // no view yet, so no supervisor
  w.node->stop_jobs(true);
  BOOST_TEST(w.count<cl::leave_now>() == 0u); // it was not asked to leave
  w.ports.leaves = true;
  w.node->stop_jobs(true);
  BOOST_TEST(w.count<cl::leave_now>() == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_that_actors_do_has_effect_after_the_end) {
  world w;
  w.ports.leaves = true;
  w.adopt({1, 2});
  w.node->close();
  w.node->send(self, core::job_message{});
  w.node->send(peer(2), core::job_message{});
  w.node->send_role(self, "mine", {});
  w.node->send_role(peer(2), "mine", {});
  w.node->propose_retry({7, 0}, 3);
  w.node->propose_end({7, 0}, core::job_state::done, 12, 3);
  w.node->fetch_blob({}, {peer(2)}, [](std::error_code) {});
  w.node->released();
  w.run();
  BOOST_TEST(w.of["supervisor"].jobs.empty());
  BOOST_TEST(w.of["mine"].bytes.empty());
  BOOST_TEST(w.ports.sent.empty());
  BOOST_TEST(w.ports.envelopes.empty());
  BOOST_TEST(w.ports.told.empty());
  BOOST_TEST(w.exchange.holders.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
