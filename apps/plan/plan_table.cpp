// apps/plan/plan_table.cpp -- a plan in numbers and in rows.
#include "apps/plan/plan_table.hpp"

#include "apps/common/memory_size.hpp"
#include "apps/plan/plan_words.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/jobs/plan_json.hpp"
#include "runtime/jobs/unheld_roles.hpp"

#include <algorithm>
#include <vector>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using runtime::json_table;

namespace {

/// Numbers of a run that follow from its predicted step.
struct figures {
  double step = 0, tokens_per_s = 0, run = 0, mfu = 0;
  std::uint64_t mflops = 0;
};

figures figures_of(const planned_run& p, const core::prediction& predicted) {
  figures f;
  f.step = std::max(double(predicted.step), 1.0) / 1e9;
  f.tokens_per_s =
    double(p.run.sequences_per_step()) * double(p.run.seq_len) / f.step;
  f.run = f.step * double(p.run.steps);
  f.mflops = core::mflops_of(p.view, p.island());
  if (const core::job_entry* job = core::find_job(p.view, p.place.job);
      job && f.mflops > 0)
    f.mfu = double(core::step_flops(*job)) / (f.step * double(f.mflops) * 1e6);
  return f;
}

const json_table<core::memory_kinds>& kinds_table() {
  using m = const core::memory_kinds&;
  static const json_table<core::memory_kinds> table{
    {"parameters", "whole number", "bytes", "weights",
     [](m v) { return json(v.parameters); }},
    {"gradients", "whole number", "bytes", "their gradients",
     [](m v) { return json(v.gradients); }},
    {"optimizer", "whole number", "bytes", "its two moments",
     [](m v) { return json(v.optimizer); }},
    {"activations", "whole number", "bytes", "kept for the backward pass",
     [](m v) { return json(v.activations); }},
    {"copies", "whole number", "bytes", "copies of other peers' state",
     [](m v) { return json(v.copies); }}};
  return table;
}

struct planned_stage {
  const core::view& in;
  const core::stage_place& is;
};

const json_table<planned_stage>& stage_table() {
  using s = const planned_stage&;
  static const json_table<planned_stage> table{
    {"peer", "text", "", "name of the peer that computes this stage",
     [](s v) { return json(name_of(v.in, v.is.lead())); }},
    {"kept_microbatches", "whole number", "",
     "under way in it at once, at most",
     [](s v) { return json(v.is.kept_max); }},
    {"first_layer", "whole number", "", "counted from 0",
     [](s v) { return json(v.is.first_block); }},
    {"last_layer", "whole number", "", "included",
     [](s v) { return json(std::int64_t{v.is.last_block} - 1); }}};
  return table;
}

struct planned_replica {
  const core::view& in;
  const core::replica_place& is;
};

json stages_json(const planned_replica& r) {
  json out = json::array();
  for (const core::stage_place& s : r.is.stages)
    out.push_back(runtime::written(stage_table(), {r.in, s}));
  return out;
}

const json_table<planned_replica>& replica_table() {
  using r = const planned_replica&;
  static const json_table<planned_replica> table{
    {"first_microbatch", "whole number", "", "of a step, counted from 0",
     [](r v) { return json(v.is.first_microbatch); }},
    {"last_microbatch", "whole number", "", "included",
     [](r v) { return json(std::int64_t{v.is.last_microbatch} - 1); }},
    {"stages", "list of objects", "", "in the order of the layers", stages_json,
     runtime::texts_of(stage_table())}};
  return table;
}

struct planned_memory {
  std::string peer;
  const core::prediction::need& need;
  std::uint64_t has;
  std::optional<core::memory_kinds> kinds;
};

const json_table<planned_memory>& memory_table() {
  using m = const planned_memory&;
  static const json_table<planned_memory> table{
    {"peer", "text", "", "its name", [](m v) { return json(v.peer); }},
    {"needs_bytes", "whole number", "bytes", "that the run takes there",
     [](m v) { return json(v.need.bytes); }},
    {"has_bytes", "whole number", "bytes",
     "that jobs may use there; 0: not known", [](m v) { return json(v.has); }},
    {"busy_seconds", "number", "s", "that it computes in a step",
     [](m v) { return json(double(v.need.busy) / 1e9); }},
    {"kinds", "object or null", "", "what it needs memory for",
     [](m v) {
       return v.kinds ? runtime::written(kinds_table(), *v.kinds) : json();
     },
     runtime::texts_of(kinds_table())}};
  return table;
}

/// A plan with the values derived from it.
struct whole_plan {
  const planned_run& is;
  const core::prediction& predicted;
  const core::job_entry* job;
  figures follows;
};

json replicas_json(const whole_plan& p) {
  json out = json::array();
  for (const core::replica_place& r : p.is.island().replicas)
    out.push_back(runtime::written(replica_table(), {p.is.view, r}));
  return out;
}

json memory_json(const whole_plan& p) {
  const auto has = core::memory_for_jobs(p.is.view, p.is.view.previous);
  const auto kinds = p.job ? core::memory_of(*p.job, p.is.island())
                           : std::map<core::member_id, core::memory_kinds>{};
  json out = json::array();
  for (const auto& need : p.predicted.members) {
    const auto at = has.find(need.where.peer);
    const auto by = kinds.find(need.where);
    planned_memory row{name_of(p.is.view, need.where),
                       need,
                       at == has.end() ? 0 : at->second,
                       {}};
    if (by != kinds.end())
      row.kinds = by->second;
    out.push_back(runtime::written(memory_table(), row));
  }
  return out;
}

const json_table<whole_plan>& whole_table() {
  using p = const whole_plan&;
  static const json_table<whole_plan> table{
    {"replicas", "list of objects", "",
     "copies of the model that train, each on its microbatches of a step",
     replicas_json, runtime::texts_of(replica_table())},
    {"schedule", "text", "", "of the pipeline",
     [](p v) { return json(core::to_text(v.is.island().schedule)); }},
    {"step_seconds", "number", "s", "predicted time of a step",
     [](p v) { return json(double(v.predicted.step) / 1e9); }},
    {"memory", "list of objects", "", "of each peer at work, or with a copy",
     memory_json, runtime::texts_of(memory_table())},
    {"parameters", "whole number", "", "of the model",
     [](p v) { return json(v.is.parameters); }},
    {"text", "object or null", "",
     "that the run trains on; null: none is named, or the shoal is a file's",
     [](p v) { return v.is.text ? text_json(*v.is.text) : json(nullptr); },
     text_fields()},
    {"tokens_per_s", "number", "tokens/s", "predicted",
     [](p v) { return json(v.follows.tokens_per_s); }},
    {"steps", "whole number", "", "training.steps",
     [](p v) { return json(v.is.run.steps); }},
    {"run_seconds", "number", "s", "predicted time of all steps",
     [](p v) { return json(v.follows.run); }},
    {"mfu", "number", "",
     "part, of 1, of what the peers at work were measured to reach",
     [](p v) { return json(v.follows.mfu); }},
    {"measured_mflops", "whole number", "MFLOP/s", "that is, in all",
     [](p v) { return json(v.follows.mflops); }},
    {"copies", "whole number", "",
     "peers that may die at once without losing a step, or at most copy_every "
     "steps if that is more than 1",
     [](p v) {
       return json(v.job ? core::holdings(v.is.island())
                               .least_copies(core::part_table(v.job->blocks))
                             - 1
                         : 0);
     }},
    {"copy_every", "whole number", "steps", "between copies of the state",
     [](p v) { return json(v.is.island().copy_every); }},
    {"wanted_copies", "whole number", "", "fault_tolerance.copies",
     [](p v) { return json(v.job ? v.job->want_copies : 0); }},
    {"unheld", "list of objects", "", "wishes that the plan does not fulfil",
     [](p v) { return runtime::unheld_json(v.is.view, v.is.place); },
     runtime::unheld_fields()},
    {"idle", "list of objects", "", "peers without work for the run",
     [](p v) { return runtime::idle_json(v.is.view, v.is.place); },
     runtime::idle_fields()}};
  return table;
}

/// "34 s", "12 min", "5 h 10 min", "3 days 4 h".
std::string duration(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (seconds < 10)
    return text("%.1f s", seconds);
  if (seconds < 2 * minute)
    return text("%.0f s", seconds);
  if (seconds < 2 * hour)
    return text("%.0f min", seconds / minute);
  if (seconds < 2 * day)
    return text("%d h %d min", int(seconds / hour),
                int((seconds - hour * int(seconds / hour)) / minute));
  return text("%.0f days %d h", double(long(seconds / day)),
              int((seconds - day * double(long(seconds / day))) / hour));
}

/// First and last of a range, shown with both ends.
struct range {
  std::int64_t first = -1, last = -1;
  void add(std::int64_t low, std::int64_t high) {
    first = first < 0 ? low : std::min(first, low);
    last = std::max(last, high);
  }
  std::string shown() const {
    if (first < 0)
      return "-";
    return first == last ? std::to_string(first)
                         : std::to_string(first) + "-" + std::to_string(last);
  }
};

/// Peers with the same work.
struct row {
  std::vector<std::string> names;
  std::vector<core::member_id> members; ///< of the names, which may be equal
  range replicas, stages, layers;
  std::int64_t layers_each = 0;
  std::int64_t microbatches = 0; ///< of a step, each peer
  bool same_layers = true;
  double busy = 0;
  std::uint64_t needs = 0, has = 0;
};

constexpr std::size_t names_wide = 18;

class table {
public:
  explicit table(const planned_run& p)
    : p_(p), predicted_(core::predict(p.view, p.place.job, p.island())),
      figures_(figures_of(p, predicted_)),
      has_(core::memory_for_jobs(p.view, p.view.previous)) {}

  std::string rows() {
    std::string out =
      text("%-18s %7s %7s %8s %8s %5s %21s\n", "PEERS", "REPLICA", "STAGE",
           "LAYERS", "BATCHES", "BUSY", "MEMORY, NEEDS / HAS");
    for (const row& r : collect())
      out +=
        text("%-18s %7s %7s %8s %8s %5s %21s\n",
             names_text(r.names, names_wide).c_str(),
             r.replicas.shown().c_str(), r.stages.shown().c_str(),
             several(r.layers, r.same_layers, r.layers_each).c_str(),
             r.stages.first < 0 ? "-" : std::to_string(r.microbatches).c_str(),
             r.stages.first < 0 ? "-" : text("%.0f %%", 100 * r.busy).c_str(),
             (memory_text(r.needs) + " / " + memory_text(r.has)).c_str());
    return out;
  }

private:
  static std::string several(const range& all, bool same, std::int64_t each) {
    if (all.first < 0 || same)
      return all.shown();
    return std::to_string(each) + " each";
  }

  /// Members in the order of their stages; consecutive ones with the same
  /// number of layers and microbatches and the same memory form one row.
  std::vector<row> collect() {
    struct place {
      std::uint32_t stage, replica;
      const core::stage_place* at;
    };
    std::vector<place> places;
    for (std::uint32_t r = 0; r < p_.island().replicas.size(); ++r)
      for (std::uint32_t s = 0; s < p_.island().replicas[r].stages.size(); ++s)
        places.push_back({s, r, &p_.island().replicas[r].stages[s]});
    std::ranges::stable_sort(places, {}, &place::stage);
    std::vector<row> out;
    for (const place& at : places)
      add(out, at.stage, at.replica, *at.at);
    for (const auto& need : predicted_.members) {
      const auto at_work = core::workers(p_.island().replicas);
      if (!std::ranges::binary_search(at_work, need.where))
        add_holder(out, need);
    }
    return out;
  }

  void add(std::vector<row>& out, std::uint32_t stage, std::uint32_t replica,
           const core::stage_place& s) const {
    const core::replica_place& r = p_.island().replicas[replica];
    row now;
    now.names = {name_of(p_.view, s.lead())};
    now.members = {s.lead()};
    now.replicas.add(replica, replica);
    now.stages.add(stage, stage);
    if (s.first_block < s.last_block)
      now.layers.add(s.first_block, std::int64_t{s.last_block} - 1);
    now.layers_each = std::int64_t{s.last_block} - s.first_block;
    now.microbatches = std::int64_t{r.last_microbatch} - r.first_microbatch;
    fill(now, s.lead());
    for (row& known : out)
      if (known.stages.first >= 0 && alike(known, now)
          && known.stages.last + 1 >= now.stages.first
          && known.replicas.last + 1 >= now.replicas.first)
        return merge(known, now);
    out.push_back(std::move(now));
  }

  /// Numbers that are shown must be close, too.
  static bool alike(const row& a, const row& b) {
    const auto near = [](double x, double y) {
      return std::max(x, y) <= 1.25 * std::min(x, y);
    };
    return a.layers_each == b.layers_each && a.microbatches == b.microbatches
           && a.has == b.has && near(a.busy, b.busy)
           && near(double(a.needs), double(b.needs));
  }

  static void merge(row& into, const row& from) {
    if (std::ranges::find(into.members, from.members.front())
        == into.members.end()) {
      into.names.push_back(from.names.front());
      into.members.push_back(from.members.front());
    }
    into.same_layers = into.same_layers
                       && into.layers.first == from.layers.first
                       && into.layers.last == from.layers.last;
    into.replicas.add(from.replicas.first, from.replicas.last);
    into.stages.add(from.stages.first, from.stages.last);
    if (from.layers.first >= 0)
      into.layers.add(from.layers.first, from.layers.last);
    into.busy = std::max(into.busy, from.busy);
    into.needs = std::max(into.needs, from.needs);
  }

  void
  add_holder(std::vector<row>& out, const core::prediction::need& need) const {
    row now;
    now.names = {name_of(p_.view, need.where) + " (copy)"};
    fill(now, need.where);
    for (row& known : out)
      if (known.stages.first < 0 && alike(known, now)) {
        known.names.push_back(now.names.front());
        return;
      }
    out.push_back(std::move(now));
  }

  void fill(row& r, const core::member_id& who) const {
    for (const auto& need : predicted_.members)
      if (need.where == who) {
        r.needs = need.bytes;
        r.busy = double(need.busy) / 1e9 / figures_.step;
      }
    if (const auto at = has_.find(who.peer); at != has_.end())
      r.has = at->second;
  }

  const planned_run& p_;
  core::prediction predicted_;
  figures figures_;
  core::memory_by_peer has_;
};

std::string memory_rows(const planned_run& p) {
  const core::job_entry* job = core::find_job(p.view, p.place.job);
  if (!job)
    return {};
  core::memory_kinds most, all;
  std::uint64_t largest = 0;
  for (const auto& [who, m] : core::memory_of(*job, p.island())) {
    if (m.sum() >= largest) {
      largest = m.sum();
      most = m;
    }
    all.parameters += m.parameters;
    all.gradients += m.gradients;
    all.optimizer += m.optimizer;
    all.activations += m.activations;
    all.copies += m.copies;
  }
  std::string out =
    text("%-20s %16s %16s\n", "MEMORY FOR", "FULLEST PEER", "ALL PEERS");
  const auto line = [&](const char* what, std::uint64_t one,
                        std::uint64_t sum) {
    out += text("%-20s %16s %16s\n", what, memory_text(one).c_str(),
                memory_text(sum).c_str());
  };
  line("parameters", most.parameters, all.parameters);
  line("gradients", most.gradients, all.gradients);
  line("optimizer", most.optimizer, all.optimizer);
  line("activations", most.activations, all.activations);
  line("copies of the state", most.copies, all.copies);
  line("in all", most.sum(), all.sum());
  return out;
}

std::string reasons(const planned_run& p) {
  std::string out;
  for (const core::unheld_wish& w : runtime::unheld_of(p.view, p.place))
    out += wrapped("not as asked: " + core::to_text(w));
  if (const auto slow = core::slow_network_of(p.view, p.place.job, p.island()))
    out += wrapped(core::to_text(p.view, *slow));
  return out + idle_lines(p.view, p.place);
}

} // namespace

json plan_json(const planned_run& p) {
  const core::prediction predicted =
    core::predict(p.view, p.place.job, p.island());
  return runtime::written<whole_plan>(
    whole_table(), {p, predicted, core::find_job(p.view, p.place.job),
                    figures_of(p, predicted)});
}

std::vector<runtime::field_text> plan_fields() {
  return runtime::texts_of(whole_table());
}

std::string plan_table(const planned_run& p) {
  const core::prediction predicted =
    core::predict(p.view, p.place.job, p.island());
  const figures f = figures_of(p, predicted);
  const core::job_entry* job = core::find_job(p.view, p.place.job);
  const std::size_t replicas = p.island().replicas.size();
  const std::size_t stages = p.island().replicas.front().stages.size();
  std::string out =
    wrapped(core::large_text(double(p.parameters)) + " parameters on "
            + core::shown(p.where)
            + text(": %zu replica%s", replicas, replicas == 1 ? "" : "s")
            + (stages > 1 ? text(" of %zu stages, schedule %s", stages,
                                 core::to_text(p.island().schedule))
                          : std::string{}));
  out += wrapped(
    text("predicted step time %.3f s, %.0f tokens/s; ", f.step, f.tokens_per_s)
    + duration(f.run) + text(" for %lld steps", (long long)p.run.steps));
  if (p.text)
    out += wrapped("text: " + to_text(*p.text));
  const bool fast = f.mflops >= 10'000'000;
  out += wrapped(text("MFU %.0f %% of the %.1f %s that the peers at work were "
                      "measured to reach",
                      100 * f.mfu, double(f.mflops) / (fast ? 1e6 : 1e3),
                      fast ? "TFLOP/s" : "GFLOP/s"));
  const std::uint32_t copies =
    job ? core::holdings(p.island()).least_copies(core::part_table(job->blocks))
            - 1
        : 0;
  const std::uint32_t every = p.island().copy_every;
  const bool asked = job && job->want_copy_every > 0;
  out +=
    copies == 0
      ? wrapped("the state is on one peer each: a death costs the steps "
                "since the last checkpoint")
    : every > 1
      ? wrapped(text("the state is in memory on %u peers, copied every %u "
                     "steps%s%s: %u may die at once, and up to %u steps are "
                     "run again",
                     copies + 1, every, asked ? "" : ", as ",
                     asked ? "" : core::rare_copies_cause, copies, every))
      : wrapped(text("the state is in memory on %u peers: %u may die at "
                     "once without losing a step",
                     copies + 1, copies));
  return out + reasons(p) + "\n" + table(p).rows() + "\n" + memory_rows(p);
}

} // namespace shoal::apps
