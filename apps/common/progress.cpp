// apps/common/progress.cpp -- writes one line per event.
#include "apps/common/progress.hpp"

#include "apps/common/json_documents.hpp"
#include "apps/common/metrics_log.hpp"
#include "apps/terminal/terminal.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/jobs/event_json.hpp"
#include "runtime/observe/metrics_jsonl.hpp"
#include "runtime/observe/tensorboard.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <tuple>

namespace shoal::apps {

using runtime::job_event;
using runtime::job_event_kind;

namespace {

/// Limit of notices before a job has an id: a few about text, node and folder.
/// A command that writes no files keeps only that many.
constexpr std::size_t early_max = 100;

/// Kinds of events that a command adds, besides notices, which are like those
/// of a job.
struct said_kind {
  std::string_view name;
  const char* meaning;
};
constexpr said_kind said_kinds[] = {
  {"corpus", "what text was read"},
  {"bigram", "held-out loss of a byte-bigram model (--bigram)"},
  {"submitted", "the shoal has the job (--detach)"},
};

struct said_line {
  const std::string& event;
  const std::string& text;
  const std::string& job;
  std::int64_t unix_ms;
};

const runtime::json_table<said_line>& said_table() {
  using json = runtime::json_value;
  using s = const said_line&;
  static const runtime::json_table<said_line> table{
    {"event", "text", "", "which kind of event this is",
     [](s v) { return json(v.event); }},
    {"text", "text", "", "the line, in words",
     [](s v) { return json(v.text); }},
    {"job", "text, optional", "",
     "its id, 16 hexadecimal digits; with `submitted`",
     [](s v) { return v.job.empty() ? runtime::left_out() : json(v.job); }},
    {"unix_ms", "whole number", "ms", "when, since 1970 (UTC)",
     [](s v) { return json(v.unix_ms); }}};
  return table;
}

const runtime::json_table<runtime::run_config>& config_table() {
  using json = runtime::json_value;
  using run = const runtime::run_config&;
  static const runtime::json_table<runtime::run_config> table{
    {"event", "text", "", "`config`", [](run) { return json("config"); }},
    {"run", "object", "", "all keys of the run, by section, resolved",
     [](run r) { return model::parse_json<json>(runtime::to_json(r)); }}};
  return table;
}

/// Consecutive jobs that train one run have an end each.
runtime::event_key identity_of(const job_event& e) {
  runtime::event_key key = runtime::key_of(e);
  if (e.kind == job_event_kind::done)
    std::get<1>(key) = e.step;
  return key;
}

std::string clock_text(double seconds) {
  char text[32];
  const long s = std::lround(seconds);
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60,
                  s % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  return text;
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// The figures of a step. One that is wider than a terminal could not be rewritten,
/// as it has several lines there.
class step_line {
public:
  /// @param spare  which go first where there is no room: the largest; 0: none
  void add(std::string figure, int spare = 0) {
    figures_.push_back({std::move(figure), spare});
  }
  std::string text() const {
    std::string out;
    for (const auto& [figure, spare] : figures_)
      out += (out.empty() ? "" : "  ") + figure;
    return out;
  }
  /// The same, so short that the cursor has a column after it.
  std::string text(std::size_t columns) const {
    step_line left = *this;
    while (left.text().size() >= columns) {
      const auto most =
        std::ranges::max_element(left.figures_, {}, &part::spare);
      if (most == left.figures_.end() || most->spare == 0)
        return left.text().substr(0, columns > 0 ? columns - 1 : 0);
      left.figures_.erase(most);
    }
    return left.text();
  }

private:
  struct part {
    std::string figure;
    int spare;
  };
  std::vector<part> figures_;
};

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::system_error(error, "the folder cannot be made");
}

} // namespace

std::vector<runtime::event_text> said_events() {
  std::vector<runtime::event_text> out{
    {"config", "what is about to run: the first line of `train`",
     runtime::texts_of(config_table())}};
  for (const said_kind& kind : said_kinds)
    out.push_back(
      {std::string(kind.name), kind.meaning, runtime::texts_of(said_table())});
  return out;
}

progress::progress(const runtime::run_config& run, bool as_json)
  : run_(run), json_(as_json),
    terminal_(!as_json && isatty(STDOUT_FILENO) == 1) {
}

progress::~progress() {
  settle();
}

void progress::write_to(const std::filesystem::path& out, bool replayed) {
  if (replayed) {
    std::ifstream in(out / "metrics.jsonl", std::ios::binary);
    job_event e;
    for (std::string line; next_metrics_line(in, line);)
      if (runtime::from_json_line(line, e)) {
        if (begins_job(e)) // another shoal may have counted epochs anew
          recorded_.clear();
        recorded_.insert(identity_of(e));
      }
  }
  metrics_ = std::make_unique<runtime::metrics_jsonl>(out / "metrics.jsonl");
  if (run_.enable_tensorboard) {
    make_folder(out / "tb");
    tensorboard_ = std::make_unique<runtime::tensorboard_writer>(
      out / "tb", std::int64_t(std::time(nullptr)));
  }
  for (const job_event& e : early_)
    record(e);
  early_.clear();
}

/// Writes to the files. A full disk must not end the watching.
void progress::record(const job_event& e) {
  if (!recorded_.empty() && !recorded_.insert(identity_of(e)).second)
    return;
  if (metrics_)
    static_cast<void>(metrics_->add(e));
  if (tensorboard_)
    static_cast<void>(tensorboard_->add(e));
}

void progress::settle() {
  std::lock_guard lock(lines_);
  if (open_line_)
    std::cout << "\n" << std::flush;
  open_line_ = false;
}

void progress::aside(const std::string& text) {
  std::lock_guard lock(lines_);
  if (open_line_)
    std::cout << "\r\x1b[K" << std::flush;
  open_line_ = false;
  std::cerr << text << std::endl;
}

void progress::lasting(const std::string& text) {
  std::lock_guard lock(lines_);
  if (open_line_)
    std::cout << "\r\x1b[K";
  open_line_ = false;
  std::cout << core::shown(text, core::line_ends::kept) << std::endl;
}

void progress::say(const std::string& event, const std::string& text,
                   const std::string& job) {
  job_event kept; // a notice
  kept.text = text;
  kept.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  if (metrics_)
    record(kept);
  else if (early_.size() < early_max)
    early_.push_back(kept);
  if (!json_)
    return lasting(text);
  if (event == "notice") {
    std::cout << runtime::to_json_line(kept) << std::endl;
    return;
  }
  SHOAL_ASSERT(std::ranges::count(said_kinds, event, &said_kind::name) == 1);
  std::cout << model::json_text(
    runtime::written<said_line>(said_table(), {event, text, job, kept.unix_ms}))
            << std::endl;
}

void progress::say_config() {
  if (json_)
    std::cout << model::json_text(runtime::written(config_table(), run_))
              << std::endl;
}

void progress::step(const job_event& e) {
  if (e.bubble > 0) {
    bubble_sum_ += e.bubble;
    ++bubble_steps_;
  }
  const double tokens = double(run_.sequences_per_step() * run_.seq_len);
  if (e.tokens_per_s > 0) {
    const double now = tokens / e.tokens_per_s;
    seconds_per_step_ =
      seconds_per_step_ == 0 ? now : 0.9 * seconds_per_step_ + 0.1 * now;
  }
  const bool last = std::int64_t(e.step) == run_.steps;
  if (!terminal_ && !last && std::int64_t(e.step) % run_.log_freq != 0)
    return;
  step_line line;
  line.add("step " + std::to_string(e.step) + "/" + std::to_string(run_.steps));
  line.add(printed("loss %.4f", core::printable(e.loss)));
  line.add(printed("grad_norm %.3f", core::printable(e.grad_norm)), 2);
  line.add(printed("lr %.2e", e.lr), 3);
  if (e.tokens_per_s > 0) // else this step was caught up with
    line.add(printed("%.0f tokens/s", e.tokens_per_s), 1);
  if (seconds_per_step_ > 0)
    line.add("ETA "
             + clock_text(seconds_per_step_
                          * double(run_.steps - std::int64_t(e.step))));
  std::lock_guard lock(lines_);
  if (!terminal_) {
    std::cout << line.text() << std::endl;
    return;
  }
  const auto size = stdout_size();
  std::cout << "\r\x1b[K"
            << (size ? line.text(std::size_t(size->columns)) : line.text())
            << std::flush;
  open_line_ = true;
}

void progress::keep(const job_event& e) {
  record(e);
  if (json_)
    std::cout << runtime::to_json_line(e) << std::endl;
}

void progress::show(const job_event& e, bool late) {
  keep(e);
  if (json_)
    return;
  // Of a step that is past only the files take note.
  if (late && e.kind == job_event_kind::step)
    return;
  const std::string before = late ? "earlier: " : "";
  char text[160];
  switch (e.kind) {
  case job_event_kind::step:
    step(e);
    break;
  case job_event_kind::view:
    lasting(before + "view " + std::to_string(e.epoch)
            + (e.cause.empty() ? "" : " (" + e.cause + ")") + ": "
            + core::count_text(e.peers, "peer") + "; " + e.text);
    break;
  case job_event_kind::eval:
    std::snprintf(text, sizeof text,
                  "step %llu  held-out loss %.4f  perplexity %.3f",
                  (unsigned long long)e.step, core::printable(e.loss),
                  std::exp(core::printable(e.loss)));
    lasting(before + text);
    break;
  case job_event_kind::checkpoint:
    lasting(before + "checkpoint of step " + std::to_string(e.step)
            + (e.text.empty() ? "" : " in " + e.text));
    break;
  case job_event_kind::notice:
    lasting(before + e.text);
    break;
  case job_event_kind::done:
    std::snprintf(
      text, sizeof text, "; devices waited in %.1f %% of the computing time",
      bubble_sum_ / double(std::max<std::uint64_t>(1, bubble_steps_)));
    lasting(e.text + " after step " + std::to_string(e.step)
            + (bubble_steps_ > 0 ? text : ""));
    break;
  }
}

} // namespace shoal::apps
