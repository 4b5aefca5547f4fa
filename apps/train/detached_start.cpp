// apps/train/detached_start.cpp -- waits for a job's first step.
#include "apps/train/detached_start.hpp"

#include "apps/remote/remote.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"

#include <chrono>

namespace shoal::apps {

using runtime::job_event;
using runtime::job_event_kind;
using std::chrono::steady_clock;

namespace {

/// Time for which --detach waits until a job begins: it may have to wait for
/// room.
constexpr std::chrono::seconds detach_patience{30};
/// Between two lines that say what it waits for.
constexpr std::chrono::seconds detach_quiet{5};

} // namespace

model::status
await_first_step(runtime::client& client, progress& out, core::job_id job,
                 const node_address& at, const std::function<bool()>& stops) {
  const std::string name = "job " + core::job_text(job);
  const auto until = steady_clock::now() + detach_patience;
  auto say_at = steady_clock::now() + detach_quiet;
  std::uint64_t next = 0;
  std::string waits; // why, as the job says
  while (steady_clock::now() < until) {
    std::vector<job_event> events;
    if (client.events(job, next, events))
      return model::failure{name
                            + " was submitted, but its node is lost before "
                              "others had its data: "
                            + client.text()};
    for (const job_event& e : events)
      if (e.kind == job_event_kind::step)
        return model::done{};
      else if (e.kind == job_event_kind::done && e.text != "done")
        return model::failure{
          name + (e.text == "failed" ? " has failed" : " was " + e.text)
          + " before its first step" + (e.cause.empty() ? "" : ": " + e.cause)};
      else if (e.kind == job_event_kind::done)
        return model::done{};
      else if (e.kind == job_event_kind::notice && e.waits)
        waits = "; " + e.text;
    if (stops())
      return model::done{};
    const auto now = steady_clock::now();
    if (now < say_at)
      continue;
    say_at = now + detach_quiet;
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - now);
    if (left.count() > 0)
      out.say("notice",
              name + " is with " + client.where()
                + "; waiting for its first step, up to "
                + core::count_text(std::uint64_t(left.count()), "second")
                + " more" + waits);
  }
  out.say("notice", name + " has not begun yet" + waits
                      + ". It begins by itself when it can (see `"
                      + command_line("jobs", at)
                      + "`); until then its data may be with " + client.where()
                      + " alone: keep that node running");
  return model::done{};
}

} // namespace shoal::apps
