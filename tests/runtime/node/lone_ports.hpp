// tests/runtime/node/lone_ports.hpp -- the ports of a node that is alone.
//
// Messages go nowhere, and the cluster core does nothing: both are recorded,
// for a test to check. A test that needs more of a port overrides it.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/observe/timeline.hpp"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace shoal::tests {

class lone_ports : public runtime::node_network, public runtime::node_host {
public:
  using peer = core::peer_id;

  // runtime::node_network
  std::error_code
  send(const peer& to, std::span<const std::byte> encoded) override {
    sent.emplace_back(to, encoded.size());
    return {};
  }
  void send_when_up(const peer& to, const runtime::envelope& m) override {
    envelopes.emplace_back(to, m);
  }
  void connect(const std::string& address) override {
    dialled.push_back(address);
  }
  void drop(const peer& p) override { dropped.push_back(p); }
  void set_members(std::set<peer> now) override { members = std::move(now); }
  void name_plan(std::uint64_t plan, core::job_id job) override {
    named.emplace_back(plan, job);
  }
  runtime::link_hub& links() override { std::abort(); } // it has none
  void complain(const std::string& line) override { said.push_back(line); }

  // runtime::node_host
  void tell(core::cluster::event e) override { told.push_back(std::move(e)); }
  void hear(const peer& from, core::cluster::message&& m) override {
    tell(core::cluster::received{from, std::move(m)});
  }
  core::plan make_plan(const core::view& v) override {
    return core::make_plan(v);
  }
  void adopting(const core::view*, const std::shared_ptr<const core::view>&,
                bool) override {}
  void adopted(const core::view&, bool) override {}
  bool in_quorum() const override { return true; }
  bool release() override { return leaves; }
  void worked(const core::island_id&, core::nanoseconds) override {}
  void hung(const std::string& why) override { hangs.push_back(why); }
  void say(const std::string& line) override { said.push_back(line); }
  runtime::timeline& trace() override { return runtime::no_timeline(); }

  std::vector<std::pair<peer, std::size_t>> sent; ///< receiver, number of bytes
  std::vector<std::pair<peer, runtime::envelope>> envelopes;
  std::vector<std::string> dialled;
  std::vector<peer> dropped;
  std::set<peer> members;
  std::vector<std::pair<std::uint64_t, core::job_id>> named;
  std::vector<core::cluster::event> told;
  std::vector<std::string> said;
  std::vector<std::string> hangs; ///< of work that cannot be stopped
  bool leaves = false;            ///< the node waits for its jobs to release it
};

} // namespace shoal::tests
