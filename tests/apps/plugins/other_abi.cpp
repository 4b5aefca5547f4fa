// tests/apps/plugins/other_abi.cpp -- a plug-in for another version, one for
// other headers, or one with a name that is taken.
#include "runtime/plugin.hpp"

#include <caf/all.hpp>

using namespace shoal::runtime;

extern "C" const plugin_info* shoal_plugin() {
  static const plugin_info info = [] {
    plugin_info made;
    made.name = "other";
#if defined(OTHER_ABI)
    made.abi = plugin_abi + 41;
#elif defined(OTHER_LAYOUT)
    made.layout += 1;
#endif
    made.add = [](role_table& roles) {
      roles["supervisor"] = [](caf::actor_system&, context&) {
        return caf::actor{};
      };
    };
    return made;
  }();
  return &info;
}
