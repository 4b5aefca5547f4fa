// apps/chaos/cmd_chaos.cpp -- chaos: harms a shoal while it trains.
//
// Nodes run in processes of their own (chaos_nodes), with networks that can be
// cut if the system allows that (chaos_network). A first job, without faults,
// measures the capacity; during a second one faults come one at a time, each
// when the shoal is complete again. chaos.hpp chooses the faults and computes
// the result.
#include "apps/chaos/chaos.hpp"
#include "apps/chaos/chaos_events.hpp"
#include "apps/chaos/chaos_job.hpp"
#include "apps/chaos/chaos_nodes.hpp"
#include "apps/chaos/chaos_report.hpp"
#include "apps/chaos/chaos_run.hpp"
#include "apps/common/commands.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/terminal/signals.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/host/host_limits.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

namespace shoal::apps {

namespace fs = std::filesystem;
namespace chaos = core::chaos;
using core::nanoseconds;
using json = nlohmann::ordered_json;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

constexpr nanoseconds second = 1'000'000'000;
/// Time from the start of a node, or the end of a fault, until all are
/// together.
constexpr nanoseconds together_patience = 90 * second;
/// Without a fault a step comes sooner.
constexpr nanoseconds step_patience = 180 * second;
/// Minimum number of steps of the job without faults.
constexpr std::size_t calm_steps_min = 10;
constexpr double minutes_usual = 2;
/// An estimate, to choose how many steps fill the time.
constexpr double goodput_guess = 0.7;

struct interrupted {};

/// By the clock that stamps a job's events.
nanoseconds now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

std::string text_of(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

chaos::commit commit_of(const job_event& e) {
  return {e.step, e.unix_ms * 1'000'000};
}

class session {
public:
  explicit session(const chaos_options& o) : o_(o), began_(now()) {}
  int run();

private:
  void choose_kinds();
  bool prepare();
  void start_nodes();
  void calm();
  void storm();
  void complete();
  int report();

  void
  say(const char* event, const std::string& text, const chaos_more& more = {});
  void pump(nanoseconds until);
  template <class Done>
  void wait(Done done, nanoseconds patience, const std::string& what);
  void told(std::size_t peer, const std::string& line);
  void taken(const job_event& e);
  void start_job(std::int64_t steps);

  struct fault_under_way {
    chaos::fault what;
    nanoseconds until = 0;
    bool over = false;    ///< undone; the shoal reassembles
    bool stopped = false; ///< a slow peer is stopped now
    nanoseconds flip = 0; ///< time of the next change of a slow peer
  };
  void begin(const chaos::fault& f);
  void go_on(fault_under_way& f);
  void take_back(fault_under_way& f);
  void set_ways(const chaos::fault& f, bool open);
  std::string describe(const chaos::fault& f) const;
  void start_node(std::size_t i);

  const chaos_options& o_;
  const nanoseconds began_;
  std::vector<chaos::fault_kind> kinds_;
  std::unique_ptr<chaos_network> network_;
  runtime::posix::descriptor bell_;     ///< rung by a signal
  std::unique_ptr<signals> interrupts_; ///< uses the bell
  std::unique_ptr<chaos_nodes> nodes_;
  runtime::run_config run_;
  std::vector<std::byte> text_;
  std::vector<std::string> addresses_; ///< of nodes that are ready
  std::optional<chaos::view_watch> views_;
  std::unique_ptr<chaos_job> job_; ///< after nodes_: destroyed before them

  chaos::capacity capacity_;
  chaos::record record_;
  std::optional<fault_under_way> fault_;
  std::string state_; ///< final state of the job
  double loss_ = 0;
  nanoseconds last_progress_ = 0;
};

void session::say(const char* event, const std::string& text,
                  const chaos_more& more) {
  const double at = chaos::seconds_of(now() - began_);
  if (!o_.json) {
    std::printf("%7.1f s  %s\n", at, core::shown(text).c_str());
    std::fflush(stdout);
    return;
  }
  std::cout << model::json_text(chaos_line(event, at, text, more)) << std::endl;
}

/// Chooses the faults that are possible here, of those requested.
void session::choose_kinds() {
  for (chaos::fault_kind kind : chaos::all_kinds)
    if (o_.only.empty() || std::ranges::count(o_.only, chaos::name_of(kind)))
      kinds_.push_back(kind);
  if (!std::ranges::count(kinds_, chaos::fault_kind::cut))
    return;
  const std::string why = chaos_network::why_not();
  if (why.empty()) {
    network_ = std::make_unique<chaos_network>(std::size_t(o_.peers));
    return;
  }
  std::erase(kinds_, chaos::fault_kind::cut);
  say("notice", "no cuts: " + why);
}

bool session::prepare() {
  auto loaded = load_chaos_run(o_.run, o_.peers);
  if (!loaded) {
    std::cerr << "shoal: " << loaded.message() << "\n";
    return false;
  }
  run_ = *loaded;
  if (run_.replicate_degree < 2 && run_.wanted_copies() < 1)
    say("notice", "without replicas and copies each death goes back to the "
                  "newest checkpoint: steps will be lost");
  return true;
}

void session::start_node(std::size_t i) {
  std::string join; // another node
  for (std::size_t k = 0; k < addresses_.size() && join.empty(); ++k)
    if (k != i && nodes_->runs(k))
      join = addresses_[k];
  nodes_->start(i, join);
}

void session::start_nodes() {
  addresses_.resize(nodes_->count());
  views_.emplace(nodes_->count());
  text_ = read_chaos_text(run_, nodes_->folder() / "text");
  nodes_->start(0, {});
  wait([this] { return !addresses_[0].empty(); }, together_patience,
       "the first node was not ready");
  for (std::size_t i = 1; i < nodes_->count(); ++i)
    start_node(i);
  wait([this] { return views_->together(); }, together_patience,
       "the nodes did not find each other");
  say("together", std::to_string(o_.peers) + " peers, tensors by "
                    + nodes_->fabric()
                    + (network_ ? ", a network of their own" : ""));
}

/// Handles a line of a node.
void session::told(std::size_t peer, const std::string& line) {
  const json e = model::parse_json<json>(line);
  if (!e.is_object() || !e.contains("event"))
    return;
  if (e["event"] == "ready") {
    const std::string text = e.value("text", "");
    const auto from = text.find(") at ");
    if (from != std::string::npos)
      addresses_[peer] = text.substr(from + 5, text.find(',', from) - from - 5);
  } else if (e["event"] == "view") {
    views_->told(peer, {e.value("shoal", ""), e.value("epoch", std::uint64_t{}),
                        e.value("digest", ""), e.value("peers", std::size_t{}),
                        e.value("member", false)});
  }
}

void session::taken(const job_event& e) {
  if (e.kind == job_event_kind::step) {
    record_.commits.push_back(commit_of(e));
    loss_ = e.loss;
    last_progress_ = now();
  } else if (e.kind == job_event_kind::done) {
    state_ = e.text;
  } else if (e.kind == job_event_kind::notice) {
    say("notice", e.text);
  }
}

/// Handles events until that time, or until one has come.
void session::pump(nanoseconds until) {
  std::vector<pollfd> fds{{bell_.get(), POLLIN, 0},
                          {job_ ? job_->descriptor() : -1, POLLIN, 0}};
  for (std::size_t i = 0; i < nodes_->count(); ++i)
    fds.push_back({nodes_->descriptor(i), POLLIN, 0});
  const nanoseconds left = std::max<nanoseconds>(0, until - now());
  const timespec limit{left / second, left % second};
  if (::ppoll(fds.data(), fds.size(), &limit, nullptr) <= 0)
    return;
  if (fds[0].revents != 0)
    throw interrupted{};
  if (fds[1].revents != 0)
    for (const job_event& e : job_->take())
      taken(e);
  for (std::size_t i = 0; i < nodes_->count(); ++i)
    if (fds[i + 2].revents != 0)
      for (const std::string& line : nodes_->lines(i))
        told(i, line);
}

template <class Done>
void session::wait(Done done, nanoseconds patience, const std::string& what) {
  const nanoseconds until = now() + patience;
  while (!done()) {
    if (now() >= until)
      throw std::runtime_error(what + " in " + std::to_string(patience / second)
                               + " s");
    pump(until);
  }
}

void session::start_job(std::int64_t steps) {
  job_.reset();
  record_ = {};
  state_.clear();
  run_.steps = steps;
  last_progress_ = now();
  job_ = std::make_unique<chaos_job>(nodes_->data_dir(0),
                                     make_entry(run_, "chaos"), text_);
}

/// Measures the capacity without faults.
void session::calm() {
  const std::int64_t wanted = run_.steps;
  start_job(1'000'000);
  wait([this] { return !record_.commits.empty(); }, step_patience,
       "no step was committed");
  const auto calm_time = nanoseconds(o_.calm * double(second));
  const nanoseconds enough = now() + calm_time;
  wait(
    [&] { return now() >= enough && record_.commits.size() >= calm_steps_min; },
    calm_time + step_patience, "too few steps were committed");
  capacity_.tokens_per_s = chaos::rate_of(
    record_.commits, double(run_.sequences_per_step() * run_.seq_len));
  capacity_.peers = std::uint32_t(o_.peers);
  capacity_.processors =
    std::uint32_t(runtime::usable_threads(runtime::read_host_limits()));
  job_->cancel();
  wait([this] { return !state_.empty(); }, step_patience,
       "the undisturbed run did not end");
  say("capacity",
      text_of("undisturbed: %.0f tokens/s, a step takes %.3f s",
              capacity_.tokens_per_s,
              double(run_.sequences_per_step() * run_.seq_len)
                / capacity_.tokens_per_s),
      {nullptr, &capacity_.tokens_per_s});
  run_.steps = wanted;
}

std::string session::describe(const chaos::fault& f) const {
  const std::string who = chaos_nodes::name(f.peer);
  const std::string time = text_of("%.1f s", chaos::seconds_of(f.lasts));
  switch (f.kind) {
  case chaos::fault_kind::kill:
    return "kill " + who + ", start it again after " + time;
  case chaos::fault_kind::stop:
    return "stop " + who + " for " + time;
  case chaos::fault_kind::slow:
    return "slow " + who + " to " + std::to_string(f.runs_permille / 10)
           + " % for " + time;
  case chaos::fault_kind::cut:
    return "cut " + who
           + (f.other ? " from " + chaos_nodes::name(*f.other)
                      : " from all others")
           + " for " + time;
  }
  return {};
}

void session::set_ways(const chaos::fault& f, bool open) {
  for (std::size_t i = 0; i < nodes_->count(); ++i)
    if (i != f.peer && (!f.other || *f.other == i))
      open ? network_->heal(f.peer, i) : network_->cut(f.peer, i);
}

void session::begin(const chaos::fault& f) {
  say("fault", describe(f), {&f});
  const nanoseconds from = now();
  fault_ = fault_under_way{f, from + f.lasts};
  record_.harms.push_back({f, from, from + f.lasts});
  switch (f.kind) {
  case chaos::fault_kind::kill:
    for (const std::string& line : nodes_->lines(f.peer))
      told(f.peer, line);
    nodes_->kill(f.peer);
    views_->gone(f.peer);
    break;
  case chaos::fault_kind::stop:
    nodes_->pause(f.peer);
    break;
  case chaos::fault_kind::slow:
    fault_->flip = from;
    break;
  case chaos::fault_kind::cut:
    set_ways(f, false);
    break;
  }
}

void session::take_back(fault_under_way& f) {
  switch (f.what.kind) {
  case chaos::fault_kind::kill:
    start_node(f.what.peer);
    break;
  case chaos::fault_kind::stop:
  case chaos::fault_kind::slow:
    nodes_->wake(f.what.peer);
    break;
  case chaos::fault_kind::cut:
    set_ways(f.what, true);
    break;
  }
  f.over = true;
  record_.harms.back().until = now();
}

/// Does what is due for a fault.
void session::go_on(fault_under_way& f) {
  const nanoseconds t = now();
  if (!f.over && t >= f.until) {
    take_back(f);
  } else if (!f.over && f.what.kind == chaos::fault_kind::slow && t >= f.flip) {
    f.stopped = !f.stopped;
    f.stopped ? nodes_->pause(f.what.peer) : nodes_->wake(f.what.peer);
    const auto part =
      f.stopped ? 1000 - f.what.runs_permille : f.what.runs_permille;
    f.flip = t + chaos::slow_period * part / 1000;
  }
}

void session::storm() {
  const double tokens = double(run_.sequences_per_step() * run_.seq_len);
  std::int64_t steps = o_.steps > 0 ? o_.steps : run_.steps;
  if (o_.minutes > 0
      || (o_.steps == 0 && o_.run.run_file.empty()
          && !o_.run.overrides.contains("training.steps"))) {
    const double left = (o_.minutes > 0 ? o_.minutes : minutes_usual) * 60
                        - chaos::seconds_of(now() - began_);
    steps = std::max<std::int64_t>(
      10, std::llround(left * goodput_guess * capacity_.tokens_per_s / tokens));
  }
  start_job(steps);
  wait([this] { return !record_.commits.empty(); }, step_patience,
       "no step was committed");
  say("run", std::to_string(steps) + " steps, faults by seed "
               + std::to_string(o_.seed));
  chaos::fault_sequence faults(o_.seed, std::uint32_t(o_.peers), kinds_);
  const auto every = nanoseconds(o_.every * double(second));
  nanoseconds next = now() + every / 2;
  while (state_.empty()) {
    const nanoseconds t = now();
    record_.end = t;
    if (fault_)
      go_on(*fault_);
    if (fault_ && fault_->over && views_->together()) {
      const double pause_s =
        chaos::seconds_of(chaos::pause_of(record_, record_.harms.size() - 1));
      say("whole",
          text_of(
            "together again %.1f s later, in view %" PRIu64
            "; longest pause since the fault, so far: %.2f s",
            std::max(0.0, chaos::seconds_of(t - record_.harms.back().until)),
            views_->newest(), pause_s),
          {nullptr, &pause_s});
      fault_.reset();
    } else if (fault_ && fault_->over
               && t > record_.harms.back().until + together_patience) {
      throw std::runtime_error("the peers were not together again in "
                               + std::to_string(together_patience / second)
                               + " s");
    }
    if (!fault_ && t >= next && views_->together()) {
      begin(faults.next());
      next = t + every;
    }
    if (t > last_progress_ + step_patience)
      throw std::runtime_error("no step was committed in "
                               + std::to_string(step_patience / second) + " s");
    nanoseconds wake = t + second;
    if (!fault_)
      wake = std::min(wake, std::max(next, t + second / 100));
    else if (!fault_->over)
      wake = std::min({wake, fault_->until,
                       fault_->what.kind == chaos::fault_kind::slow
                         ? fault_->flip
                         : fault_->until});
    pump(wake);
  }
  complete();
  if (!record_.commits.empty())
    record_.end = record_.commits.back().at;
}

/// Gets steps that the asked nodes did not know from those that do.
void session::complete() {
  std::vector<chaos::commit> all;
  for (std::size_t i = 0; i < nodes_->count(); ++i)
    if (nodes_->runs(i)) {
      nodes_->wake(i);
      for (const job_event& e : job_->known_at(nodes_->data_dir(i)))
        if (e.kind == job_event_kind::step)
          all.push_back(commit_of(e));
    }
  chaos::fill_in(record_.commits, all);
}

int session::report() {
  const double tokens = double(run_.sequences_per_step() * run_.seq_len);
  chaos_figures f;
  f.account = chaos::make_account(record_, capacity_, tokens);
  f.capacity = capacity_;
  f.state = state_;
  f.seed = o_.seed;
  f.forks = views_->forks();
  f.views = views_->newest();
  f.loss = loss_;
  print(f, o_.json);
  if (record_.harms.empty()) {
    std::cerr << "shoal: no fault was tried: the run was too short for --every "
              << o_.every << "; give more --steps or --minutes\n";
    return exit_failed;
  }
  return f.good() ? exit_done : exit_failed;
}

int session::run() {
  if (!prepare())
    return exit_usage;
  const fs::path folder = chaos_nodes::new_folder(); // as the present user
  choose_kinds();                                    // before any thread
  if (kinds_.empty())
    throw std::runtime_error("none of the faults asked for can be done here");
  interrupts_ = std::make_unique<signals>();
  bell_ = runtime::posix::descriptor(::eventfd(0, EFD_CLOEXEC));
  interrupts_->on_first([fd = bell_.get()] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
  });
  chaos_nodes_config c;
  c.count = std::size_t(o_.peers);
  c.network = network_.get();
  c.fabric = !o_.fabric.empty() ? o_.fabric : network_ ? "tls" : "auto";
  nodes_ = std::make_unique<chaos_nodes>(c, folder);
  try {
    start_nodes();
    calm();
    storm();
  } catch (...) {
    for (std::size_t i = 0; i < nodes_->count(); ++i)
      nodes_->wake(i); // so that the follower may end
    throw;
  }
  return report();
}

} // namespace

int run_chaos(const chaos_options& o) {
  try {
    return session(o).run();
  } catch (const interrupted&) {
    std::cerr << "shoal: interrupted; nothing is left behind\n";
    return exit_interrupted;
  } catch (const std::exception& e) {
    std::cerr << "shoal: " << e.what() << "\n";
  }
  return exit_failed;
}

} // namespace shoal::apps
