// apps/examples/hello_actor/hello.hpp -- a user's own actor in a shoal.
//
// The role "hello" tells its machine's load to all peers of a new view, and
// says the mean of all it has heard. As a placed role ([[roles]] of a run
// file) it says where it was put, with which parameters.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/plugin.hpp"

#include <caf/all.hpp>

#include <cstdlib>
#include <cstring>
#include <map>

namespace hello_actor {

using namespace shoal;

struct hello {
  runtime::context& node;
  std::map<core::peer_id, double> heard = {}; // load of each peer
  void greet(const core::peer_id& to) {
    std::vector<std::byte> load(sizeof(double));
    getloadavg(reinterpret_cast<double*>(load.data()), 1);
    node.send_role(to, "hello", load);
  }
  void on_view(const core::view& v) {
    std::erase_if(heard, [&](auto& h) { return !find_member(v, h.first); });
    for (const core::member& m : v.members) // this node is one of them
      greet(m.id.peer);
  }
  void on_greeting(const runtime::role_message_in& m) {
    if (m.bytes->size() != sizeof(double))
      return; // no greeting
    if (!heard.contains(m.from))
      greet(m.from); // it may not have been ready before
    std::memcpy(&heard[m.from], m.bytes->data(), sizeof(double));
    double mean = 0;
    for (const auto& [peer, load] : heard)
      mean += load / double(heard.size());
    node.say("[hello] " + std::to_string(heard.size()) + " peers, mean load "
             + std::to_string(mean));
  }
};

/// One on each node.
inline caf::actor on_node(caf::actor_system& system, runtime::context& node) {
  auto run = [](const std::shared_ptr<hello>& h) -> caf::behavior {
    return {[h](const runtime::view_changed& m) { h->on_view(*m.view); },
            [h](const runtime::role_message_in& m) { h->on_greeting(m); },
            [](const runtime::node_stopping&) {}}; // nothing to finish
  };
  return system.spawn(run, std::make_shared<hello>(hello{node}));
}

/// Where a run file's [[roles]] says.
inline caf::actor in_job(caf::actor_system& system, runtime::context& node,
                         const runtime::placed_role& role) {
  auto run = [&node](const runtime::placed_role& role) -> caf::behavior {
    return {[&node, role](const runtime::job_place& m) {
              node.say("[hello] " + role.address + " with " + role.parameters
                       + "; the job runs at "
                       + core::to_text(*m.view, *m.place));
            },
            [](const runtime::role_message_in&) {}};
  };
  return system.spawn(run, role);
}

inline void add(runtime::role_table& roles) {
  roles["hello"] = on_node;
  roles.placed["hello"] = in_job;
}

} // namespace hello_actor
