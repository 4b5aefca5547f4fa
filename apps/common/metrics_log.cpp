// apps/common/metrics_log.cpp -- reads a log line by line.
#include "apps/common/metrics_log.hpp"

#include "runtime/jobs/event_json.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace shoal::apps {

bool next_metrics_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  for (;;) {
    const int c = bytes.sbumpc();
    if (c == std::istream::traits_type::eof()) {
      in.setstate(line.empty() ? std::ios::eofbit | std::ios::failbit
                               : std::ios::eofbit);
      return !line.empty();
    }
    if (c == '\n')
      return true;
    if (line.size() <= metrics_line_bytes_max)
      line.push_back(static_cast<char>(c));
  }
}

bool begins_job(const runtime::job_event& event) {
  return event.kind == runtime::job_event_kind::notice && event.step == 0
         && event.epoch == 0 && event.text.starts_with(resuming_text);
}

namespace {

/// Plans by age: the number of the job among those of the run, and the epoch.
using plan = std::pair<std::uint64_t, std::uint64_t>;

struct entry {
  std::uint64_t data;
  std::int64_t unix_ms;
};
/// What one plan has made, by step.
using plan_steps = std::map<std::uint64_t, entry>;
using plans = std::map<plan, plan_steps>; // none is empty

void add(plan_steps& of, const runtime::job_event& step) {
  const auto [at, fresh] =
    of.try_emplace(step.step, entry{step.data, step.unix_ms});
  if (fresh)
    return;
  if (at->second.unix_ms != step.unix_ms) // else the same line once more
    of.erase(std::next(at), of.end());
  at->second = {step.data, step.unix_ms};
}

/// The newest plan that reached `step`, else the newest one. @pre there is one
plan last_plan(const plans& all, std::uint64_t step) {
  for (auto at = all.rbegin(); at != all.rend(); ++at)
    if (at->second.rbegin()->first >= step)
      return at->first;
  return all.rbegin()->first;
}

/// `recover --force` adds twice this to the epochs (force_skip in core/cluster),
/// and no shoal makes this many plans before the two meet.
constexpr std::uint64_t shoals_apart = 500'000;

/// @pre a <= b
bool of_one_shoal(const plan& a, const plan& b) {
  return a.first == b.first && b.second - a.second < shoals_apart;
}

/// Whether this step of a plan was made in vain: a newer plan of the same shoal,
/// up to the one that made the next step, began at or before it.
/// @pre of <= after
bool is_given_up(const plans& all, const plan& of, std::uint64_t step,
                 const plan& after) {
  return of_one_shoal(of, after)
         && std::any_of(all.upper_bound(of), all.upper_bound(after),
                        [&](const auto& newer) {
                          return newer.second.begin()->first <= step;
                        });
}

/// The steps of the model, from its last one back.
std::vector<core::used_data> model_steps(const plans& all, const plan& last) {
  using line = std::tuple<std::uint64_t, plan, std::uint64_t>;
  const std::uint64_t end = all.at(last).rbegin()->first;
  std::vector<line> lines; // step, plan, data
  for (const auto& [of, steps] : all)
    for (const auto& [step, is] : steps)
      if (of <= last && step <= end)
        lines.emplace_back(step, of, is.data);
  std::ranges::sort(lines, std::greater());
  std::vector<core::used_data> out;
  plan after = last;
  for (const auto& [step, of, data] : lines)
    if (of <= after && (out.empty() || step < out.back().step)
        && !is_given_up(all, of, step, after)) {
      out.push_back({step, data});
      after = of;
    }
  return out;
}

} // namespace

metrics_log
read_metrics(std::istream& in, std::uint64_t steps, std::uint64_t newest) {
  plans all;
  std::uint64_t job = 0;
  metrics_log out;
  runtime::job_event event;
  std::string line;
  for (std::uint64_t number = 1; next_metrics_line(in, line); ++number) {
    const bool known = line.size() <= metrics_line_bytes_max
                       && runtime::from_json_line(line, event);
    const bool step = known && event.kind == runtime::job_event_kind::step;
    if (!known || (step && (event.step == 0 || event.step > steps)))
      out.impossible.add(number);
    else if (step)
      add(all[{job, event.epoch}], event);
    else if (begins_job(event))
      ++job;
  }
  if (all.empty())
    return out;
  out.steps = model_steps(all, last_plan(all, newest));
  std::ranges::reverse(out.steps);
  return out;
}

} // namespace shoal::apps
