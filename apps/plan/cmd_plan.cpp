// apps/plan/cmd_plan.cpp -- plan: what a run would do, where, and at what cost;
// or where a model would be served.
//
// Plans for the shoal of the local node, for this machine alone when no node
// runs, or for a shoal described by a file (view_file.hpp); for the latter the
// text need not be present. Nothing is started.
#include "apps/common/commands.hpp"
#include "apps/common/toml_file.hpp"
#include "apps/manage/served_description.hpp"
#include "apps/plan/plan_table.hpp"
#include "apps/plan/served_plan.hpp"
#include "apps/plan/view_file.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_json.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/submit/job_name.hpp"
#include "apps/submit/run_file.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/units.hpp"
#include "runtime/node/profile.hpp"

#include <iostream>
#include <optional>
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
  const auto error = client.connect();
  if (error == runtime::errc::no_node && !says_which(at))
    return {alone(), "this machine alone (no node runs)"};
  if (error || client.status(status))
    throw std::runtime_error(client.text());
  const auto s = parse_status(status);
  if (!s)
    throw std::runtime_error("the node at " + client.where() + ": "
                             + s.message());
  if (const std::string why = no_quorum_text(*s); !why.empty())
    std::cerr << "shoal: " << why
              << ". The plan takes all its peers as present\n";
  return {view_of(*s), "the shoal of node " + text_of(*s, "name")};
}

/// @returns nothing after an error line; `code` is the exit code then
std::optional<place> place_of(const plan_options& o) {
  if (o.view.empty())
    return running(o.at);
  auto read = described(o.view);
  if (read)
    return *std::move(read);
  std::cerr << "shoal: " << read.message() << "\n";
  return std::nullopt;
}

/// The plan of a job on that shoal, of which it becomes a part.
core::assignment planned(core::view& v, core::job_entry entry) {
  entry.id = 1;
  v.jobs.push_back(std::move(entry));
  core::plan plan = core::make_plan(v);
  return plan.jobs.empty() ? core::assignment{} : std::move(plan.jobs.front());
}

int fits_nowhere(const char* what, const core::assignment& a) {
  std::cerr << "shoal: " << what << " does not fit: "
            << (a.islands.empty() ? "no members" : a.islands[0].why_waiting)
            << "\n";
  return exit_failed;
}

int run_served_plan(const plan_options& o) {
  if (!o.run.run_file.empty() || !o.run.overrides.empty()
      || !o.run.data.empty()) {
    std::cerr << "shoal: --serve: plans for serving a model have no run file, "
                 "no data and none of a run's keys\n";
    return exit_usage;
  }
  auto model = describe_without_weights(o.serve);
  if (!model) {
    std::cerr << "shoal: " << model.message() << "\n";
    return exit_failed;
  }
  auto where = place_of(o);
  if (!where)
    return exit_usage;
  const core::assignment plan =
    planned(where->view,
            served_entry(o.serve, *model,
                         served_name(o.serve, name_of_files(o.serve.model))));
  if (core::waits(plan))
    return fits_nowhere("the model", plan);
  const planned_serving all{where->view, plan, *model,
                            model::unit_layout(model->model).parameter_count(),
                            where->name};
  if (o.json)
    std::cout << model::json_text(served_plan_json(all)) << "\n";
  else
    std::cout << core::shown(served_plan_table(all), core::line_ends::kept);
  return exit_done;
}

} // namespace

int run_plan(const plan_options& o) {
  if (!o.serve.model.empty())
    return run_served_plan(o);
  int code = exit_usage;
  run_options wanted = o.run;
  wanted.download.weights = false;
  auto run = load_run(wanted, &code);
  if (!run) {
    std::cerr << "shoal: " << run.message() << "\n";
    return code;
  }
  for (const std::string& line : changed_keys(o.run))
    std::cerr << "shoal: " << line << "\n";
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
  auto where = place_of(o);
  if (!where)
    return exit_usage;
  core::view& v = where->view;
  const core::assignment plan = planned(
    v, make_entry(*run, job_name({{}, run->job_name, {}, o.run.run_file})));
  if (core::waits(plan))
    return fits_nowhere("the run", plan);
  const planned_run all{
    v,           plan,
    *run,        model::unit_layout(run->model).parameter_count(),
    where->name, std::move(text)};
  if (o.json)
    std::cout << model::json_text(plan_json(all)) << "\n";
  else
    std::cout << core::shown(plan_table(all), core::line_ends::kept);
  return exit_done;
}

} // namespace shoal::apps
