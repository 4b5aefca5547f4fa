// apps/plan/cmd_plan.cpp -- plan: what a run would do, where, and at what cost.
//
// Plans for the shoal of the local node, for this machine alone when no node
// runs, or for a shoal described by a file (view_file.hpp); for the latter the
// text need not be present. Nothing is started.
#include "apps/common/commands.hpp"
#include "apps/common/toml_file.hpp"
#include "apps/plan/plan_table.hpp"
#include "apps/plan/view_file.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_json.hpp"
#include "apps/train/job_name.hpp"
#include "apps/train/run_file.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/units.hpp"
#include "runtime/node/profile.hpp"

#include <iostream>
#include <stdexcept>

namespace shoal::apps {

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

/// The shoal that is planned for, and its name.
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
  runtime::client client(client_through(at));
  std::string status;
  if (client.connect() && says_which(at))
    throw std::runtime_error(client.text());
  if (!client.status(status))
    if (const auto s = parse_status(status))
      return {view_of(*s), client.where()};
  return {alone(), "this machine alone (no node runs)"};
}

} // namespace

int run_plan(const plan_options& o) {
  int code = exit_usage;
  auto run = load_run(o.run, &code);
  if (!run) {
    std::cerr << "shoal: " << run.message() << "\n";
    return code;
  }
  std::optional<planned_text> text;
  if (o.view.empty() && !run->data_paths.empty()) {
    auto seen = look_at_text(*run);
    if (!seen) {
      std::cerr << "shoal: " << seen.message() << "\n";
      return exit_failed;
    }
    for (const std::string& notice : seen->notices)
      std::cerr << "shoal: " << notice << "\n";
    text = *std::move(seen);
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
  core::job_entry entry =
    make_entry(*run, job_name({run->job_name, {}, o.run.run_file}));
  entry.id = 1;
  v.jobs.push_back(entry);
  const core::plan plan = core::make_plan(v);
  if (plan.jobs.empty() || plan.jobs[0].islands[0].replicas.empty()) {
    std::cerr << "shoal: the run does not fit: "
              << (plan.jobs.empty() ? "no members"
                                    : plan.jobs[0].islands[0].why_waiting)
              << "\n";
    return exit_failed;
  }
  const planned_run planned{
    v,          plan.jobs[0],
    *run,       model::unit_layout(run->model).parameter_count(),
    where.name, std::move(text)};
  if (o.json)
    std::cout << model::json_text(plan_json(planned)) << "\n";
  else
    std::cout << core::shown(plan_table(planned), core::line_ends::kept);
  return exit_done;
}

} // namespace shoal::apps
