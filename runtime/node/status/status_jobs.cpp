// runtime/node/status/status_jobs.cpp -- what a node knows of jobs, in a status.
//
// Each object is a table: name, type, unit, meaning, and how to get the value.
#include "runtime/node/status/status_jobs.hpp"

#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/file_keepers.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/training/shards.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/jobs/plan_json.hpp"
#include "runtime/jobs/unheld_roles.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace {

using json = json_value;

std::string name_of(const core::view& v, const core::member_id& id) {
  const core::member* m = core::find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : core::short_name(id.peer);
}

/// training.steps of a run file, or 0.
std::uint64_t steps_of(const core::job_entry& job) {
  auto run = model::parse_json<json>(job.run_json);
  if (!run.is_object() || !run.contains("training")
      || !run["training"].is_object())
    return 0;
  const auto steps = run["training"].find("steps");
  return steps != run["training"].end() && steps->is_number_unsigned()
           ? steps->get<std::uint64_t>()
           : 0;
}

/// Where a job runs: a plan's entry for it.
struct place_of {
  const core::view& in;
  const core::assignment& is;
  const std::map<core::island_id, std::vector<core::peer_id>>& refusing_disks;

  const core::island_place& first() const { return is.islands.front(); }
  /// The reason of an island that waits; empty if none does.
  std::string why_waiting() const {
    for (const core::island_place& at : is.islands)
      if (core::waits(is) && !at.why_waiting.empty())
        return at.why_waiting;
    return {};
  }
};

/// The members with the roles that a job has only once.
const json_table<place_of>& roles_table() {
  using a = const place_of&;
  static const json_table<place_of> table{
    {"data_source", "text", "", "peer that hands out the samples",
     [](a v) { return json(name_of(v.in, v.first().data_source)); }},
    {"evaluator", "text", "", "peer that sums the held-out loss",
     [](a v) { return json(name_of(v.in, v.first().evaluator)); }},
    {"checkpointer", "text", "", "peer that completes checkpoints",
     [](a v) { return json(name_of(v.in, v.first().checkpointer)); }},
    {"reporter", "text", "", "peer that reports the steps",
     [](a v) { return json(name_of(v.in, v.first().reporter)); }}};
  return table;
}

struct keeper_of {
  const core::view& in;
  core::member_id is;
  bool refuses = false;
};

const json_table<keeper_of>& keeper_table() {
  static const json_table<keeper_of> table{
    {"peer", "text", "", "its name",
     [](const keeper_of& k) { return json(name_of(k.in, k.is)); }},
    {"id", "text", "", "64 hexadecimal digits",
     [](const keeper_of& k) { return json(core::to_hex(k.is.peer)); }},
    {"refuses", "true or false", "",
     "whether its disk has refused checkpoints, and others keep them: it is "
     "full, read-only or damaged",
     [](const keeper_of& k) { return json(k.refuses); }}};
  return table;
}

/// The disks that share the files of a served model.
json disks_json(const place_of& a, const core::job_entry& job) {
  json out = json::array();
  for (const core::disk_room& d : core::disks_of(a.in, job, &a.is))
    if (const core::member* m = core::find_member(a.in, d.peer))
      out.push_back(written<keeper_of>(keeper_table(), {a.in, m->id, false}));
  return out;
}

/// Also those that keep checkpoints instead of disks that refuse them.
json keepers_json(const place_of& a,
                  std::vector<core::member_id> core::island_place::*kind) {
  std::map<core::member_id, bool> all; // whether it refuses, in any island
  for (std::uint32_t i = 0; i < a.is.islands.size(); ++i) {
    const core::island_place& at = a.is.islands[i];
    const auto refusing = a.refusing_disks.find({a.is.job, i});
    for (const core::member_id& id : at.*kind)
      all.try_emplace(id, false);
    if (refusing == a.refusing_disks.end() || at.replicas.empty())
      continue;
    for (auto& [id, refuses] : all)
      refuses = refuses || std::ranges::count(refusing->second, id.peer) > 0;
    if (kind == &core::island_place::keepers && !at.part_keepers.empty())
      continue; // the other list has those that keep checkpoints
    for (const core::peer_id& p :
         core::checkpoint_keepers(at, refusing->second))
      if (const core::member* m = core::find_member(a.in, p))
        all.try_emplace(m->id, false);
  }
  json out = json::array();
  for (const auto& [id, refuses] : all)
    out.push_back(written<keeper_of>(keeper_table(), {a.in, id, refuses}));
  return out;
}

struct job_of {
  const core::job_entry& is;
  std::optional<job_event> last;  ///< newest step that this node knows
  double pace = 0;                ///< as job_journal::tokens_per_s()
  std::optional<job_event> saved; ///< newest checkpoint that it knows
  std::string awaited;            ///< what the running job waits for, too
  std::optional<place_of> place;  ///< none while no plan has it
};

bool serves(const job_of& j) {
  return j.is.kind == core::job_kind::serve;
}

/// A node that was away when a job ended learns of its end from the view, and
/// may know fewer steps.
json step_of(const job_of& j) {
  return json(j.last ? std::max(j.last->step, j.is.done_step) : j.is.done_step);
}

/// A value of the last step, or nothing: for a job that has ended, such a node
/// does not show an earlier step's value as the last one's.
json of_last_step(const job_of& j, double job_event::*value) {
  const bool ended = j.is.state != core::job_state::running;
  return j.last && !(ended && j.last->step < j.is.done_step)
           ? json((*j.last).*value)
           : left_out();
}

json waiting_of(const job_of& j) {
  if (j.place && !j.place->why_waiting().empty())
    return json(j.place->why_waiting());
  return j.awaited.empty() ? left_out() : json(j.awaited);
}

const json_table<job_event>& checkpoint_table() {
  static const json_table<job_event> table{
    {"step", "whole number", "", "its step",
     [](auto& e) { return json(e.step); }},
    {"digest", "text", "", "of its list of files: 64 hexadecimal digits",
     [](auto& e) { return json(core::to_hex(e.digest)); }},
    {"unix_ms", "whole number", "ms", "Unix time at which it was complete",
     [](auto& e) {
       return json(std::uint64_t(std::max<std::int64_t>(e.unix_ms, 0)));
     }}};
  return table;
}

const json_table<job_of>& job_table() {
  using j = const job_of&;
  static const json_table<job_of> table{
    {"id", "text", "", "16 hexadecimal digits",
     [](j v) { return json(core::job_text(v.is.id)); }},
    {"name", "text", "", "of its run file, or of the model that it serves",
     [](j v) { return json(v.is.name); }},
    {"kind", "text", "", "`train` or `serve`",
     [](j v) { return json(core::placer_of(v.is.kind).name); }},
    {"state", "text", "", "`running`, `done`, `cancelled` or `failed`",
     [](j v) { return json(core::to_text(v.is.state)); }},
    {"ending", "true or false", "",
     "whether it runs and ends after its step, as a user has asked",
     [](j v) { return json(core::is_draining(v.is)); }},
    {"priority", "whole number", "", "job.priority",
     [](j v) { return json(v.is.priority); }},
    {"changed", "whole number", "", "epoch in which it got this state",
     [](j v) { return json(v.is.changed); }},
    {"step", "whole number", "", "steps that were done", step_of},
    {"steps", "whole number", "", "training.steps",
     [](j v) { return json(steps_of(v.is)); }},
    {"origin_step", "whole number", "",
     "step that it went on from; 0: it began anew",
     [](j v) { return json(v.is.origin_step); }},
    {"done_step", "whole number", "", "step at which it ended; 0 before",
     [](j v) { return json(v.is.done_step); }},
    {"user", "text", "", "who submitted it, user@host; \"\": not known",
     [](j v) { return json(v.is.user); }},
    {"submitted_unix_ms", "whole number, optional", "ms",
     "Unix time of its submission",
     [](j v) {
       return v.is.submitted_ms == 0 ? left_out() : json(v.is.submitted_ms);
     }},
    {"loss", "number or null, optional", "nats",
     "of the last step, if this node knows it",
     [](j v) { return of_last_step(v, &job_event::loss); }},
    {"tokens_per_s", "number, optional", "tokens/s",
     "of the last steps, over about 10 s, if this node knows the last one",
     [](j v) {
       const json last = of_last_step(v, &job_event::tokens_per_s);
       return last.is_number() && v.pace > 0 ? json(v.pace) : last;
     }},
    {"lr", "number, optional", "",
     "learning rate of the last step, if this node knows it",
     [](j v) { return of_last_step(v, &job_event::lr); }},
    {"version", "whole number, optional", "",
     "of a training job that is served: the step of the newest version",
     [](j v) {
       const auto step = core::served_versions(v.is).front().step;
       return serves(v) && step != 0 ? json(step) : left_out();
     }},
    {"cause", "text, optional", "", "why it failed",
     [](j v) { return v.is.cause.empty() ? left_out() : json(v.is.cause); }},
    {"waiting", "text, optional", "", "what it waits for", waiting_of},
    {"plan", "text, optional", "", "what runs where, in words",
     [](j v) {
       return v.place ? json(core::to_text(v.place->in, v.place->is,
                                           unheld_of(v.place->in, v.place->is)))
                      : left_out();
     }},
    {"replicas", "whole number, optional", "", "copies of the model that train",
     [](j v) {
       if (!v.place)
         return left_out();
       std::size_t all = 0;
       for (const core::island_place& at : v.place->is.islands)
         all += core::replica_count(at.replicas);
       return json(all);
     }},
    {"pipelines", "whole number, optional", "",
     "that a served model is to have now",
     [](j v) { return serves(v) ? json(core::islands_of(v.is)) : left_out(); }},
    {"stages", "whole number, optional", "", "of each replica",
     [](j v) {
       if (!v.place)
         return left_out();
       const auto& all = v.place->first().replicas;
       return json(all.empty() ? 0 : all[0].stages.size());
     }},
    {"checkpoint", "object, optional", "",
     "the newest checkpoint that this node has heard of: of a job that ended "
     "while it was away, an older one than its last",
     [](j v) {
       return v.saved ? written(checkpoint_table(), *v.saved) : left_out();
     },
     texts_of(checkpoint_table())},
    {"roles", "object, optional", "",
     "peers with the roles that a job has only once; none while it waits",
     [](j v) {
       return v.place && v.place->why_waiting().empty()
                ? written(roles_table(), *v.place)
                : left_out();
     },
     texts_of(roles_table())},
    {"places", "list of lists of objects, optional", "",
     "for each replica its stages",
     [](j v) {
       return v.place ? places_json(v.place->in, v.place->is) : left_out();
     },
     places_fields()},
    {"keepers", "list of objects, optional", "",
     "peers whose disks have its text, and get each checkpoint whole unless "
     "others share its parts; or that share the files of a served model",
     [](j v) {
       return !v.place ? left_out()
              : serves(v)
                ? disks_json(*v.place, v.is)
                : keepers_json(*v.place, &core::island_place::keepers);
     },
     texts_of(keeper_table())},
    {"part_keepers", "list of objects, optional", "",
     "peers whose disks share the parts of each checkpoint; each part is on as "
     "many as there are keepers",
     [](j v) {
       return v.place && !v.place->first().part_keepers.empty()
                ? keepers_json(*v.place, &core::island_place::part_keepers)
                : left_out();
     },
     texts_of(keeper_table())},
    {"unheld", "list of objects, optional", "",
     "wishes that the plan does not fulfil",
     [](j v) {
       return v.place ? unheld_json(v.place->in, v.place->is) : left_out();
     },
     unheld_fields()},
    {"idle", "list of objects, optional", "", "peers without work for the job",
     [](j v) {
       return v.place ? idle_json(v.place->in, v.place->is) : left_out();
     },
     idle_fields()}};
  return table;
}

/// Whether what a pipeline of a served model waited for is over: it is ready, or
/// has another place.
bool is_over(const status_input& in, const place_of& place,
             const job_event& awaited) {
  const auto& islands = place.is.islands;
  if (awaited.island >= islands.size()
      || islands[awaited.island].since != awaited.epoch)
    return true;
  const auto load =
    std::ranges::find(in.serving, place.is.job, &core::served_load::job);
  return load != in.serving.end()
         && std::ranges::any_of(
           load->pipelines, [&](const core::served_pipeline& p) {
             return p.pipeline == awaited.island && p.ready;
           });
}

/// What a running job waits for but for a place: a quorum before anything else.
std::string awaited_of(const status_input& in, const job_of& job) {
  if (!in.waiting.empty() || !in.journal)
    return in.waiting;
  const auto e = in.journal->awaited(job.is.id);
  if (!e || (serves(job) && job.place && is_over(in, *job.place, *e)))
    return {};
  constexpr std::string_view said = "waiting: "; // as a line of its own begins
  return e->text.starts_with(said) ? e->text.substr(said.size()) : e->text;
}

job_of job_in(const status_input& in, const core::job_entry& job) {
  job_of out{job, {}, 0, {}, {}, {}};
  if (in.journal) {
    out.last = in.journal->last_step(job.id);
    out.pace = in.journal->tokens_per_s(job.id);
    out.saved = in.journal->last_checkpoint(job.id);
  }
  if (in.plan)
    for (const core::assignment& a : in.plan->jobs)
      if (a.job == job.id)
        out.place.emplace(place_of{*in.view, a, in.refusing_disks});
  if (job.state == core::job_state::running)
    out.awaited = awaited_of(in, out);
  return out;
}

} // namespace

json jobs_json(const status_input& in) {
  json out = json::array();
  if (in.view)
    for (const core::job_entry& job : in.view->jobs)
      out.push_back(written(job_table(), job_in(in, job)));
  return out;
}

std::string job_json(const status_input& in, const core::job_entry& job) {
  json out = written(job_table(), job_in(in, job));
  out["text"] = core::to_hex(job.data); // by which a folder recognises its run
  json run = model::parse_json<json>(job.run_json);
  out["run"] = run.is_discarded() ? json() : std::move(run);
  return model::json_text(out);
}

std::string waits_for(const status_input& in, const core::job_entry& job) {
  const json text = waiting_of(job_in(in, job));
  return text.is_string() ? text.get<std::string>() : std::string{};
}

std::vector<field_text> job_fields() {
  return texts_of(job_table());
}

} // namespace shoal::runtime
