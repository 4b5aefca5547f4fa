// tests/actors/job_peer.hpp -- what the parts of a job actor work with on one
// peer, filled in by hand.
#pragma once

#include "actors/job/parts/job_context.hpp"
#include "actors/reduction_fixture.hpp"
#include "actors/small_store.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"
#include "support/folder.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::test {

constexpr std::uint64_t plan_digest = 7;

struct event_list final : runtime::job_log {
  void add(core::job_id, const runtime::job_event& e) override {
    all.push_back(e);
  }
  std::vector<runtime::job_event>
  read(core::job_id, std::uint64_t, std::uint64_t&) const override {
    return all;
  }
  std::vector<runtime::job_event> read_all(core::job_id) const override {
    return all;
  }
  std::vector<runtime::job_event> all;
};

inline core::job_config core_config(std::size_t n) {
  core::job_config out;
  out.self = peer(n);
  out.blocks = 2;
  out.microbatches = 1;
  out.total_steps = 10;
  return out;
}

/// What one peer's parts work with: a job of two blocks.
struct job_peer : private actors::job_owner {
  job_peer(network& wire, std::size_t n)
    : core(core_config(n)), links(wire, peer(n)) {
    here.self = peer(n);
    here.world = std::make_shared<actors::job_world>();
    here.world->layout = small_layout(2, false);
    here.core = &core;
    here.links = &links;
    here.device = &device;
    here.reductions = &sums;
    here.disk = &disk;
    here.blobs = &store;
    here.log = &log;
    here.trace = &runtime::no_timeline();
    here.operations = &runtime::plain_operations();
    here.owner = this;
    here.post = [this](std::function<void()> run) { turns.push_back(run); };
  }
  void adopt(island_place place) {
    here.place = place;
    auto plan = std::make_shared<actors::sub_plan>(std::move(place));
    plan->digest = plan_digest;
    here.plan = plan;
  }
  /// A view of this many peers.
  void see(std::size_t peers) {
    auto view = std::make_shared<core::view>();
    for (std::size_t n = 0; n < peers; ++n) {
      core::member& m = view->members.emplace_back();
      m.id.peer = peer(n);
      m.name = "peer" + std::to_string(n);
    }
    here.view = view;
  }
  /// Runs one piece of what waits; false: nothing does.
  bool step() {
    for (drawn_queue* q : {&device, &sums, &disk})
      if (!q->waiting.empty()) {
        q->run_one();
        return true;
      }
    if (turns.empty())
      return false;
    const auto run = std::move(turns.front());
    turns.pop_front();
    run();
    return true;
  }
  void settle() {
    while (step()) {
    }
  }

  folder home;
  small_store store{home.path / "blobs"};
  core::job_core core;
  hub links;
  drawn_queue device, sums, disk;
  event_list log;
  std::deque<std::function<void()>> turns;
  std::vector<std::pair<core::peer_id, core::job_message>> sent;
  core::nanoseconds time = 0; ///< as the owner tells it
  actors::job_context here;

private:
  // job_owner
  void
  post_after(std::chrono::nanoseconds, std::function<void()> run) override {
    turns.push_back(std::move(run));
  }
  void send_to(const core::peer_id& to, core::job_message m) override {
    sent.emplace_back(to, std::move(m));
  }
  void say(const std::string&) override {}
  core::nanoseconds now() const override { return time; }
};

inline core::member_id member(std::size_t n) {
  core::member_id out;
  out.peer = peer(n);
  return out;
}

/// Two peers in a pipeline; peer 0 has the roles that exist once.
inline island_place two_stages() {
  island_place a;
  a.since = 1;
  a.replicas = {pipeline({{0, 1}, {1, 1}}, 0, 1)};
  a.data_source = a.evaluator = a.checkpointer = a.reporter = member(0);
  a.keepers = {member(0), member(1)};
  a.sealers = {member(0), member(1)};
  return a;
}

} // namespace shoal::test
