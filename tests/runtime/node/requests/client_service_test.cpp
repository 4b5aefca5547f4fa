// tests/runtime/node/requests/client_service_test.cpp -- where the requests of
// clients go, and what answers them.
#include "runtime/context.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/node/requests/client_service.hpp"
#include "runtime/observe/recent_lines.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/store/store.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/node/requests/asked_host.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/all.hpp>

namespace shoal::tests {

namespace service_of_clients {

namespace {

namespace cl = core::cluster;
using runtime::client_request;
using runtime::job_event;
using runtime::job_event_kind;
using runtime::reply_code;

class node_of_tests final : public asked_host<runtime::client_host> {
public:
  std::string status() const override { return "status"; }
  std::string describe(core::job_id) const override { return "job"; }
  void leave(bool drain) override { left.push_back(drain); }
  std::string waits() const override { return waiting; }
  caf::actor supervisor() const override { return jobs; }
  std::error_code
  send(const core::peer_id& to, runtime::envelope message) override {
    if (!is_connected)
      return runtime::errc::no_node;
    sent.emplace_back(to, std::move(message));
    return {};
  }
  std::vector<core::peer_id> peers() const override {
    return {numbered_peer(2)};
  }

  std::vector<bool> left;
  std::string waiting; ///< for a quorum
  caf::actor jobs;
  bool is_connected = true;
  std::vector<std::pair<core::peer_id, runtime::envelope>> sent;
};

/// Node 1 of a shoal, and all that its service is made of.
struct fixture {
  test::folder home;
  std::unique_ptr<runtime::store> blobs = runtime::store::open(home.path);
  std::unique_ptr<runtime::job_journal> journal = runtime::open_job_journal({});
  runtime::recent_lines recent;
  runtime::known_nodes nodes{"shoal", 0};
  runtime::waiting_requests requests;
  node_of_tests node;
  runtime::client_service service{{numbered_peer(1), blobs.get(), journal.get(),
                                   nullptr, &recent, &nodes, &requests,
                                   nullptr},
                                  node};
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor supervisor{system};

  void adopt(const core::view& v) {
    const auto before = node.now;
    node.now = std::make_shared<core::view>(v);
    nodes.adopted(before.get(), node.now, 0);
    service.adopting(v);
    service.adopted();
  }
  std::string why(std::uint64_t token) const {
    const auto found = node.answers.find(token);
    return found == node.answers.end() ? "not answered" : found->second.why;
  }
};

core::job_entry small_job() {
  core::job_entry job;
  job.name = "small";
  job.run_json = "{}";
  job.blocks = 2;
  job.microbatches = 2;
  job.block_flops = 1000;
  job.block_state_bytes = 1000;
  return job;
}

core::view with_job(core::job_id id, core::job_state state) {
  core::view v = two_members();
  v.jobs.push_back(small_job());
  v.jobs[0].id = id;
  v.jobs[0].state = state;
  return v;
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

} // namespace service_of_clients

BOOST_FIXTURE_TEST_SUITE(service_of_clients, service_of_clients::fixture)

BOOST_AUTO_TEST_CASE(a_job_is_submitted_by_this_node_under_a_new_id) {
  adopt(two_members());
  core::job_entry job = small_job();
  job.submitter = numbered_peer(9);
  job.state = core::job_state::failed;
  job.user = "a\nb";
  service.submit(1, job);
  const core::job_entry asked = node.last<cl::submit_job>().job;
  BOOST_TEST((asked.submitter == numbered_peer(1)));
  BOOST_TEST((asked.state == core::job_state::running));
  BOOST_TEST(asked.user == "a b");
  BOOST_TEST(asked.id != 0);
  BOOST_TEST(why(1) == "not answered");
  core::view v = two_members();
  v.jobs = {asked};
  adopt(v);
  BOOST_TEST(why(1) == "");
  BOOST_TEST(node.answers[1].job == asked.id);
}

BOOST_AUTO_TEST_CASE(a_job_that_cannot_run_is_refused) {
  adopt(two_members());
  core::job_entry job = small_job();
  job.microbatches = 0;
  service.submit(1, job);
  BOOST_TEST(says(why(1), "one microbatch"));
  job = small_job();
  job.data.fill(3);
  service.submit(2, job);
  BOOST_TEST(says(why(2), "upload it first"));
  BOOST_TEST(node.told.empty());
  service.submit(3, small_job());
  service.rejected({"too many jobs", node.last<cl::submit_job>().job.id});
  BOOST_TEST(why(3) == "too many jobs");
  service.rejected({"for nobody here", 4711});
  BOOST_TEST_REQUIRE(node.said.size() == 1);
  BOOST_TEST(says(node.said[0], "for nobody here"));
}

BOOST_AUTO_TEST_CASE(
  a_job_that_comes_too_early_is_submitted_at_the_first_view) {
  service.submit(1, small_job());
  BOOST_TEST(node.told.empty());
  BOOST_TEST(why(1) == "not answered");
  adopt(two_members());
  BOOST_TEST_REQUIRE(node.told.size() == 1);
  BOOST_TEST(node.last<cl::submit_job>().job.name == "small");
}

BOOST_AUTO_TEST_CASE(
  a_job_whose_client_gave_up_is_cancelled_in_its_first_view) {
  adopt(two_members());
  node.waiting = "no quorum for view 1";
  service.submit(1, small_job());
  core::view v = two_members();
  v.jobs = {node.last<cl::submit_job>().job};
  const std::string told = service.given_up(1).value();
  BOOST_TEST(says(told, "no quorum for view 1"));
  BOOST_TEST(says(told, "withdrawn"));
  BOOST_TEST(node.last<cl::withdraw_job>().job == v.jobs[0].id);
  adopt(v);
  BOOST_TEST(node.last<cl::set_job_state>().id == v.jobs[0].id);
  BOOST_TEST(
    (node.last<cl::set_job_state>().state == core::job_state::cancelled));
  BOOST_TEST(why(1) == "not answered");
}

// It stayed valid, and nobody had its token.
BOOST_AUTO_TEST_CASE(an_invite_whose_client_gave_up_is_used_up_by_this_node) {
  adopt(two_members());
  node.waiting = "no quorum for view 1";
  runtime::waiting_requests::wanted_view made;
  made.tag = 4711;
  made.reached = [](const core::view&, runtime::outcome&) { return false; };
  made.invite.emplace().fill(7);
  BOOST_TEST_REQUIRE(requests.want(1, made));
  BOOST_TEST(says(service.given_up(1).value(), "The invite is withdrawn"));
  BOOST_TEST(!service.given_up(1)); // nothing waits
  BOOST_TEST((node.last<cl::withdraw_invite>().token == *made.invite));
  adopt(two_members());
  BOOST_TEST((node.last<cl::withdraw_invite>().token == *made.invite));
  core::view v = two_members();
  v.invites = {{*made.invite, 100, {}}};
  adopt(v);
  BOOST_TEST((node.last<cl::redeem_invite>().token == *made.invite));
  BOOST_TEST((node.last<cl::redeem_invite>().peer == numbered_peer(1)));
  adopt(v);
  BOOST_TEST(node.told.size() == 2); // once
}

BOOST_AUTO_TEST_CASE(only_a_job_that_has_ended_is_removed) {
  service.remove_job(1, 7);
  BOOST_TEST(why(1) == "no such job");
  adopt(with_job(7, core::job_state::running));
  service.remove_job(2, 7);
  BOOST_TEST(says(why(2), "has not ended"));
  adopt(with_job(7, core::job_state::done));
  service.remove_job(3, 7);
  BOOST_TEST(node.last<cl::remove_job>().id == 7);
  BOOST_TEST(why(3) == "not answered");
  adopt(two_members());
  BOOST_TEST(why(3) == "");
}

BOOST_AUTO_TEST_CASE(recovery_is_answered_by_another_shoal) {
  adopt(two_members());
  service.recover(1);
  BOOST_TEST(std::holds_alternative<cl::recover_force>(node.told.back()));
  adopt(two_members());
  BOOST_TEST(why(1) == "not answered");
  core::view v = two_members();
  v.shoal[0] = 2;
  adopt(v);
  BOOST_TEST(why(1) == "");
}

BOOST_AUTO_TEST_CASE(a_job_is_drained_by_the_view_and_the_supervisor) {
  BOOST_TEST((service.stop_job(7, true).code == reply_code::refused));
  BOOST_TEST((service.wait_no_longer(7).code == reply_code::refused));
  adopt(two_members());
  BOOST_TEST((service.stop_job(7, true).code == reply_code::not_found));
  BOOST_TEST(service.stop_job(7, true).why == "no such job");
  adopt(with_job(7, core::job_state::running));
  node.jobs = caf::actor_cast<caf::actor>(supervisor);
  BOOST_TEST(service.stop_job(7, true).why == "");
  core::job_id drained = 0;
  supervisor->receive([&](const runtime::drain_job& m) { drained = m.job; });
  BOOST_TEST(drained == 7);
  BOOST_TEST(node.last<cl::drain_job>().id == 7);
  node.jobs = nullptr; // nobody runs jobs here, but others do
  BOOST_TEST(service.stop_job(7, true).why == "");
  BOOST_TEST(node.told.size() == 2);
}

BOOST_AUTO_TEST_CASE(a_job_is_stopped_at_once_at_its_newest_step) {
  adopt(with_job(7, core::job_state::running));
  for (const std::uint64_t step : {1, 2}) {
    job_event e;
    e.kind = job_event_kind::step;
    e.step = step;
    journal->add(7, e);
  }
  BOOST_TEST(service.stop_job(7, false).why == "");
  const auto& asked = node.last<cl::set_job_state>();
  BOOST_TEST(asked.id == 7);
  BOOST_TEST((asked.state == core::job_state::cancelled));
  BOOST_TEST(asked.done_step == 2);
  adopt(with_job(7, core::job_state::done));
  BOOST_TEST(service.stop_job(7, false).why == ""); // it has ended already
  BOOST_TEST(node.told.size() == 1);
}

BOOST_AUTO_TEST_CASE(a_running_job_is_told_of_a_checkpoint) {
  adopt(with_job(7, core::job_state::running));
  BOOST_TEST(service.offer({8, {}, 3}).why == "no such job runs");
  BOOST_TEST(service.offer({7, {}, 3}).why == "this node runs no jobs");
  node.jobs = caf::actor_cast<caf::actor>(supervisor);
  BOOST_TEST(service.offer({7, {}, 3}).why == "");
  std::uint64_t step = 0;
  supervisor->receive(
    [&](const runtime::checkpoint_offered& m) { step = m.step; });
  BOOST_TEST(step == 3);
  BOOST_TEST(service.wait_no_longer(7).why == "");
  core::job_id goes_on = 0;
  supervisor->receive(
    [&](const runtime::stop_waiting_job& m) { goes_on = m.job; });
  BOOST_TEST(goes_on == 7);
}

BOOST_AUTO_TEST_CASE(the_supervisor_learns_what_clients_leave_behind) {
  const std::vector blobs{core::blob_digest{4}};
  service.left_behind(blobs); // this node runs no jobs
  node.jobs = caf::actor_cast<caf::actor>(supervisor);
  service.left_behind(blobs);
  std::vector<core::blob_digest> left;
  supervisor->receive(
    [&](const runtime::blobs_left_behind& m) { left = m.blobs; });
  BOOST_TEST((left == blobs));
}

BOOST_AUTO_TEST_CASE(a_word_names_a_member) {
  BOOST_TEST(says(service.find("bert").why, "no view yet"));
  adopt(two_members());
  const runtime::meant_peer bert = service.find("bert");
  BOOST_TEST(bert.why == "");
  BOOST_TEST((bert.peer == numbered_peer(2)));
  BOOST_TEST(!bert.self);
  BOOST_TEST(service.find("anna").self);
  BOOST_TEST(service.find("carl").why != "");
}

BOOST_AUTO_TEST_CASE(a_request_for_another_peer_is_handed_on_and_answered) {
  adopt(two_members());
  service.hand_on(5, numbered_peer(2), {1, runtime::ask_status{}, "bert"});
  BOOST_TEST_REQUIRE(node.sent.size() == 1);
  const auto& asked = std::get<client_request>(node.sent[0].second);
  BOOST_TEST((node.sent[0].first == numbered_peer(2)));
  BOOST_TEST(asked.number == 5);
  BOOST_TEST(asked.peer == ""); // it answers for itself
  runtime::client_reply reply;
  reply.number = 5;
  reply.text = "its status";
  service.take(numbered_peer(3), runtime::client_reply(reply)); // was not asked
  BOOST_TEST(why(5) == "not answered");
  service.take(numbered_peer(2), runtime::client_reply(reply));
  BOOST_TEST(why(5) == "");
  BOOST_TEST(node.answers[5].text == "its status");
  service.hand_on(7, numbered_peer(2), {1, runtime::ask_events{4, 0}, "bert"});
  reply = {};
  reply.number = 7;
  reply.value = 9;
  reply.events.resize(3);
  reply.ended = true;
  service.take(numbered_peer(2), std::move(reply));
  BOOST_TEST(why(7) == "");
  BOOST_TEST(node.answers[7].events.size() == 3u);
  BOOST_TEST(node.answers[7].ended);
  service.hand_on(6, numbered_peer(2), {1, runtime::ask_status{}, "bert"});
  reply = {};
  reply.number = 6;
  reply.code = runtime::reply_code::refused;
  service.take(numbered_peer(2), std::move(reply));
  BOOST_TEST(why(6) == "the peer gives no reason");
}

BOOST_AUTO_TEST_CASE(a_peer_without_a_connection_is_said_to_be_away) {
  adopt(two_members());
  node.is_connected = false;
  service.hand_on(5, numbered_peer(2), {1, runtime::ask_status{}, "bert"});
  BOOST_TEST(says(why(5), "not reachable"));
  runtime::client_reply late;
  late.number = 5;
  service.take(numbered_peer(2), std::move(late));
  BOOST_TEST(says(why(5), "not reachable"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
