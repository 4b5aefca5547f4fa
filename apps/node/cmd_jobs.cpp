// apps/node/cmd_jobs.cpp -- jobs, cancel, attach, recover.
#include "apps/common/commands.hpp"
#include "apps/common/report.hpp"
#include "apps/remote/found_job.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/terminal/confirm.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/train/follow.hpp"
#include "apps/train/jobs_of_run.hpp"
#include "apps/train/out_folder.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/wire/codec.hpp" // name_bytes_max

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <set>
#include <thread>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

/// Pause between checks while the shoal has to agree.
constexpr std::chrono::milliseconds look_again{100};
/// A wait that is longer is explained.
constexpr std::chrono::seconds quiet_wait{2};
/// Period of repeating a request to cancel: the node that had it may be gone.
constexpr std::chrono::seconds ask_again{5};
/// How long a job that is off the list is waited for: two shoals that meet are
/// one within a few seconds.
constexpr std::chrono::seconds listed_again_max{15};

} // namespace

/// The effects of `jobs --rm`.
static irrevocable
removal(const json& status, const std::vector<found_job>& jobs,
        const jobs_options& o) {
  irrevocable out{"jobs --rm",
                  "This takes " + core::count_text(jobs.size(), "job")
                    + " off the list, and all nodes delete the checkpoints "
                      "that they keep of "
                    + (jobs.size() == 1 ? "it:" : "them:"),
                  "shoal jobs --yes --rm"};
  bool trained = false;
  for (const json& j : status["jobs"])
    if (std::ranges::count(jobs, text_of(j, "id"), &found_job::text) > 0) {
      out.what += "\n  " + job_line(j);
      trained = trained || !serves(j);
    }
  if (trained)
    out.what += "\nA model that nobody has fetched (`"
                + command_line("attach JOB --out DIR", o.at) + "`) is lost.";
  for (const found_job& job : jobs)
    out.command += " " + job.text;
  out.command += options_text(o.at);
  return out;
}

/// Removes jobs from the list: all those named, or none.
static int remove_jobs(runtime::client& client, const jobs_options& o) {
  const auto status = status_of(client);
  if (!status)
    return fail(status.message());
  std::vector<found_job> found;
  for (const std::string& wanted : o.remove) {
    found_job job = find_job(*status, wanted);
    if (!job.wrong.empty())
      return fail(job.wrong);
    for (const json& j : (*status)["jobs"])
      if (text_of(j, "id") == job.text && text_of(j, "state") == "running")
        return fail("job " + job.text + " has not ended: `"
                    + command_line("cancel " + job.text, o.at) + "` first");
    if (std::ranges::find(found, job.id, &found_job::id) == found.end())
      found.push_back(std::move(job));
  }
  if (!o.yes) {
    const int answer = confirm(removal(*status, found, o));
    if (answer != exit_done)
      return answer;
  }
  json removed = json::array();
  say_no_quorum(client);
  for (const found_job& job : found) {
    if (client.remove_job(job.id)) {
      if (o.json && !removed.empty())
        std::cout << model::json_text(json{{"removed", removed}}) << "\n";
      return fail("job " + job.text + ": " + client.text());
    }
    removed.push_back(job.text);
    if (!o.json)
      std::cout << "job " << job.text << " is removed\n";
  }
  if (o.json)
    std::cout << model::json_text(json{{"removed", removed}}) << "\n";
  return exit_done;
}

int run_jobs(const jobs_options& o) {
  for (const std::string& wanted : o.remove)
    if (wanted.starts_with('-'))
      return fail("--rm names jobs, and '" + wanted
                    + "' is an option: give it before --rm, or after a job",
                  exit_usage);
  runtime::client client(o.remove.empty() ? client_through(o.at)
                                          : client_of(o.at));
  if (client.connect())
    return fail(client.text());
  if (!o.remove.empty())
    return remove_jobs(client, o);
  std::string text;
  if (client.status(text))
    return fail(client.text());
  const auto status = parse_status(text);
  if (!status)
    return fail("the node at " + client.where() + ": " + status.message());
  if ((*status)["epoch"].get<std::uint64_t>() == 0)
    std::cerr << "shoal: the node is starting: it does not know the jobs of "
                 "its shoal yet\n";
  if (o.json)
    std::cout << model::json_text(model::parse_json<json>(text)["jobs"])
              << "\n";
  else
    std::cout << core::shown(jobs_table(*status, unix_ms()),
                             core::line_ends::kept);
  return exit_done;
}

namespace {

/// What became of a job that was asked to end and is on no list any more.
std::string not_listed_text(const std::string& job, const node_address& at) {
  return "job " + job
         + " runs no longer: it is on no list that this node knows. It was "
           "removed from the list, or this shoal has given way to another, "
           "which may list it when this node has joined it: see `"
         + command_line("jobs", at) + "`";
}

/// How to go on with a cancelled job, which has a checkpoint. @param out  the
/// folder that has it; empty: none that is known here
std::string later_text(const std::string& job, const node_address& at,
                       const std::filesystem::path& out) {
  const std::string resume = "`shoal train "
                             + (out.empty() ? "DIR" : shell_path(out.string()))
                             + " --resume" + options_text(at) + "`";
  if (!out.empty())
    return "to go on with it later, run " + resume;
  return "to go on with it later, run `"
         + command_line("attach " + job, at, "DIR")
         + "`, which fetches its newest checkpoint (not needed where it was "
           "watched with --out DIR), then "
         + resume;
}

} // namespace

int run_cancel(const cancel_options& o) {
  signals interrupts;
  runtime::client client(client_of(o.at));
  if (client.connect())
    return fail(client.text());
  auto status = status_of(client);
  if (!status)
    return fail(status.message());
  const found_job job = find_job(*status, o.job, which::running);
  if (!job.wrong.empty())
    return fail(job.wrong);
  const std::string shoal = text_of(*status, "id");
  auto asked = std::chrono::steady_clock::time_point{};
  const auto say_at = std::chrono::steady_clock::now() + quiet_wait;
  bool said = false;
  // A shoal that dissolves lists no job; the one that it joins lists those that
  // have ended.
  auto unlisted_until = std::chrono::steady_clock::time_point{};
  for (;;) {
    std::string state, waits, name;
    bool trains = false, saved = false;
    for (const json& j : (*status)["jobs"])
      if (text_of(j, "id") == job.text) {
        state = text_of(j, "state");
        name = text_of(j, "name");
        trains = !serves(j);
        saved = j.contains("checkpoint");
        waits = j.contains("waiting") ? text_of(j, "waiting") : std::string();
      }
    const auto at = std::chrono::steady_clock::now();
    if (state.empty()
        && unlisted_until == std::chrono::steady_clock::time_point{})
      unlisted_until = at + listed_again_max;
    if (state.empty() && at >= unlisted_until) {
      std::cout << not_listed_text(job.text, o.at) << "\n";
      return exit_done;
    }
    if (!state.empty() && state != "running") {
      if (asked == std::chrono::steady_clock::time_point{})
        return fail("job " + job.text + " has ended already: " + state);
      std::cout << "job " << job.text << " (" << name << ") is " << state
                << "\n";
      if (state == "cancelled" && trains && !saved)
        std::cerr << "shoal: it has left no checkpoint to go on with\n";
      else if (state == "cancelled" && trains)
        std::cerr << "shoal: " << later_text(job.text, o.at, {}) << "\n";
      return exit_done;
    }
    // What recover --force had made of it goes on in the shoal that was joined.
    if (!state.empty() && text_of(*status, "id") != shoal)
      return fail(
        "job " + job.text
        + " was asked to end in a shoal that its node has left since; "
          "in the one that it has joined it goes on: `"
        + command_line("cancel " + job.text, o.at) + "` ends it there, too");
    const auto now = std::chrono::steady_clock::now();
    if (!state.empty() && now - asked >= ask_again) {
      if (client.stop_job(job.id, !o.now))
        return fail(client.text());
      asked = now;
    }
    if (!said && now >= say_at) {
      said = true;
      const std::string why = no_quorum_text(*status);
      std::cerr << "shoal: job " << job.text
                << " was asked to end; waiting for it"
                << (!why.empty() ? ". " + why
                    : waits.empty() || !trains
                      ? ""
                      : ". It has no step that could end, as it waits: " + waits
                          + ". `" + command_line("cancel " + job.text, o.at)
                          + " --now` ends it as of its newest checkpoint")
                << "\n";
    }
    if (interrupts.seen())
      return fail("job " + job.text + " was asked to end; not waiting for it",
                  exit_interrupted);
    std::this_thread::sleep_for(look_again);
    if (status = status_of(client); !status)
      return fail("job " + job.text + " was asked to end, but "
                  + status.message()
                  + ". Where `shoal jobs` on another node shows it neither "
                    "`ending` nor ended, ask there again");
  }
}

namespace {

/// The effects of `recover --force` on the shoal of `status`.
std::string force_text(const json& status) {
  std::string missing;
  std::size_t count = 0;
  for (const json& p : status["peers"])
    if (text_of(p, "state") == "unreachable") {
      missing += (count++ == 0 ? "" : ", ") + text_of(p, "name") + " ("
                 + text_of(p, "id").substr(0, 8) + ")";
    }
  return "This makes a new shoal of node " + text_of(status, "name")
         + " alone, in place of shoal " + text_of(status, "id").substr(0, 12)
         + ". " + std::to_string(count) + " of its "
         + core::count_text(status["peers"].size(), "peer")
         + " cannot be reached: " + missing
         + ". They join the new shoal when they come back. If they still run, "
           "out of reach, a job then runs twice until you cancel one.";
}

int force(runtime::client& client, const recover_options& o) {
  const auto status = status_of(client);
  if (!status)
    return fail(status.message());
  // A node that does not wait for a quorum replies that there is nothing to
  // recover.
  if (!o.yes && text_of(*status, "state") == "waiting") {
    const int answer =
      confirm({"recover --force", force_text(*status),
               "shoal recover --force --yes" + options_text(o.at)});
    if (answer != exit_done)
      return answer;
  }
  if (client.recover_force())
    return fail(client.text());
  std::cout
    << "a new shoal was made; the other peers join it when they come back. It "
       "numbers its views a million higher, so that none has a number of the "
       "old shoal's. Of what waited for the old one's quorum nothing is done: "
       "ask again, for example `shoal cancel`\n";
  return exit_done;
}

/// What a job says that it waits for; "": nothing.
std::string said_wait(const json& status, const std::string& job) {
  for (const json& j : status["jobs"])
    if (text_of(j, "id") == job && j.contains("waiting"))
      return text_of(j, "waiting");
  return {};
}

/// What a job still waits for after it was told to go on without checkpoints;
/// "" if nothing stops it.
std::string waits_for(const json& status, const std::string& job) {
  for (const json& j : status["jobs"]) {
    if (text_of(j, "id") != job)
      continue;
    const bool says = j.contains("waiting");
    if (text_of(status, "state") == "waiting")
      return says ? text_of(j, "waiting") : "no quorum; see `shoal status`";
    if (says && j["places"].empty()) // no plan has a place for it
      return text_of(j, "waiting");
  }
  return {};
}

} // namespace

int run_recover(const recover_options& o) {
  if (o.force == !o.job.empty())
    return fail("recover needs either a job, to go on without the checkpoint "
                "that it waits for, or --force, to make a new shoal of this "
                "node alone, which the others join when they come back",
                exit_usage);
  if (auto why = needs_a_name(o.at, o.force ? "recover --force"
                                            : "recover " + shell_word(o.job));
      !why.empty())
    return fail(why, exit_usage);
  runtime::client client(client_of(o.at));
  if (client.connect())
    return fail(client.text());
  if (o.force)
    return force(client, o);
  auto status = status_of(client);
  if (!status)
    return fail(status.message());
  const found_job job = find_job(*status, o.job, which::running);
  if (!job.wrong.empty())
    return fail(job.wrong);
  const std::string waited = said_wait(*status, job.text);
  if (client.wait_no_longer(job.id))
    return fail(client.text());
  if (status = status_of(client); !status)
    return fail(status.message());
  if (const std::string why = waits_for(*status, job.text); !why.empty())
    return fail("job " + job.text
                + " was told to go on without checkpoints of peers that are "
                  "not here, but it goes on waiting: "
                + why);
  std::cout
    << "job " << job.text
    << (waited.empty()
          ? " waits for no checkpoint: there was nothing to do\n"
          : " goes on without checkpoints of peers that are not here. It had "
            "said: "
              + waited + "\n");
  return exit_done;
}

namespace {

/// The name of a job, of what a node said of it; empty: it said none.
std::string name_in(const json& about) {
  const auto name = about.find("name");
  return name != about.end() && name->is_string() ? core::shown(
           name->get_ref<const std::string&>(), runtime::codec::name_bytes_max)
                                                  : std::string();
}

/// The folder of --out, which belongs to the job from now on; none without
/// --out.
model::result<std::unique_ptr<out_folder>>
folder_for(const attach_options& o, const std::string& job,
           const runtime::run_config& run, const json& about, progress& out) {
  if (o.out.empty())
    return std::unique_ptr<out_folder>();
  out_request request;
  request.folder = o.out;
  request.what = out_request::purpose::attach;
  request.run = run;
  request.job = job;
  request.overwrite = o.overwrite;
  auto folder = out_folder::open(std::move(request));
  if (!folder)
    return folder;
  core::blob_digest text{}; // unknown to a node of an older version
  const auto told = about.find("text");
  const bool known = told != about.end() && told->is_string()
                     && core::from_hex(told->get<std::string>(), text);
  const bool again = (*folder)->has_job();
  auto claimed =
    (*folder)->claim(known ? core::to_hex(text) : "", name_in(about));
  if (claimed)
    claimed = (*folder)->keep(job, command_line("attach " + job, o.at), true);
  if (!claimed)
    return claimed.why();
  for (const std::string& notice : (*folder)->take_notices())
    out.say("notice", notice);
  try {
    out.write_to(o.out, again);
  } catch (const std::system_error& e) {
    return model::failure{o.out.string() + ": " + e.what()};
  }
  return folder;
}

/// What there is of a job that is not done, and how to get it.
std::string rest_text(const follower& watch, const std::string& job,
                      const attach_options& o) {
  if (!watch.told_step())
    return "there is no model to fetch";
  if (o.out.empty())
    return "`" + command_line("attach " + job, o.at, "DIR")
           + "` fetches its checkpoint of step "
           + std::to_string(*watch.told_step());
  if (!watch.newest().empty())
    return "its newest checkpoint here is " + watch.newest().string();
  return follower::not_fetched(
    *watch.told_step(), "`" + command_line("attach " + job, o.at, o.out) + "`");
}

/// Watches until Ctrl-C.
class until_interrupted final : public follow_host {
public:
  /// @param only_watches  nothing is left to do once nobody reads what is shown
  until_interrupted(const signals& interrupts, bool only_watches)
    : interrupts_(interrupts), only_watches_(only_watches) {}
  bool stops() override {
    return interrupts_.seen() || (only_watches_ && stdout_is_gone());
  }
  bool gives_up() override { return interrupts_.seen(); }

private:
  const signals& interrupts_;
  const bool only_watches_;
};

} // namespace

int run_attach(const attach_options& o) {
  signals interrupts;
  runtime::client_config c = client_of(o.at);
  c.say = [](const std::string& text) { std::cerr << text << "\n"; };
  runtime::client client(c);
  if (client.connect())
    return fail(client.text());
  const auto status = status_of(client);
  if (!status)
    return fail(status.message());
  const found_job job = find_job(*status, o.job, which::running_first);
  if (!job.wrong.empty())
    return fail(job.wrong);
  std::string text;
  follow_config f;
  if (client.job(job.id, text, f.old))
    return fail(client.text());
  const json about = model::parse_json<json>(text);
  if (!about.is_object() || !about.contains("run"))
    return fail("the node describes job " + job.text + " unreadably");
  const auto ended_here = [&](const json& j) {
    return text_of(j, "id") == job.text && text_of(j, "state") != "running";
  };
  if (about.value("kind", "train") == "serve"
      && std::ranges::any_of((*status)["jobs"], ended_here))
    return fail("job " + job.text
                + " served a model, and has ended: there is nothing to fetch");
  if (about.value("kind", "train") == "serve")
    return fail("job " + job.text
                + " serves a model: the node that is asked for completions "
                  "shows them, and `shoal status` where it runs");
  auto run = runtime::parse_written_run(model::json_text(about["run"]),
                                        "job " + job.text);
  if (!run)
    return fail(run.message());
  progress out(*run, o.json);
  auto folder = folder_for(o, job.text, *run, about, out);
  if (!folder)
    return fail(folder.message());
  f.folder = o.out;
  if (*folder)
    f.place = [&] {
      auto now = (*folder)->place();
      for (const std::string& notice : (*folder)->take_notices())
        out.say("notice", notice);
      return now;
    };
  if (!o.out.empty())
    f.elsewhere = [&](std::uint64_t step) {
      return last_of_others(client, job.text, step, o.at, out);
    };
  f.keep = run->keep_latest_k;
  if (const auto from = about.find("origin_step");
      from != about.end() && from->is_number_unsigned())
    f.origin = from->get<std::uint64_t>();
  f.at = client_again(o.at);
  f.attach = "`" + command_line("attach " + job.text, o.at, o.out) + "`";
  until_interrupted host(interrupts, o.out.empty());
  follower watch(client, out, host, f);
  if (watch.run(job.id))
    return fail(client.text());
  if (*folder && watch.has_all())
    static_cast<void>((*folder)->close(job.text)); // else --resume asks
  if (watch.state().empty()) {
    std::cerr << "shoal: the job goes on; `"
              << command_line("attach " + job.text, o.at, o.out)
              << "` watches it again\n";
    return exit_interrupted;
  }
  if (interrupts.seen() && !o.out.empty() && !watch.saved()
      && watch.state() != "failed") {
    std::cerr << "shoal: interrupted: not all of job " << job.text << " is in "
              << o.out.string() << "; `"
              << command_line("attach " + job.text, o.at, o.out)
              << "` goes on\n";
    return exit_interrupted;
  }
  const std::string none = rest_text(watch, job.text, o);
  if (watch.state() == "failed" && !watch.saved())
    return fail("the job failed"
                + (watch.cause().empty() ? "" : ": " + watch.cause()) + "; "
                + none);
  if (!o.out.empty() && !watch.saved())
    return fail(
      watch.state() == "done"
        ? "job " + job.text + " is done, but its model could not be fetched to "
            + o.out.string() + "; `"
            + command_line("attach " + job.text, o.at, o.out)
            + "` tries it again"
        : "job " + job.text
            + (watch.state() == "failed" ? " failed" : " was " + watch.state())
            + ": " + none);
  if (watch.state() == "cancelled" && watch.told_step())
    std::cerr << "shoal: " << later_text(job.text, o.at, o.out) << "\n";
  return watch.state() == "failed" ? exit_failed : exit_done;
}

} // namespace shoal::apps
