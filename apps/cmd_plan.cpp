// apps/cmd_plan.cpp -- plan: what a run would do, where, and at what cost.
//
// Plans for the shoal of the local node, for this machine alone when no node
// runs, or for a shoal that a file describes (view_file.hpp). Nothing is
// started.
#include "apps/commands.hpp"
#include "apps/remote.hpp"
#include "apps/run_file.hpp"
#include "apps/status_json.hpp"
#include "apps/toml_file.hpp"
#include "apps/view_file.hpp"
#include "runtime/client.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/core/training/plan.hpp"
#include "runtime/model/json.hpp"
#include "runtime/model/units.hpp"
#include "runtime/node/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <stdexcept>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

core::view alone() {
  core::view v;
  v.number = 1;
  core::member m;
  m.id.incarnation = 1;
  m.name = "this machine";
  m.host = runtime::boot_id();
  m.device = runtime::measure_profile(0, 0, 0);
  v.members.push_back(m);
  return v;
}

/// Where a plan is for, and what to call it.
struct place {
  core::view view;
  std::string name;
};

model::result<place> described(const std::filesystem::path& file) {
  auto v = parse_view(toml_to_json(file), file.string());
  if (!v)
    return v.why();
  return place{std::move(*v), "the shoal in " + file.string()};
}

place running(const node_address& at) {
  runtime::client client(client_of(at));
  std::string status;
  if (client.connect() && says_which(at))
    throw std::runtime_error(client.text());
  if (!client.status(status))
    if (const auto s = parse_status(status))
      return {view_of(*s), client.where()};
  return {alone(), "this machine alone (no node runs)"};
}

std::string name_of(const core::view& v, const core::member_id& id) {
  const core::member* m = core::find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : core::short_name(id.peer);
}

json describe(const core::view& v, const core::assignment& a,
              const core::prediction& p) {
  json out{{"replicas", json::array()},
           {"schedule", core::to_text(a.schedule)},
           {"step_seconds", double(p.step) / 1e9},
           {"memory", json::array()}};
  for (const core::replica_place& r : a.replicas) {
    json stages = json::array();
    for (const core::stage_place& s : r.stages)
      stages.push_back({{"peer", name_of(v, s.where)},
                        {"first_block", s.first_block},
                        {"last_block", s.last_block},
                        {"kept_microbatches", s.kept_max}});
    out["replicas"].push_back({{"first_microbatch", r.first_microbatch},
                               {"last_microbatch", r.last_microbatch},
                               {"stages", stages}});
  }
  for (const auto& need : p.members) {
    const core::member* m = core::find_member(v, need.where.peer);
    out["memory"].push_back({{"peer", name_of(v, need.where)},
                             {"needs_bytes", need.bytes},
                             {"has_bytes", m ? m->device.memory_bytes : 0}});
  }
  return out;
}

void print(const json& d) {
  std::printf("schedule %s\n", d["schedule"].get<std::string>().c_str());
  int r = 0;
  for (const json& replica : d["replicas"]) {
    std::printf("replica %d  microbatches %d-%d\n", r++,
                replica["first_microbatch"].get<int>(),
                replica["last_microbatch"].get<int>());
    for (const json& s : replica["stages"])
      std::printf("  %-20s blocks %d-%d\n",
                  core::shown(s["peer"].get<std::string>()).c_str(),
                  s["first_block"].get<int>(), s["last_block"].get<int>());
  }
  for (const json& m : d["memory"])
    std::printf("%-22s needs %.1f MiB, has %.1f MiB\n",
                core::shown(m["peer"].get<std::string>()).c_str(),
                m["needs_bytes"].get<double>() / 1048576,
                m["has_bytes"].get<double>() / 1048576);
  std::printf("predicted step time %.3f s\n", d["step_seconds"].get<double>());
}

} // namespace

int run_plan(const plan_options& o) {
  auto run = load_run(o.run);
  if (!run) {
    std::cerr << "shoal: " << run.message() << "\n";
    return exit_usage;
  }
  place where;
  if (o.view.empty()) {
    where = running(o.at);
  } else {
    auto read = described(o.view);
    if (!read) {
      std::cerr << "shoal: " << read.message() << "\n";
      return exit_usage;
    }
    where = std::move(*read);
  }
  core::view& v = where.view;
  core::job_entry entry = make_entry(*run, o.run.run_file.stem().string());
  entry.id = 1;
  v.jobs.push_back(entry);
  const core::plan plan = core::make_plan(v);
  if (plan.jobs.empty() || plan.jobs[0].replicas.empty()) {
    std::cerr << "shoal: the run does not fit: "
              << (plan.jobs.empty() ? "no members" : plan.jobs[0].why_waiting)
              << "\n";
    return exit_failed;
  }
  const model::unit_layout layout(run->model);
  json d = describe(v, plan.jobs[0], core::predict(v, plan.jobs[0]));
  d["parameters"] = layout.parameter_count();
  if (o.json) {
    std::cout << model::json_text(d) << "\n";
    return exit_done;
  }
  std::printf("%llu parameters, on %s\n",
              (unsigned long long)layout.parameter_count(),
              core::shown(where.name).c_str());
  print(d);
  return exit_done;
}

} // namespace shoal::apps
