// apps/cmd_plan.cpp -- plan: what a run would do, where, and at what cost.
//
// Plans for the shoal of the local node, for this machine alone when no node
// runs, or for a shoal that a file describes (view_file.hpp). Nothing is
// started.
#include "apps/commands.hpp"
#include "apps/remote.hpp"
#include "apps/run_file.hpp"
#include "apps/toml_file.hpp"
#include "apps/view_file.hpp"
#include "runtime/client.hpp"
#include "runtime/core/training/plan.hpp"
#include "runtime/model/json.hpp"
#include "runtime/model/units.hpp"
#include "runtime/node/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

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

core::view from_status(const json& s) {
  core::view v;
  v.number = s.value("epoch", std::uint64_t{1});
  for (const json& p : s["peers"]) {
    core::member m;
    const std::string id = p.value("id", "");
    for (std::size_t i = 0; i < m.id.peer.size() && 2 * i + 1 < id.size(); ++i)
      m.id.peer[i] = std::uint8_t(std::stoul(id.substr(2 * i, 2), nullptr, 16));
    m.id.incarnation = p.value("incarnation", std::uint64_t{1});
    m.name = p.value("name", "");
    m.host = p.value("host", "");
    m.witness = p.value("witness", false);
    if (p.value("state", "") == "leaving")
      m.state = core::member_state::leaving;
    for (const json& d : p["devices"]) {
      m.device.kind = d.value("kind", "cpu");
      m.device.name = d.value("name", "");
      m.device.threads = d.value("threads", 1u);
      m.device.host_threads = d.value("host_threads", 0u);
      m.device.mflops = d.value("mflops", std::uint64_t{0});
      m.device.stream_mbps = d.value("stream_mbps", std::uint64_t{0});
      m.device.memory_bytes = d.value("memory_bytes", std::uint64_t{0});
    }
    v.members.push_back(m);
  }
  std::ranges::sort(v.members, {},
                    [](const core::member& m) { return m.id.peer; });
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
  if (!client.connect() && !client.status(status))
    if (const json s = model::parse_json<json>(status);
        s.is_object() && s.contains("peers"))
      return {from_status(s), client.where()};
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
                  s["peer"].get<std::string>().c_str(),
                  s["first_block"].get<int>(), s["last_block"].get<int>());
  }
  for (const json& m : d["memory"])
    std::printf("%-22s needs %.1f MiB, has %.1f MiB\n",
                m["peer"].get<std::string>().c_str(),
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
    std::cout << d.dump() << "\n";
    return exit_done;
  }
  std::printf("%llu parameters, on %s\n",
              (unsigned long long)layout.parameter_count(), where.name.c_str());
  print(d);
  return exit_done;
}

} // namespace shoal::apps
