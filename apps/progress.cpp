// apps/progress.cpp -- one line per event.
#include "apps/progress.hpp"

#include "runtime/core/shown.hpp"
#include "runtime/metrics/event_json.hpp"
#include "runtime/metrics/metrics_jsonl.hpp"
#include "runtime/metrics/tensorboard.hpp"
#include "runtime/model/json.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>

namespace shoal::apps {

using runtime::job_event;
using runtime::job_event_kind;

namespace {

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

} // namespace

progress::progress(const runtime::run_config& run,
                   const std::filesystem::path& out, bool as_json)
  : run_(run), json_(as_json),
    terminal_(!as_json && isatty(STDOUT_FILENO) == 1) {
  if (out.empty())
    return;
  std::filesystem::create_directories(out);
  metrics_ = std::make_unique<runtime::metrics_jsonl>(out / "metrics.jsonl");
  if (run.enable_tensorboard) {
    std::filesystem::create_directories(out / "tb");
    tensorboard_ = std::make_unique<runtime::tensorboard_writer>(
      out / "tb", std::int64_t(std::time(nullptr)));
  }
}

progress::~progress() {
  settle();
}

void progress::settle() {
  if (open_line_)
    std::cout << "\n" << std::flush;
  open_line_ = false;
}

void progress::lasting(const std::string& text) {
  if (open_line_)
    std::cout << "\r\x1b[K";
  open_line_ = false;
  std::cout << core::shown(text, core::line_ends::kept) << std::endl;
}

void progress::say(const std::string& event, const std::string& text,
                   const std::string& job) {
  job_event kept; // a notice; a full disk must not end the watching
  kept.text = text;
  kept.unix_ms = std::int64_t(std::time(nullptr)) * 1000;
  if (metrics_)
    static_cast<void>(metrics_->add(kept));
  if (!json_)
    return lasting(text);
  nlohmann::ordered_json line{{"event", event}, {"text", text}};
  if (!job.empty())
    line["job"] = job;
  std::cout << model::json_text(line) << std::endl;
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
  char text[200];
  std::snprintf(
    text, sizeof text,
    "step %llu/%lld  loss %.4f  grad_norm %.3f  lr %.2e  "
    "%.0f tokens/s  ETA %s",
    (unsigned long long)e.step, (long long)run_.steps, e.loss, e.grad_norm,
    e.lr, e.tokens_per_s,
    clock_text(seconds_per_step_ * double(run_.steps - std::int64_t(e.step)))
      .c_str());
  if (!terminal_) {
    std::cout << text << std::endl;
    return;
  }
  std::cout << "\r\x1b[K" << text << std::flush;
  open_line_ = true;
}

void progress::show(const job_event& e) {
  // A full disk must not end the watching.
  if (metrics_)
    static_cast<void>(metrics_->add(e));
  if (tensorboard_)
    static_cast<void>(tensorboard_->add(e));
  if (json_) {
    std::cout << runtime::to_json_line(e) << std::endl;
    return;
  }
  char text[160];
  switch (e.kind) {
  case job_event_kind::step:
    step(e);
    break;
  case job_event_kind::view:
    lasting("view " + std::to_string(e.epoch) + ": " + std::to_string(e.peers)
            + (e.peers == 1 ? " peer; " : " peers; ") + e.text);
    break;
  case job_event_kind::eval:
    std::snprintf(text, sizeof text,
                  "step %llu  held-out loss %.4f  perplexity %.3f",
                  (unsigned long long)e.step, e.loss, std::exp(e.loss));
    lasting(text);
    break;
  case job_event_kind::checkpoint:
    lasting("checkpoint of step " + std::to_string(e.step)
            + (e.text.empty() ? "" : " in " + e.text));
    break;
  case job_event_kind::notice:
    lasting(e.text);
    break;
  case job_event_kind::done:
    std::snprintf(
      text, sizeof text, "; peers idled %.1f %% of the computing time",
      bubble_sum_ / double(std::max<std::uint64_t>(1, bubble_steps_)));
    lasting(e.text + " after step " + std::to_string(e.step)
            + (bubble_steps_ > 0 ? text : ""));
    break;
  }
}

} // namespace shoal::apps
