// apps/train/cmd_audit.cpp -- audit: checks which samples a run has used.
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/common/metrics_log.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/slow_work.hpp"
#include "apps/train/follow.hpp" // checkpoints
#include "apps/train/run_record.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/data/corpus.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace shoal::apps {
namespace {

int refuse(const std::string& why, int code = exit_failed) {
  std::cerr << "shoal: " << why << "\n";
  return code;
}

/// "1 to 22, 31, 40 to 44 and 9 more"; ascending numbers
std::string ranges_text(const core::findings& all) {
  constexpr std::size_t shown = 5;
  std::string out;
  std::size_t named = 0;
  for (std::size_t ranges = 0; named < all.listed.size() && ranges < shown;
       ++ranges) {
    const std::uint64_t first = all.listed[named++];
    std::uint64_t last = first;
    while (named < all.listed.size() && all.listed[named] == last + 1)
      last = all.listed[named++];
    out += (ranges == 0 ? "" : ", ") + std::to_string(first);
    if (last > first)
      out += " to " + std::to_string(last);
  }
  if (all.count > named)
    out += " and " + std::to_string(all.count - named) + " more";
  return out;
}

/// The steps that the log has.
struct step_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Adds the steps that the run has before and after those of its log.
/// @param newest  step of its newest checkpoint; 0: there is none
void add_missing(core::audit& a, const step_range& log, std::uint64_t first,
                 std::uint64_t newest) {
  const core::findings between = std::move(a.missing);
  a.missing = {};
  if (first < log.first)
    a.missing.add(first, log.first);
  for (const std::uint64_t step : between.listed)
    if (a.missing.listed.size() < core::findings::listed_max)
      a.missing.listed.push_back(step);
  a.missing.count += between.count;
  if (newest > log.last)
    a.missing.add(log.last + 1, newest + 1);
}

struct verdict {
  const core::audit& of;
  const core::findings& impossible;
  step_range log;
  std::uint64_t later; ///< steps after the newest checkpoint
  bool same_text;

  bool proven() const { return of.proven() && impossible.count == 0; }
};

const runtime::json_table<verdict>& verdict_table() {
  using json = runtime::json_value;
  using v = const verdict&;
  static const runtime::json_table<verdict> table{
    {"first_step", "whole number", "", "the first that metrics.jsonl names",
     [](v a) { return json(a.log.first); }},
    {"last_step", "whole number", "", "the last that counts",
     [](v a) { return json(a.log.last); }},
    {"steps", "whole number", "", "that were committed",
     [](v a) { return json(a.of.steps); }},
    {"samples", "whole number", "", "that they used",
     [](v a) { return json(a.of.samples); }},
    {"data_epochs", "whole number", "", "times that all of the text was used",
     [](v a) { return json(a.of.epochs); }},
    {"later", "whole number", "",
     "steps after the newest checkpoint: no model here has them, and they are "
     "not counted",
     [](v a) { return json(a.later); }},
    {"missing", "list of whole numbers", "",
     "steps that are missing, from the run's first to its newest checkpoint",
     [](v a) { return json(a.of.missing.listed); }},
    {"other", "list of whole numbers", "",
     "steps that used other samples than their own",
     [](v a) { return json(a.of.other.listed); }},
    {"unknown", "list of whole numbers", "",
     "steps whose samples are not known",
     [](v a) { return json(a.of.unknown.listed); }},
    {"repeated", "list of whole numbers", "",
     "samples that were used twice in a data epoch",
     [](v a) { return json(a.of.repeated.listed); }},
    {"same_text", "true or false", "",
     "whether the text is the one that the run was given",
     [](v a) { return json(a.same_text); }},
    {"impossible_lines", "list of whole numbers", "",
     "lines of metrics.jsonl that this run cannot have written",
     [](v a) { return json(a.impossible.listed); }},
    {"findings", "whole number", "",
     "of all five lists, which name the first ones only",
     [](v a) {
       return json(a.of.missing.count + a.of.other.count + a.of.unknown.count
                   + a.of.repeated.count + a.impossible.count);
     }},
    {"proven", "true or false", "", "whether each sample was used exactly once",
     [](v a) { return json(a.proven()); }}};
  return table;
}

void print(const verdict& v, const runtime::run_config& run) {
  const core::audit& a = v.of;
  const auto count = [](auto of, const char* what) {
    return core::count_text(std::uint64_t(of), what);
  };
  const std::string text =
    count(a.steps, "step") + " (" + std::to_string(v.log.first) + " to "
    + std::to_string(v.log.last) + ") of "
    + count(run.sequences_per_step(), "sequence") + " of "
    + count(run.seq_len, "token") + ": " + count(a.samples, "sample") + ", "
    + count(a.epochs, "data epoch") + " complete";
  std::puts(text.c_str());
  auto say = [](const char* what, const core::findings& which) {
    if (which.count > 0)
      std::printf("%s: %s\n", what, ranges_text(which).c_str());
  };
  if (v.later > 0)
    std::printf("%s after step %llu: no model here has them, and they are not "
                "counted\n",
                core::count_text(v.later, "step").c_str(),
                (unsigned long long)v.log.last);
  if (v.log.first > 1 && (a.missing.count == 0 || a.missing.listed[0] > 1))
    std::printf("%s before step %llu: this folder does not have them, and "
                "nothing is said of them\n",
                core::count_text(v.log.first - 1, "step").c_str(),
                (unsigned long long)v.log.first);
  say("steps that are missing", a.missing);
  say("steps that used other samples than their own", a.other);
  say("steps whose samples are not known", a.unknown);
  say("samples used twice in a data epoch", a.repeated);
  if (!v.same_text)
    std::printf("the text is not the one that the run was given: give that by "
                "--data\n");
  say("lines of metrics.jsonl that this run cannot have written", v.impossible);
  if (v.proven())
    std::printf("proven: each step was committed with its own samples, none "
                "left out, none twice\n");
  else if (a.missing.count > 0)
    std::printf(
      "not proven: %s %s missing\n", a.missing.count > 1 ? "steps" : "step",
      (ranges_text(a.missing) + (a.missing.count > 1 ? " are" : " is"))
        .c_str());
  else
    std::printf("not proven\n");
}

/// How to get the steps that another peer knows. @param jobs  of the run, oldest first;
/// those before the newest are refused in its folder
std::string elsewhere(const std::vector<std::string>& jobs,
                      const std::filesystem::path& folder) {
  const std::string key =
    " (add --cluster-key FILE if its node was started with one)\n";
  const auto attach = [](const std::string& job, const std::string& out) {
    return "`shoal attach " + job + " --peer ADDRESS --out " + out + "`";
  };
  const std::string newest = attach(jobs.back(), shell_word(folder.string()));
  if (jobs.size() == 1)
    return "the log of another peer may have them: " + newest
           + " adds those that it has" + key;
  const std::vector<std::string> before(jobs.begin(), jobs.end() - 1);
  return "the log of another peer may have them: " + newest
         + " adds those of the newest job. Steps of an earlier one ("
         + core::listed(before) + ") cannot be added here any more: "
         + attach("JOB", "DIR") + ", into another folder, writes those" + key;
}

} // namespace

std::vector<runtime::field_text> audit_fields() {
  return runtime::texts_of(verdict_table());
}

int run_audit(const audit_options& o) {
  if (auto fine = check_data(o.data); !fine)
    return refuse(fine.message(), exit_usage);
  auto record = read_record(o.out);
  if (!record)
    return refuse(record.message()
                  + ": `shoal audit` needs the folder that `shoal train` or "
                    "`shoal attach` has written");
  record->run = with_paths_from_here(*record);
  runtime::run_config* const run = &record->run;
  if (!o.data.empty())
    run->data_paths = o.data;
  const auto saved = checkpoints(o.out);
  const std::uint64_t newest =
    saved.empty() ? 0 : std::uint64_t(saved.back().first);
  const auto metrics = o.out / "metrics.jsonl";
  std::error_code none;
  if (!std::filesystem::exists(metrics, none))
    return refuse("there is no " + metrics.string() + ", which lists the steps"
                  + (record->jobs.empty()
                       ? std::string()
                       : ": if `shoal jobs` lists job " + record->jobs.back()
                           + ", `shoal attach " + record->jobs.back()
                           + " --out " + shell_word(o.out.string())
                           + "` writes it again"));
  std::ifstream in(metrics, std::ios::binary);
  auto [log, impossible] =
    read_metrics(in, std::uint64_t(record->steps_max), newest);
  if (!in.eof())
    return refuse(metrics.string() + " cannot be read");
  if (log.empty())
    return refuse(metrics.string() + " has no steps of this run");
  // What came after the newest checkpoint was given up, or is not saved yet.
  std::uint64_t later = 0;
  if (newest >= log.front().step)
    later = std::erase_if(
      log, [&](const core::used_data& u) { return u.step > newest; });
  // A run that has not ended has its tokenizer in its checkpoints alone.
  const bool in_checkpoint =
    !saved.empty()
    && std::filesystem::exists(saved.back().second / "tokenizer.json", none);
  const auto text = read_text(*run, in_checkpoint ? saved.back().second : o.out,
                              nullptr, shown_work([] { return true; }));
  if (!text)
    return refuse("data: " + text.message()
                  + (o.data.empty() ? ": if the text is elsewhere on this "
                                      "machine, name it by --data; an audit "
                                      "needs the text"
                                    : ""));
  const bool same_text =
    record->text.empty()
    || record->text == core::to_hex(runtime::sha256(model::serialise(*text)));
  const auto length = std::size_t(run->seq_len);
  const std::uint64_t windows = core::windows_in(text->train_size(), length);
  if (windows == 0)
    return refuse("data: fewer tokens than training.seq_len + 1");
  const core::data_order order(std::uint64_t(run->seed), windows,
                               std::uint32_t(run->sequences_per_step()));
  core::audit a = core::audit_run(
    order, std::uint32_t(run->microbatches_per_step()), length, log,
    [&](std::uint64_t window, std::span<std::int32_t> targets) {
      text->copy_train(window * length + 1, targets);
    });
  const step_range range{log.front().step, log.back().step};
  // A job that was attached to may have been resumed from another folder's
  // checkpoint: its own first step is not known.
  const bool attached = record->attached || record->folder.empty();
  add_missing(a, range, attached ? range.first : 1, newest);
  const verdict found{a, impossible, range, later, same_text};
  if (o.json) {
    std::printf(
      "%s\n",
      model::json_text(runtime::written(verdict_table(), found)).c_str());
  } else {
    print(found, *run);
    if (a.missing.count > 0 && !record->jobs.empty())
      std::printf("%s", elsewhere(record->jobs, o.out).c_str());
  }
  return found.proven() ? 0 : 1;
}

} // namespace shoal::apps
