// apps/examples/hello_actor/hello_actor.cpp -- a user's own actor in a shoal.
// The role "hello" tells its machine's load to all peers of a new view, and says
// the mean of all it has heard. Usage: hello_actor [NAME]; Ctrl-C leaves.
#include "actors/supervisor.hpp"
#include "apps/signals.hpp"
#include "runtime/node.hpp"

#include <caf/all.hpp>

#include <cstring>
#include <iostream>

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
int main(int argc, char** argv) try {
  apps::signals interrupts; // before any thread
  runtime::role_table roles;
  actors::add_builtin(roles);
  roles["hello"] = [](caf::actor_system& system, runtime::context& node) {
    auto run = [](const std::shared_ptr<hello>& h) -> caf::behavior {
      return {[h](const runtime::view_changed& m) { h->on_view(*m.view); },
              [h](const runtime::role_message_in& m) { h->on_greeting(m); },
              [](const runtime::node_stopping&) {}}; // nothing to finish
    };
    return system.spawn(run, std::make_shared<hello>(hello{node}));
  };
  runtime::node_config config;
  config.name = argc > 1 ? argv[1] : "hello";
  config.observer.say = [](const std::string& s) { std::cerr << s << "\n"; };
  runtime::node node(config, roles);
  interrupts.on_first([&node] { node.leave(std::chrono::seconds(10)); });
  node.wait_stopped(std::chrono::hours(9999));
} catch (const runtime::node_error& e) {
  return std::cerr << "hello_actor: " << e.what() << "\n", 1;
}
