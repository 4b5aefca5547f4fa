// apps/examples/hello_actor/hello_actor.cpp -- hello.hpp as a program of its
// own, which joins a shoal of plain nodes. Usage: hello_actor [NAME]; Ctrl-C
// leaves.
#include "actors/supervisor.hpp"
#include "apps/examples/hello_actor/hello.hpp"
#include "apps/terminal/signals.hpp"
#include "runtime/node/node.hpp"

#include <iostream>

using namespace shoal;

struct lines : runtime::node_observer {
  void say(const std::string& line) override { std::cerr << line << "\n"; }
};

int main(int argc, char** argv) try {
  apps::signals interrupts; // before any thread
  runtime::role_table roles;
  actors::add_builtin(roles);
  hello_actor::add(roles);
  runtime::node_config config;
  config.name = argc > 1 ? argv[1] : "hello";
  lines said;
  config.observer = &said;
  runtime::node node(config, roles);
  interrupts.on_first([&node] { node.leave(std::chrono::seconds(10)); });
  node.wait_stopped(std::chrono::hours(9999));
} catch (const runtime::setup_error& e) {
  return std::cerr << "hello_actor: " << e.what() << "\n", 1;
}
