// tests/runtime/control/control_test.cpp -- the requests of commands.
#include "runtime/control/client_link.hpp"
#include "runtime/control/client_requests.hpp"
#include "runtime/control/frames.hpp"
#include "runtime/control/unix_socket.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/node/status/status.hpp"
#include "runtime/wire/client_messages.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/control/asked_node.hpp"
#include "tests/runtime/node/swarm.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(control_requests)

using namespace std::chrono_literals;
using nlohmann::json;
using tests::swarm;

static core::job_entry small_job() {
  core::job_entry job;
  job.name = "small";
  job.run_json = "{}";
  job.blocks = 2;
  job.microbatches = 2;
  job.block_flops = 1000;
  job.block_state_bytes = 1000;
  return job;
}

namespace {

/// Does something at each event; stops after some.
class watcher final : public follow_handler {
public:
  explicit watcher(std::function<void(const job_event&)> run)
    : run_(std::move(run)) {}
  int stop_after = 100; ///< events
  int moves = 0;

  bool on(const job_event& event) override {
    --stop_after;
    run_(event);
    return true;
  }
  bool stops() override { return stop_after <= 0; }
  void moved() override { ++moves; }
  void up_to_date() override { old_events.push_back(100 - stop_after); }
  std::vector<int> old_events; ///< how many there were

private:
  std::function<void(const job_event&)> run_;
};

/// A journal in which a job ends just after its events have been read.
class ends_late final : public job_journal {
public:
  explicit ends_late(job_journal& below) : below_(below) {}

  void add(core::job_id job, const job_event& e) override {
    below_.add(job, e);
  }
  std::vector<job_event> read(core::job_id job, std::uint64_t from,
                              std::uint64_t& next) const override {
    auto out = below_.read(job, from, next);
    job_event done;
    done.kind = job_event_kind::done;
    if (!below_.ended(job))
      below_.add(job, done);
    return out;
  }
  std::vector<job_event> read_all(core::job_id job) const override {
    return below_.read_all(job);
  }
  bool wait(core::job_id job, std::uint64_t from,
            std::chrono::milliseconds timeout) const override {
    return below_.wait(job, from, timeout);
  }
  std::uint64_t listen(std::function<void(core::job_id)> changed) override {
    return below_.listen(std::move(changed));
  }
  void unlisten(std::uint64_t listener) override { below_.unlisten(listener); }
  bool ended(core::job_id job) const override { return below_.ended(job); }
  std::vector<core::job_id> jobs() const override { return below_.jobs(); }
  std::optional<job_event> last_step(core::job_id job) const override {
    return below_.last_step(job);
  }
  double tokens_per_s(core::job_id job) const override {
    return below_.tokens_per_s(job);
  }
  std::optional<job_event> last_checkpoint(core::job_id job) const override {
    return below_.last_checkpoint(job);
  }
  std::optional<job_event> awaited(core::job_id job) const override {
    return below_.awaited(job);
  }
  std::uint64_t next(core::job_id job) const override {
    return below_.next(job);
  }
  void retry() override { below_.retry(); }

private:
  job_journal& below_;
};

} // namespace

BOOST_AUTO_TEST_CASE(status_is_json_with_the_agreed_view) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  std::string text;
  BOOST_TEST_REQUIRE(!client->status(text));
  json status = json::parse(text);
  BOOST_TEST(status["epoch"] == n.view()->number);
  BOOST_TEST(status["id"] == core::to_hex(n.view()->shoal));
  BOOST_TEST_REQUIRE(status["peers"].size() == 1);
  BOOST_TEST(status["peers"][0]["name"] == "a");
  BOOST_TEST(status["peers"][0]["state"] == "active");
  BOOST_TEST(status["jobs"].empty());
  BOOST_TEST(status["links"].is_array());
}

/// Each peer's version in the status of `n`, by name.
static std::map<std::string, std::string> versions_at(swarm& s, node& n) {
  std::map<std::string, std::string> out;
  auto client = s.client_of(n);
  std::string text;
  if (client->connect() || client->status(text))
    return out;
  const json status = json::parse(text);
  for (const json& peer : status["peers"])
    out[peer.value("name", "")] = peer.value("version", "missing");
  return out;
}

BOOST_AUTO_TEST_CASE(status_tells_which_version_each_peer_runs) {
  using names = std::map<std::string, std::string>;
  swarm s;
  auto a = s.config("a");
  a.version = "0.1.0 (26dd562cabcd)";
  auto b = s.config("b");
  b.version = "Jos\xe9\x1b[2J" + std::string(codec::version_bytes_max, 'v');
  node& first = s.start(a);
  s.start(b);
  node& third = s.start("c"); // tells none
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(3); }));
  std::string shown = "Jos\ufffd [2J";
  shown.append(codec::version_bytes_max - shown.size(), 'v');
  const names all{{"a", a.version}, {"b", shown}, {"c", ""}};
  BOOST_TEST(swarm::until([&] { return versions_at(s, first) == all; }));
  BOOST_TEST(swarm::until([&] { return versions_at(s, third) == all; }));
  // One that is away is not known to run what it once ran.
  s.nodes[1]->stop();
  BOOST_TEST(swarm::until([&] {
    const auto seen = versions_at(s, first);
    const auto at = seen.find("b");
    return !seen.empty() && (at == seen.end() || at->second.empty());
  }));
}

BOOST_AUTO_TEST_CASE(a_blob_goes_in_and_out_by_any_node) {
  swarm s;
  s.start("a");
  s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  std::vector<std::byte> bytes(3 * blob_chunk_bytes_max + 17);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 7 >> 3);
  auto client = s.client_of(*s.nodes[0]);
  BOOST_TEST_REQUIRE(!client->connect());
  core::blob_digest digest{};
  BOOST_TEST_REQUIRE(!client->put_blob(bytes, digest));
  for (auto& n : s.nodes) { // the second one fetches it from the first
    auto reader = s.client_of(*n);
    BOOST_TEST_REQUIRE(!reader->connect());
    std::vector<std::byte> back;
    auto error =
      reader->get_blob(digest, [&back](std::span<const std::byte> piece) {
        back.insert(back.end(), piece.begin(), piece.end());
        return std::error_code{};
      });
    BOOST_TEST_REQUIRE(!error, reader->text());
    BOOST_TEST(bool(back == bytes));
  }
  int asked = 0;
  const auto ended = client->get_blob(
    digest, [](std::span<const std::byte>) { return std::error_code{}; },
    [&] { return ++asked < 3; });
  BOOST_TEST((ended == std::errc::operation_canceled));
  BOOST_TEST(asked == 3); // before each piece
  core::blob_digest nobodys{1, 2, 3};
  auto error = client->get_blob(
    nobodys, [](std::span<const std::byte>) { return std::error_code{}; });
  BOOST_TEST(error == errc::not_found);
}

BOOST_AUTO_TEST_CASE(a_submitted_job_is_in_the_view_of_all) {
  swarm s;
  s.start("a");
  s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  auto client = s.client_of(*s.nodes[0]);
  BOOST_TEST_REQUIRE(!client->connect());
  core::job_id id = 0;
  BOOST_TEST_REQUIRE(!client->submit(small_job(), id), client->text());
  BOOST_TEST(swarm::until(
    [&] { return s.agree(2) && core::find_job(*s.nodes[1]->view(), id); }));
  BOOST_TEST(!client->stop_job(id, false));
  BOOST_TEST(swarm::until([&] {
    return s.agree(2)
           && core::find_job(*s.nodes[1]->view(), id)->state
                == core::job_state::cancelled;
  }));
  BOOST_TEST(client->stop_job(id + 1, false) == errc::not_found);
}

BOOST_AUTO_TEST_CASE(a_job_before_the_first_view_waits_for_it) {
  swarm s;
  node& n = s.start("a");
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  core::job_id id = 0;
  BOOST_TEST_REQUIRE(!client->submit(small_job(), id), client->text());
  BOOST_TEST(core::find_job(*n.view(), id));
}

BOOST_AUTO_TEST_CASE(a_job_that_makes_no_sense_is_refused_with_a_reason) {
  swarm s;
  node& n = s.start("a");
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  core::job_id id = 0;
  auto job = small_job();
  job.blocks = 0;
  BOOST_TEST(client->submit(job, id) == errc::refused);
  BOOST_TEST(!client->text().empty());
  job = small_job();
  job.data = {1};
  BOOST_TEST(client->submit(job, id) == errc::refused);
  BOOST_TEST(client->text().find("upload") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(events_come_in_order_and_end_with_the_job) {
  swarm s;
  node& n = s.start("a");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    job_event e;
    e.kind = job_event_kind::step;
    e.step = step;
    n.world().log().add(7, e);
  }
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  std::thread later([&n] {
    job_event e;
    e.kind = job_event_kind::done;
    e.text = "done";
    n.world().log().add(7, e);
  });
  std::vector<std::uint64_t> steps;
  watcher all([&](const job_event& e) { steps.push_back(e.step); });
  BOOST_TEST(!client->follow(7, all, {2}));
  later.join();
  BOOST_TEST(all.old_events == std::vector{2});
  BOOST_TEST(steps.size() == 4);
  BOOST_TEST(steps[0] == 1);
  BOOST_TEST(steps[2] == 3);
}

BOOST_AUTO_TEST_CASE(a_follower_moves_on_when_its_node_dies) {
  swarm s;
  s.start("a");
  s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  job_event first;
  first.kind = job_event_kind::step;
  first.step = 1;
  job_event last;
  last.kind = job_event_kind::done;
  s.nodes[0]->world().log().add(9, first);
  s.nodes[1]->world().log().add(9, first);
  auto client = s.client_of(*s.nodes[0]);
  BOOST_TEST_REQUIRE(!client->connect());
  std::thread killer;
  int count = 0;
  watcher all([&](const job_event&) {
    if (++count == 1)
      killer = std::thread([&] {
        s.nodes[0]->stop();
        s.nodes[1]->world().log().add(9, last);
      });
  });
  const auto error = client->follow(9, all);
  killer.join();
  BOOST_TEST(!error, client->text());
  BOOST_TEST(count == 2); // each event once
  BOOST_TEST(all.moves >= 1);
}

BOOST_AUTO_TEST_CASE(a_follower_ends_when_its_watcher_stops) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(1); }));
  job_event first;
  first.kind = job_event_kind::step;
  first.step = 1;
  n.world().log().add(7, first);
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  int count = 0;
  watcher one([&](const job_event&) { ++count; });
  one.stop_after = 1;
  BOOST_TEST(!client->follow(7, one, {1})); // the job has not ended
  BOOST_TEST(count == 1);
  BOOST_TEST(one.old_events.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_client_far_away_asks_over_tls) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  client_config c;
  c.addresses = {n.address()};
  client far(c);
  BOOST_TEST_REQUIRE(!far.connect(), far.text());
  std::string text;
  BOOST_TEST_REQUIRE(!far.status(text));
  BOOST_TEST(json::parse(text)["peers"].size() == 1);
  BOOST_TEST(n.view()->members.size() == 1); // a client is no peer
}

BOOST_AUTO_TEST_CASE(a_client_knows_where_else_its_shoal_is) {
  swarm s;
  node& a = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(1); }));
  auto client = s.client_of(a);
  BOOST_TEST(client->addresses().empty());
  BOOST_TEST_REQUIRE(!client->connect());
  const auto knows = [&](const node& n) {
    return std::ranges::find(client->addresses(), n.address())
           != client->addresses().end();
  };
  BOOST_TEST(knows(a));
  node& b = s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  BOOST_TEST(!knows(b));
  std::string text;
  BOOST_TEST_REQUIRE(!client->status(text));
  BOOST_TEST(knows(b));
}

BOOST_AUTO_TEST_CASE(a_node_of_another_key_is_told_from_a_silent_address) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  const auto other = transport::tls::make_shared_key();
  std::string why;
  bool refuses = false;
  BOOST_TEST(!make_tls_link(n.address(), other, 20s, why, refuses));
  BOOST_TEST(refuses, why);
  BOOST_TEST(!make_tls_link("127.0.0.1:1", other, 20s, why, refuses));
  BOOST_TEST(!refuses, why);
}

BOOST_AUTO_TEST_CASE(connecting_without_a_node_fails) {
  swarm s;
  client_config c;
  c.data_dir = s.root / "none";
  client none(c);
  BOOST_TEST(none.connect() == errc::no_node);
  BOOST_TEST(none.text().find("shoal node") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_client_over_the_limit_is_told_so) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  std::vector<unique_fd> idle;
  for (std::size_t i = 0; i < control_connections_max; ++i) {
    idle.push_back(connect_unix(control_socket(n.data_dir())));
    BOOST_TEST_REQUIRE(bool(idle.back()));
  }
  client_config c;
  c.data_dir = n.data_dir();
  client late(c);
  std::string text;
  BOOST_TEST(late.connect() == errc::refused);
  BOOST_TEST(late.text().find("control_connections_max") != std::string::npos,
             late.text());
  idle.pop_back();
  BOOST_TEST(swarm::until([&] {
    client next(c);
    return !next.connect() && !next.status(text);
  }));
}

BOOST_AUTO_TEST_CASE(a_client_has_few_requests_waiting) {
  auto journal = open_job_journal({});
  tests::asked_node node(*journal);
  client_requests d(node, [] {});
  std::size_t refused = 0;
  std::size_t answered = 0;
  auto reply = [&](const client_reply& r) {
    ++answered;
    refused += r.code == reply_code::refused
               && r.text.find("control_waiting_max") != std::string::npos;
  };
  for (std::uint64_t i = 0; i < control_waiting_max + 3; ++i)
    d.ask(1, {i, ask_events{7, 0}}, reply);
  BOOST_TEST(refused == 3);
  BOOST_TEST(answered == 3);
  d.ask(2, {1, ask_events{7, 0}}, reply); // another client may wait
  BOOST_TEST(answered == 3);
  d.forget(1);
  d.ask(1, {99, ask_events{7, 0}}, reply);
  BOOST_TEST(refused == 3);
}

BOOST_AUTO_TEST_CASE(the_end_is_reported_only_with_the_last_event) {
  const auto below = open_job_journal({});
  ends_late journal(*below);
  tests::asked_node node(journal);
  job_event step;
  step.kind = job_event_kind::step;
  step.step = 1;
  journal.add(7, step);
  client_requests d(node, [] {});
  client_reply last;
  auto reply = [&](const client_reply& r) { last = r; };
  d.ask(1, {1, ask_events{7, 0}}, reply);
  BOOST_TEST(last.events.size() == 1);
  BOOST_TEST(!last.ended);
  d.ask(1, {2, ask_events{7, last.value}}, reply);
  BOOST_TEST(last.ended);
  BOOST_TEST_REQUIRE(last.events.size() == 1);
  BOOST_TEST((last.events[0].kind == job_event_kind::done));
}

BOOST_AUTO_TEST_CASE(a_job_is_described_with_its_run_file_and_last_step) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(1); }));
  auto client = s.client_of(n);
  BOOST_TEST_REQUIRE(!client->connect());
  auto job = small_job();
  job.run_json = R"({"training":{"steps":50}})";
  job.priority = -3;
  core::job_id id = 0;
  BOOST_TEST_REQUIRE(!client->submit(job, id), client->text());
  job_event e;
  e.kind = job_event_kind::step;
  e.step = 7;
  e.loss = 2.5;
  n.world().log().add(id, e);
  std::string text;
  std::uint64_t next = 0;
  BOOST_TEST_REQUIRE(!client->job(id, text, next), client->text());
  const json about = json::parse(text);
  BOOST_TEST(next == 1);
  BOOST_TEST(about["step"] == 7);
  BOOST_TEST(about["steps"] == 50);
  BOOST_TEST(about["loss"] == 2.5);
  BOOST_TEST(about["priority"] == -3);
  BOOST_TEST(about["run"]["training"]["steps"] == 50);
  BOOST_TEST(client->job(id + 1, text, next) == errc::not_found);
}

/// A node that was away while a job ran to its end.
BOOST_AUTO_TEST_CASE(a_job_that_is_done_shows_its_last_step) {
  auto journal = open_job_journal({});
  job_event e;
  e.kind = job_event_kind::step;
  e.step = 2380;
  e.loss = 2.5;
  journal->add(7, e);
  status_input in;
  in.journal = journal.get();
  auto job = small_job();
  job.id = 7;
  BOOST_TEST(json::parse(job_json(in, job))["step"] == 2380);
  job.state = core::job_state::done;
  job.done_step = 2500;
  BOOST_TEST(json::parse(job_json(in, job))["step"] == 2500);
  job.done_step = 2000; // it was cancelled, and two of its peers went on
  BOOST_TEST(json::parse(job_json(in, job))["step"] == 2380);
}

// It showed the loss of when it went away, as if that were the last one.
BOOST_AUTO_TEST_CASE(a_loss_that_is_not_of_the_last_step_is_not_shown) {
  auto journal = open_job_journal({});
  job_event e;
  e.kind = job_event_kind::step;
  e.step = 2380;
  e.loss = 2.5;
  e.tokens_per_s = 1000;
  journal->add(7, e);
  status_input in;
  in.journal = journal.get();
  auto job = small_job();
  job.id = 7;
  const auto shown = [&](const char* key) {
    return json::parse(job_json(in, job)).contains(key);
  };
  BOOST_TEST(shown("loss")); // of a job that runs, as far as is known
  for (const auto state : {core::job_state::done, core::job_state::cancelled,
                           core::job_state::failed}) {
    job.state = state;
    job.done_step = 2500;
    BOOST_TEST(!shown("loss"));
    BOOST_TEST(!shown("tokens_per_s"));
    job.done_step = 2380;
    BOOST_TEST(shown("loss"));
    BOOST_TEST(shown("tokens_per_s"));
  }
}

BOOST_AUTO_TEST_CASE(a_client_makes_a_node_leave) {
  swarm s;
  s.start("a");
  s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  auto client = s.client_of(*s.nodes[1]);
  BOOST_TEST_REQUIRE(!client->connect());
  BOOST_TEST(!client->leave(true), client->text());
  BOOST_TEST(s.nodes[1]->wait_stopped(20s));
  BOOST_TEST(
    swarm::until([&] { return s.nodes[0]->view()->members.size() == 1; }));
}

BOOST_AUTO_TEST_CASE(garbage_on_the_socket_ends_that_connection_only) {
  swarm s;
  node& n = s.start("a");
  unique_fd fd = connect_unix(control_socket(n.data_dir()));
  BOOST_TEST_REQUIRE(bool(fd));
  std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  BOOST_TEST(::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL)
             == static_cast<ssize_t>(garbage.size()));
  char c = 0;
  BOOST_TEST(::recv(fd.get(), &c, 1, 0) <= 0);
  auto client = s.client_of(n);
  BOOST_TEST(!client->connect());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
