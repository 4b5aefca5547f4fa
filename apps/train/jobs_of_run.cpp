// apps/train/jobs_of_run.cpp -- finds a run's jobs in a status, and their
// checkpoints in their logs.
#include "apps/train/jobs_of_run.hpp"

#include "apps/remote/last_checkpoint.hpp"
#include "apps/remote/remote.hpp"

#include <algorithm>
#include <iostream>

namespace shoal::apps {

using runtime::job_event;

namespace {

/// A run ends with its checkpoint, which comes after its last steps and an
/// evaluation.
constexpr std::uint64_t last_events = 256;

/// The step of the newest checkpoint of a job that has ended; 0: none is known.
std::uint64_t newest_checkpoint(runtime::client& client, core::job_id job) {
  std::string about;
  std::uint64_t next = 0;
  if (client.job(job, about, next))
    return 0;
  std::uint64_t from = next > last_events ? next - last_events : 0;
  std::uint64_t step = 0;
  while (from < next) {
    std::vector<job_event> events;
    const std::uint64_t before = from;
    if (client.events(job, from, events) || from <= before)
      break;
    for (const job_event& e : events)
      if (e.kind == runtime::job_event_kind::checkpoint)
        step = std::max(step, e.step);
  }
  return step;
}

} // namespace

model::result<std::vector<std::string>>
nothing_newer(runtime::client& client, const status_json& status,
              const run_folder& folder, const node_address& at) {
  std::vector<std::string> apart;
  for (const status_json& job : status["jobs"]) {
    const auto id = job["id"].get<std::string>();
    if (std::ranges::find(folder.jobs, id) == folder.jobs.end())
      continue;
    const std::string attach =
      "`" + command_line("attach " + id, at, folder.out) + "`";
    if (job["state"] == "running")
      return model::failure{"--resume: job " + id
                            + " of this run is under way: " + attach
                            + " goes on watching it, `"
                            + command_line("cancel " + id, at) + "` ends it"};
    // Where it was cancelled through a node that had not heard of its last steps, it
    // may have a later one than that node knew.
    const auto end = job["step"].get<std::uint64_t>();
    if (end == folder.step || (end < folder.step && job["state"] == "done")
        || (end < folder.step && id != folder.jobs.back()))
      continue;
    std::uint64_t step =
      newest_checkpoint(client, std::stoull(id, nullptr, 16));
    if (const auto missed = last_elsewhere(status, id, at))
      step = std::max(step, missed->step);
    if (step > folder.step && id != folder.jobs.back())
      apart.push_back("the run in " + folder.out.string()
                      + " has gone on without the steps of job " + id
                      + ", which ended at step " + std::to_string(step) + ": `"
                      + command_line("attach " + id, at, "DIR")
                      + "` fetches them to another folder");
    else if (step > folder.step)
      return model::failure{
        "--resume: job " + id + " of this run has ended ("
        + job["state"].get<std::string>() + ") with a checkpoint of step "
        + std::to_string(step) + ", and the newest in " + folder.out.string()
        + " is of step " + std::to_string(folder.step) + ": " + attach
        + " fetches it. To train from step " + std::to_string(folder.step)
        + " all the same, take the job off the list first: `"
        + command_line("jobs --rm " + id, at) + "`"};
  }
  return apart;
}

std::optional<job_event>
last_of_others(runtime::client& client, const std::string& job,
               std::uint64_t step, const node_address& at, progress& out) {
  const auto status = status_of(client);
  if (!status)
    return std::nullopt;
  return last_elsewhere(
    *status, job, address_now(at, &client),
    [&out](const std::string& line) { out.say("notice", line); }, step);
}

bool stop_job(const runtime::client_config& at, core::job_id job, bool drain) {
  runtime::client asking(at);
  auto error = asking.connect();
  if (!error)
    error = asking.stop_job(job, drain);
  if (!error)
    return true;
  std::cerr << "shoal: " << asking.text() << "\n";
  return error == runtime::errc::refused
         || error == runtime::errc::not_found; // for example, it has ended
}

} // namespace shoal::apps
