// apps/node/cmd_status.cpp -- status and logs: a node's knowledge and its
// lines.
#include "apps/common/commands.hpp"
#include "apps/common/report.hpp"
#include "apps/node/node_lines.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/remote/traffic_look.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/terminal.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/wire/client_messages.hpp" // reply_lines_max

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using std::chrono::steady_clock;

namespace {

/// Pause between checks for a signal.
constexpr std::chrono::milliseconds signal_look_again{100};
/// Pause between requests for new lines of a node.
constexpr std::chrono::milliseconds lines_every{1000};

/// "2026-03-01 14:05:09", local time.
std::string clock_text(std::int64_t unix_ms) {
  const std::time_t s = unix_ms / 1000;
  std::tm local{};
  char text[32] = {};
  if (::localtime_r(&s, &local) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

/// Returns after `time`, or when a signal has come.
void pause(const signals& interrupts, steady_clock::duration time) {
  const auto until = steady_clock::now() + time;
  while (!interrupts.seen() && steady_clock::now() < until)
    std::this_thread::sleep_for(std::min<steady_clock::duration>(
      signal_look_again, until - steady_clock::now()));
}

/// Rates are of the time between two looks.
constexpr std::chrono::seconds traffic_apart{2};

/// Asks a node, and another one if that has ended.
class status_source {
public:
  /// @param goes_on asked before each peer; once it says no, the others are left out
  explicit status_source(
    const status_options& o,
    std::function<bool()> goes_on = [] { return true; })
    : o_(o), goes_on_(std::move(goes_on)), client_(client_through(o.at)) {
    if (o.traffic)
      traffic_.emplace(client_through(o.at));
  }

  /// Of a status with traffic that is shown once.
  bool look_before() {
    std::string text;
    if (!traffic_)
      return true;
    if (!ask(text))
      return false;
    std::this_thread::sleep_for(traffic_apart);
    return true;
  }

  /// Gets the status in the form to be shown. @returns false if text() has an
  /// error
  bool look(std::string& out) {
    std::string text;
    if (!ask(text))
      return false;
    const auto status = parse_status(text);
    if (!status) {
      why_ = "the node at " + client_.where() + ": " + status.message();
      return false;
    }
    if (o_.json) {
      json all = model::parse_json<json>(text);
      if (traffic_)
        all["traffic"] = traffic_json(traffic_->report());
      out = model::json_text(all) + "\n";
    } else {
      out = core::shown(o_.links   ? links_table(*status)
                        : traffic_ ? traffic_table(*status, traffic_->report())
                                   : status_table(*status),
                        core::line_ends::kept);
    }
    return true;
  }

  const std::string& text() const { return why_; }

private:
  bool ask(std::string& text) {
    if (traffic_) {
      auto looked = traffic_->look(goes_on_);
      if (!looked) {
        why_ = looked.message();
        return false;
      }
      text = *std::move(looked);
      return true;
    }
    connected_ = (connected_ || !client_.connect()) && !client_.status(text);
    if (!connected_)
      why_ = client_.text();
    return connected_;
  }

  const status_options& o_;
  std::function<bool()> goes_on_;
  std::optional<traffic_look> traffic_;
  runtime::client client_;
  bool connected_ = false;
  std::string why_;
};

void show(const status_options& o, const std::string& text) {
  const auto size = o.json ? std::nullopt : stdout_size();
  const std::string now = clock_text(unix_ms());
  if (size)
    std::cout << redraw(now + "  (Ctrl-C ends this)\n" + text, *size);
  else
    std::cout << (o.json ? "" : now + "\n") << text << (o.json ? "" : "\n");
  std::cout.flush();
}

int watch(const status_options& o) {
  signals interrupts;
  status_source source(o, [&interrupts] { return !interrupts.seen(); });
  std::string text;
  const auto every = std::chrono::duration_cast<steady_clock::duration>(
    std::chrono::duration<double>(o.watch_s));
  // The counters of one look and the next are too far apart for a rate.
  const bool twice = o.traffic && every > traffic_look::kept_for;
  if ((twice && !source.look_before()) || !source.look(text))
    return fail(source.text());
  if (!o.json && stdout_size())
    std::cout << "\x1b[2J";
  while (!interrupts.seen()) {
    show(o, text);
    pause(interrupts, every);
    if (stdout_is_gone())
      return exit_done;
    for (bool told = false;
         !interrupts.seen()
         && !((!twice || source.look_before()) && source.look(text));) {
      if (!std::exchange(told, true))
        std::cerr << "shoal: " << source.text() << "; trying again\n";
      pause(interrupts, every);
    }
  }
  return exit_interrupted;
}

} // namespace

int run_status(const status_options& o) {
  if (o.watch_s > 0)
    return watch(o);
  status_source source(o);
  std::string text;
  if (!source.look_before() || !source.look(text))
    return fail(source.text());
  std::cout << text;
  return exit_done;
}

namespace {

/// Prints lines, and reports how many are missing.
class line_log {
public:
  explicit line_log(bool as_json) : json_(as_json) {}

  void print(const node_lines& said) {
    begun_ = true;
    for (const node_line& line : said.lines) {
      if (line.number <= last_)
        continue; // asked for again
      if (last_ != 0 && line.number > last_ + 1)
        std::cerr << "shoal: "
                  << core::count_text(line.number - last_ - 1, "line")
                  << " came too fast to be kept\n";
      last_ = line.number;
      last_ms_ = line.unix_ms;
      if (json_)
        std::cout << model::json_text(json{
          {"peer", said.node}, {"unix_ms", line.unix_ms}, {"text", line.text}});
      else
        std::cout << clock_text(line.unix_ms) << "  " << line.text;
      std::cout << "\n";
    }
    std::cout.flush();
  }

  void begin_anew() { last_ = 0; }
  /// Whether these, asked for from the first one on, are of a process that has
  /// started since: it numbers its lines anew.
  bool are_others(const node_lines& said) const {
    if (last_ == 0 || said.lines.empty())
      return false;
    for (const node_line& line : said.lines)
      if (line.number == last_)
        return line.unix_ms != last_ms_;
    return said.lines.back().number < last_;
  }
  /// Whether the node has answered.
  bool has_begun() const { return begun_; }

private:
  bool json_;
  bool begun_ = false;
  std::uint64_t last_ = 0;   ///< number of the last line
  std::int64_t last_ms_ = 0; ///< its time
};

} // namespace

int run_logs(const logs_options& o) {
  std::optional<signals> interrupts;
  if (o.follow)
    interrupts.emplace();
  runtime::client_config c = client_through(o.at);
  if (o.follow) { // this node alone, also where another one runs beside it
    runtime::client found(c);
    if (found.connect())
      return fail(found.text());
    if (const std::filesystem::path where = found.where();
        where.is_absolute()) {
      c.data_dir = where;
      c.named = true;
    }
  }
  runtime::client client(c);
  if (client.connect())
    return fail(client.text());
  if (!o.peer.empty())
    client.ask_of(o.peer);
  line_log out(o.json);
  std::uint64_t next = 0;
  std::uint32_t count = o.lines;
  bool lost = false; ///< the node does not answer
  for (;;) {
    const std::uint64_t from = next;
    std::string text;
    if (client.lines(next, count, text)) {
      if (!o.follow || !out.has_begun())
        return fail(client.text());
      // A node that is started again has new lines; a refusal is no loss.
      if (!std::exchange(lost, true))
        std::cerr << "shoal: " << client.text()
                  << "; waiting until it answers again (Ctrl-C ends that)\n";
      pause(*interrupts, lines_every);
      if (interrupts->seen())
        return exit_interrupted;
      static_cast<void>(client.connect());
      next = 0; // all of them: it may be another process
      continue;
    }
    if (std::exchange(lost, false))
      std::cerr << "shoal: it answers again\n";
    count = runtime::reply_lines_max;
    if (next < from) { // from a process that has started since
      next = 0;
      continue;
    }
    const auto said = parse_lines(text);
    if (!said)
      return fail("the node at " + client.where() + ": " + said.message());
    if (from == 0 && out.are_others(*said)) {
      std::cerr << "shoal: the node was started again\n";
      out.begin_anew();
    }
    out.print(*said);
    std::cout.flush();
    if (!o.follow || stdout_is_gone())
      return exit_done;
    pause(*interrupts, lines_every);
    if (interrupts->seen())
      return exit_interrupted;
  }
}

} // namespace shoal::apps
