// apps/remote/await_join.cpp -- looks at the status until there are other peers.
#include "apps/remote/await_join.hpp"

#include "apps/remote/remote.hpp"
#include "apps/remote/status_json.hpp"
#include "runtime/core/text/amounts.hpp"

#include <thread>

namespace shoal::apps {

/// Between two looks.
static constexpr std::chrono::milliseconds look_again{100};
/// A user is told after this time.
static constexpr std::chrono::seconds quiet_for{2};

model::status
await_join(runtime::client& node, const std::vector<std::string>& hosts,
           const std::function<void(const std::string&)>& say,
           const std::function<bool()>& goes_on) {
  using clock = std::chrono::steady_clock;
  const std::string where = "--join: the shoal at " + core::listed(hosts);
  const auto began = clock::now();
  bool said = false;
  for (;;) {
    const auto status = status_of(node);
    if (status && (*status)["peers"].size() > 1)
      return model::done{};
    if (!status) // it is changing shoals, say
      static_cast<void>(node.connect());
    if (!goes_on())
      return model::failure{where + " was not joined: interrupted"};
    const auto now = clock::now();
    if (now - began > join_wait)
      return model::failure{
        where + " has not taken this peer in within "
        + std::to_string(join_wait.count())
        + " s: check that a node runs there, with the same cluster key and "
          "--cluster, and with a quorum (`shoal status` there). Without "
          "--join this process is a shoal of its own"};
    if (now - began > quiet_for && !std::exchange(said, true))
      say("waiting until the shoal at " + core::listed(hosts)
          + " takes this peer in, " + std::to_string(join_wait.count())
          + " s at most (Ctrl-C: end)");
    std::this_thread::sleep_for(look_again);
  }
}

} // namespace shoal::apps
