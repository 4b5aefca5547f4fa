// runtime/node/status.cpp -- what `shoal status --json` prints.
#include "runtime/node/status.hpp"

#include "runtime/core/training/detours.hpp"
#include "runtime/core/training/host_memory.hpp"
#include "runtime/core/training/plan_reasons.hpp"
#include "runtime/job_journal.hpp"
#include "runtime/model/json.hpp"
#include "runtime/unheld_roles.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::runtime {

using nlohmann::json;

static const char* phase_name(core::cluster::phase p) {
  switch (p) {
  case core::cluster::phase::created:
    return "starting";
  case core::cluster::phase::waiting:
    return "waiting";
  case core::cluster::phase::member:
    return "member";
  case core::cluster::phase::homeless:
    return "joining";
  case core::cluster::phase::gone:
    return "gone";
  }
  return "unknown";
}

static json peer_json(const status_input& in, const core::member& m,
                      const core::memory_by_peer& memory) {
  bool here = std::ranges::find(in.reachable, m.id.peer) != in.reachable.end();
  json device = {{"kind", m.device.kind},
                 {"name", m.device.name},
                 {"threads", m.device.threads},
                 {"host_threads", m.device.host_threads},
                 {"mflops", m.device.mflops},
                 {"stream_mbps", m.device.stream_mbps},
                 {"memory_bytes", m.device.memory_bytes},
                 {"host_memory_bytes", m.device.host_memory_bytes},
                 {"memory_is_share", m.device.memory_is_share}};
  // What jobs may use of it, as peers of one host share that host's.
  if (auto at = memory.find(m.id.peer); at != memory.end())
    device["memory_for_jobs_bytes"] = at->second;
  const char* state = m.state == core::member_state::joining   ? "joining"
                      : !here                                  ? "unreachable"
                      : m.state == core::member_state::leaving ? "leaving"
                                                               : "active";
  const auto version = in.versions.find(m.id.peer);
  json out = {{"id", core::to_hex(m.id.peer)},
              {"name", m.name},
              {"version", version == in.versions.end() ? "" : version->second},
              {"state", state},
              {"addresses", m.addresses},
              {"devices", m.witness ? json::array() : json::array({device})},
              {"incarnation", m.id.incarnation},
              {"host", m.host},
              {"voter", m.voter},
              {"witness", m.witness},
              {"roles", m.roles}};
  return out;
}

/// training.steps of a run file, or 0.
static std::uint64_t steps_of(const core::job_entry& job) {
  auto run = model::parse_json<json>(job.run_json);
  if (!run.is_object() || !run.contains("training")
      || !run["training"].is_object())
    return 0;
  const auto steps = run["training"].find("steps");
  return steps != run["training"].end() && steps->is_number_unsigned()
           ? steps->get<std::uint64_t>()
           : 0;
}

/// Text: JSON numbers of other programs lose the last digits.
static std::string job_text(core::job_id job) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(job));
  return id;
}

/// Who has the roles that a job has once.
static json roles_json(const core::view& v, const core::assignment& a) {
  auto name = [&v](const core::member_id& id) {
    const core::member* m = core::find_member(v, id.peer);
    return m ? m->name : core::short_name(id.peer);
  };
  return {{"data_source", name(a.data_source)},
          {"evaluator", name(a.evaluator)},
          {"checkpointer", name(a.checkpointer)},
          {"reporter", name(a.reporter)}};
}

static std::string name_of(const core::view& v, const core::member_id& id) {
  const core::member* m = core::find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : core::short_name(id.peer);
}

/// Each stage of each replica with its layers, both ends included.
static json places_json(const core::view& v, const core::assignment& a) {
  json out = json::array();
  for (const core::replica_place& r : a.replicas) {
    json& stages = out.emplace_back(json::array());
    for (const core::stage_place& s : r.stages)
      stages.push_back({{"peer", name_of(v, s.where)},
                        {"first_layer", s.first_block},
                        {"last_layer", std::int64_t{s.last_block} - 1}});
  }
  return out;
}

static json unheld_json(const core::view& v, const core::assignment& a) {
  json out = json::array();
  for (const core::unheld_wish& w : unheld_of(v, a))
    out.push_back(
      {{"key", w.key}, {"wanted", w.wanted}, {"got", w.got}, {"why", w.why}});
  return out;
}

/// The planner's line, and roles that no peer starts, which it does not know.
static std::string plan_text(const core::view& v, const core::assignment& a) {
  std::string out = core::to_text(v, a);
  for (const core::unheld_wish& w : unheld_of(v, a))
    if (w.key == "roles")
      out += "; " + core::to_text(w);
  return out;
}

static json idle_json(const core::view& v, const core::assignment& a) {
  json out = json::array();
  for (const core::idle_member& m : core::idle_members(v, a))
    out.push_back({{"peer", name_of(v, m.who)}, {"why", m.why}});
  return out;
}

static json job_line(const status_input& in, const core::job_entry& job) {
  json out = {{"id", job_text(job.id)},
              {"name", job.name},
              {"state", core::to_text(job.state)},
              {"priority", job.priority},
              {"changed", job.changed},
              {"step", job.done_step},
              {"steps", steps_of(job)},
              {"done_step", job.done_step}};
  if (auto last = in.journal ? in.journal->last_step(job.id) : std::nullopt) {
    // A node that was away when a job ended knows of its end by the view, and
    // may know fewer steps.
    out["step"] = std::max(last->step, job.done_step);
    out["loss"] = last->loss;
    out["tokens_per_s"] = last->tokens_per_s;
  }
  if (!job.cause.empty())
    out["cause"] = job.cause;
  if (job.state == core::job_state::running && in.journal)
    if (const auto awaited = in.journal->awaited(job.id))
      out["waiting"] = awaited->text;
  if (!in.plan)
    return out;
  for (const core::assignment& a : in.plan->jobs)
    if (a.job == job.id) {
      out["plan"] = plan_text(*in.view, a);
      out["replicas"] = core::replica_count(a.replicas);
      out["stages"] = a.replicas.empty() ? 0 : a.replicas[0].stages.size();
      if (!a.why_waiting.empty())
        out["waiting"] = a.why_waiting;
      else
        out["roles"] = roles_json(*in.view, a);
      out["places"] = places_json(*in.view, a);
      out["unheld"] = unheld_json(*in.view, a);
      out["idle"] = idle_json(*in.view, a);
    }
  return out;
}

std::string job_json(const status_input& in, const core::job_entry& job) {
  json out = job_line(in, job);
  out["text"] = core::to_hex(job.data); // by which a folder knows its run
  json run = model::parse_json<json>(job.run_json);
  out["run"] = run.is_discarded() ? json() : std::move(run);
  return model::json_text(out);
}

/// Bytes by one fabric, and by job. Speeds are null while not known.
static json moved_json(const link_hub::link_stat& l) {
  json out = {{"fabric", l.fabric},
              {"sent_bytes", l.sent_bytes},
              {"received_bytes", l.received_bytes},
              {"latency_ns", l.latency_ns ? json(l.latency_ns) : json()},
              {"bytes_per_s", l.bytes_per_s ? json(l.bytes_per_s) : json()},
              {"jobs", json::array()}};
  for (const link_hub::job_bytes& j : l.jobs)
    out["jobs"].push_back({{"job", j.job ? job_text(j.job) : ""},
                           {"sent_bytes", j.sent},
                           {"received_bytes", j.received}});
  return out;
}

static json pair_json(const status_input& in, const core::peer_id& peer,
                      const pair_choice& choice) {
  json out = {{"peer", core::to_hex(peer)},
              {"fabric", name_of(choice.used)},
              {"instead_of", json::array()},
              {"moved", json::array()}};
  for (const fabric_reason& r : choice.instead_of)
    out["instead_of"].push_back({{"fabric", r.fabric}, {"why", r.why}});
  for (const link_hub::link_stat& l : in.links)
    if (l.peer == peer)
      out["moved"].push_back(moved_json(l));
  return out;
}

std::string status_json(const status_input& in) {
  json out = {{"epoch", in.view ? in.view->number : 0},
              {"id", in.view ? core::to_hex(in.view->shoal) : ""},
              {"self", core::to_hex(in.self)},
              {"name", in.name},
              {"address", in.address},
              {"data_dir", in.data_dir},
              {"state", phase_name(in.phase)},
              {"peers", json::array()},
              {"jobs", json::array()},
              {"cuts", json::array()},
              {"links", json::array()}};
  out["beacons"] = {
    {"dialled", in.beacons.dialled}, {"connected", in.beacons.connected},
    {"crowded", in.beacons.crowded}, {"strange", in.beacons.strange},
    {"old", in.beacons.old},         {"elsewhere", in.beacons.elsewhere},
    {"paused", in.beacons.paused}};
  if (in.view) {
    out["cluster"] = in.view->cluster;
    const auto memory = core::memory_for_jobs(*in.view, in.view->previous);
    for (const core::member& m : in.view->members)
      out["peers"].push_back(peer_json(in, m, memory));
    for (const core::cut_pair& cut : in.view->cuts)
      out["cuts"].push_back(
        {core::to_hex(cut.low.peer), core::to_hex(cut.high.peer)});
    for (const core::job_entry& job : in.view->jobs)
      out["jobs"].push_back(job_line(in, job));
  }
  for (const auto& [peer, choice] : in.pairs)
    out["links"].push_back(pair_json(in, peer, choice));
  for (const link_hub::link_stat& l : in.links)
    if (l.peer == in.self)
      out["links"].push_back({{"peer", core::to_hex(l.peer)},
                              {"fabric", l.fabric},
                              {"instead_of", json::array()},
                              {"moved", json::array({moved_json(l)})}});
  return model::json_text(out);
}

} // namespace shoal::runtime
