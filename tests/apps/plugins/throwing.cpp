// tests/apps/plugins/throwing.cpp -- a role that throws once it has a companion:
// itself, in a child, or in a thread, as SHOAL_TEST_THROWS_IN says.
#include "runtime/core/view.hpp"
#include "runtime/plugin.hpp"

#include <caf/all.hpp>
#include <pthread.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

using namespace shoal::runtime;

namespace {

[[noreturn]] void fail() {
  throw std::out_of_range("no \x1b[2J such \xe9 place");
}

struct child_name {
  const char* name = "child";
};

caf::behavior child(caf::stateful_actor<child_name>*) {
  return {[](int) { fail(); }};
}

void throw_in(caf::event_based_actor* self, const std::string& where) {
  if (where == "child")
    self->send(self->spawn(child), 1);
  else if (where == "thread")
    std::thread([] {
      pthread_setname_np(pthread_self(), "thrower");
      fail();
    }).join();
  else
    fail();
}

caf::behavior throwing(caf::event_based_actor* self) {
  return {[self](const view_changed& m) {
            if (m.view->members.size() > 1)
              throw_in(self, std::getenv("SHOAL_TEST_THROWS_IN"));
          },
          [](const role_message_in&) {}, [](const node_stopping&) {}};
}

} // namespace

SHOAL_PLUGIN("throwing", [](role_table& roles) {
  roles["throwing"] = [](caf::actor_system& system, context&) {
    return system.spawn(throwing);
  };
})
