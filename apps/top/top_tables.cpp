// apps/top/top_tables.cpp -- one function for each table.
#include "apps/top/top_tables.hpp"

#include "apps/remote/status_text.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace shoal::apps {
namespace {

using json = status_json;

constexpr int sparkline_columns = 16;

std::uint64_t number(const json& from, const char* key) {
  return from[key].get<std::uint64_t>();
}

/// A text for one line of a terminal.
std::string text(const json& from, const char* key) {
  return core::shown(text_of(from, key));
}

std::string short_id(const json& from, const char* key) {
  return text(from, key).substr(0, 8);
}

cell unknown() {
  return {"-", tone::dim};
}

template <class Value, class Format>
cell known(const std::optional<Value>& value, Format format) {
  return value ? cell{format(*value), tone::plain, double(*value)} : unknown();
}

cell counted(const std::optional<double>& value) {
  return known(value, short_count);
}

cell sized(const std::optional<std::uint64_t>& value) {
  return known(value, core::size_text);
}

cell bytes_per_s(const std::optional<double>& value) {
  return known(value, [](double v) {
    return v < 1 ? std::string("0") : core::rate_text(std::uint64_t(v));
  });
}

std::string formatted(const char* format, double value) {
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

/// The number of a field that may be null or missing.
std::optional<double> maybe(const json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_number() ? std::optional(at->get<double>())
                                             : std::nullopt;
}

tone tone_of_state(const std::string& state) {
  return state == "unreachable" || state == "failed" ? tone::bad
         : state == "active" || state == "running" || state == "member"
             || state == "ready"
           ? tone::good
         : state == "joining" || state == "leaving" || state == "waits"
             || state == "waiting" || state == "ending"
           ? tone::warning
           : tone::plain;
}

cell state_cell(const std::string& state) {
  return {state, tone_of_state(state)};
}

/// "run 4-7 r0 s1": its layers, replica and stage of each job that places it.
std::string role_of(const json& status, const json& peer) {
  std::string out;
  int others = 0;
  for (const json& j : status["jobs"]) {
    const json& replicas = j["places"];
    for (std::size_t r = 0; r < replicas.size(); ++r)
      for (std::size_t s = 0; s < replicas[r].size(); ++s) {
        const json& stage = replicas[r][s];
        if (text_of(stage, "id") != text_of(peer, "id"))
          continue;
        if (!out.empty()) {
          ++others;
          continue;
        }
        const auto last = stage["last_layer"].get<std::int64_t>();
        out = cut(text(j, "name"), 12) + " "
              + std::to_string(number(stage, "first_layer"))
              + (last < 0 ? "" : "-" + std::to_string(last)) + " r"
              + std::to_string(r) + " s" + std::to_string(s);
      }
  }
  if (out.empty())
    return peer["witness"].get<bool>() ? "witness" : "idle";
  return others == 0 ? out : out + " +" + std::to_string(others);
}

std::string name_of(const json& status, const std::string& id) {
  for (const json& p : status["peers"])
    if (text_of(p, "id") == id && !text_of(p, "name").empty())
      return text(p, "name");
  return core::shown(id).substr(0, 8);
}

/// The entry of the fabric that a link uses now; null if nothing was moved.
const json* used_path(const json& link) {
  for (const json& m : link["moved"])
    if (m["fabric"] == link["fabric"])
      return &m;
  return nullptr;
}

cell round_trip(const json* path) {
  const auto one_way = path ? maybe(*path, "latency_ns") : std::nullopt;
  return known(one_way, [](double ns) {
    return core::delay_text(std::uint64_t(std::max(ns, 0.0) * 2));
  });
}

const json* link_to(const json& status, const json& peer) {
  for (const json& l : status["links"])
    if (text_of(l, "peer") == text_of(peer, "id"))
      return &l;
  return nullptr;
}

/// Its processors in use, as a share of those that compute there.
cell cpu_cell(const json& peer, const peer_figures& f) {
  const json& devices = peer["devices"];
  const double threads =
    devices.empty()
      ? 1.0
      : double(std::max<std::uint64_t>(number(devices[0], "threads"), 1));
  return known(f.cpu, [&](double used) { return percent(used / threads); });
}

std::string time_left(double seconds) {
  return seconds >= 1e9 ? "-" : core::age_text(std::int64_t(seconds * 1000));
}

bool runs(const json& job) {
  return text_of(job, "state") == "running";
}

std::string state_of_job(const json& job) {
  if (job["ending"].get<bool>())
    return "ending";
  return runs(job) && job.contains("waiting") ? "waits" : text(job, "state");
}

cell checkpoint_cell(const json& job, std::int64_t now_ms) {
  if (!job.contains("checkpoint"))
    return unknown();
  const json& saved = job["checkpoint"];
  const auto step = number(saved, "step");
  if (text(job, "state") == "done" && step < number(job, "step"))
    return unknown(); // the node was away when the last one was made
  std::string out = std::to_string(step);
  if (saved.contains("unix_ms") && number(saved, "unix_ms") > 0)
    out += ", "
           + core::age_text(std::max<std::int64_t>(
             now_ms - std::int64_t(number(saved, "unix_ms")), 0))
           + " ago";
  return {out, tone::plain, double(step)};
}

std::string remark_on(const json& job) {
  return job.contains("waiting") ? text(job, "waiting")
         : job.contains("cause") ? text(job, "cause")
         : job.contains("plan")  ? text(job, "plan")
                                 : "";
}

std::vector<cell> training_row(const top_status& s, const json& j) {
  const auto step = number(j, "step"), steps = number(j, "steps");
  const std::string state = state_of_job(j);
  const job_history* history = s.memory.find_job(text_of(j, "id"));
  const auto loss = maybe(j, "loss");
  std::optional<double> left;
  if (history != nullptr && runs(j) && state != "waits")
    left = history->seconds_to(steps);
  return {{text(j, "name")},
          {short_id(j, "id")},
          state_cell(state),
          {std::to_string(step) + "/" + std::to_string(steps), tone::plain,
           steps == 0 ? 0.0 : double(step) / double(steps)},
          known(loss, [](double v) { return formatted("%.4f", v); }),
          {history ? sparkline(history->losses(), sparkline_columns) : ""},
          known(maybe(j, "lr"), [](double v) { return formatted("%.2e", v); }),
          runs(j) && state != "waits" ? counted(maybe(j, "tokens_per_s"))
                                      : unknown(),
          known(left, time_left),
          checkpoint_cell(j, s.unix_ms),
          {remark_on(j), state == "failed" ? tone::bad : tone::dim}};
}

struct pipeline_sums {
  std::uint64_t pipelines = 0, ready = 0, streams = 0, running = 0, waiting = 0,
                pages = 0, pages_max = 0;
};

/// Of one model, or of all.
pipeline_sums sums_of(const json& status, const std::string& job = {}) {
  pipeline_sums out;
  if (!status.contains("serving"))
    return out;
  for (const json& m : status["serving"])
    for (const json& p : m["pipelines"]) {
      if (!job.empty() && text_of(m, "job") != job)
        continue;
      ++out.pipelines;
      out.ready += p["ready"].get<bool>() ? 1 : 0;
      out.streams += number(p, "streams");
      out.running += number(p, "running");
      out.waiting += number(p, "waiting");
      out.pages += number(p, "pages");
      out.pages_max += number(p, "pages_max");
    }
  return out;
}

double share_of(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? NAN : double(part) / double(all);
}

} // namespace

table peers_of(const top_status& s) {
  table t{"Peers",
          {{"PEER", align::left, 6, 0},
           {"NAME", align::left, 0, 20},
           {"STATE", align::left, 1, 0},
           {"ROLE", align::left, 3, 26},
           {"CPU", align::right, 2, 0},
           {"MEMORY", align::right, 4, 0},
           {"DISK", align::right, 8, 0},
           {"IN", align::right, 5, 0},
           {"OUT", align::right, 5, 0},
           {"RTT", align::right, 7, 0},
           {"TOK/S", align::right, 3, 0}},
          {},
          "none"};
  for (const json& p : s.is["peers"]) {
    const bool own = text_of(p, "id") == text_of(s.is, "self");
    const bool gone = text_of(p, "state") == "unreachable";
    const peer_figures f =
      gone ? peer_figures{} : s.memory.figures(text_of(p, "id"));
    const json* link = own ? nullptr : link_to(s.is, p);
    t.rows.push_back(
      {{short_id(p, "id") + (own ? "*" : "")},
       {text(p, "name"), own ? tone::title : tone::plain},
       state_cell(text(p, "state")),
       {role_of(s.is, p)},
       cpu_cell(p, f),
       sized(f.resident_bytes),
       sized(f.store_bytes),
       bytes_per_s(f.received_per_s),
       bytes_per_s(f.sent_per_s),
       gone ? unknown() : round_trip(link ? used_path(*link) : nullptr),
       counted(f.generated_per_s)});
  }
  return t;
}

table links_of(const top_status& s) {
  table t{"Links of " + text(s.is, "name"),
          {{"PEER", align::left, 0, 20},
           {"FABRIC", align::left, 0, 0},
           {"RTT", align::right, 2, 0},
           {"BANDWIDTH", align::right, 3, 0},
           {"OUT", align::right, 1, 0},
           {"IN", align::right, 1, 0},
           {"SENT", align::right, 4, 0},
           {"RECEIVED", align::right, 4, 0},
           {"WHY NOT BETTER", align::left, 5, 60}},
          {},
          "none"};
  for (const json& l : s.is["links"]) {
    const std::string& id = text_of(l, "peer");
    const json* path = used_path(l);
    std::uint64_t sent = 0, received = 0;
    for (const json& m : l["moved"]) {
      sent += number(m, "sent_bytes");
      received += number(m, "received_bytes");
    }
    std::string why;
    for (const json& r : l["instead_of"])
      why +=
        (why.empty() ? "" : "; ") + text(r, "fabric") + ": " + text(r, "why");
    t.rows.push_back(
      {{name_of(s.is, id)},
       {text(l, "fabric")},
       round_trip(path),
       bytes_per_s(path ? maybe(*path, "bytes_per_s") : std::nullopt),
       bytes_per_s(s.memory.sent_to(id)),
       bytes_per_s(s.memory.received_from(id)),
       sized(sent),
       sized(received),
       {why, tone::dim}});
  }
  return t;
}

table traffic_of(const top_status& s) {
  table t{"Traffic between peers",
          {{"FROM", align::left, 0, 20},
           {"TO", align::left, 0, 20},
           {"RATE", align::right, 0, 0},
           {"SENT", align::right, 2, 0},
           {"FOR", align::left, 1, 60}},
          {},
          "none"};
  for (const flow& f : s.memory.flows())
    t.rows.push_back({{name_of(s.is, f.from)},
                      {name_of(s.is, f.to)},
                      bytes_per_s(f.bytes_per_s),
                      sized(f.bytes),
                      {purpose_of(s.is, f)}});
  return t;
}

table training_of(const top_status& s) {
  table t{"Training jobs",
          {{"JOB", align::left, 0, 20},
           {"ID", align::left, 8, 0},
           {"STATE", align::left, 1, 0},
           {"STEP", align::right, 0, 0},
           {"LOSS", align::right, 0, 0},
           {"TREND", align::left, 2, 0},
           {"LR", align::right, 6, 0},
           {"TOK/S", align::right, 3, 0},
           {"ETA", align::right, 4, 0},
           {"CHECKPOINT", align::right, 5, 0},
           {"WHERE", align::left, 7, 60}},
          {},
          "none; `shoal train` begins one"};
  std::vector<const json*> ended;
  for (const json& j : s.is["jobs"]) {
    if (serves(j))
      continue;
    if (runs(j))
      t.rows.push_back(training_row(s, j));
    else
      ended.push_back(&j);
  }
  std::ranges::stable_sort(ended, std::greater{},
                           [](const json* j) { return number(*j, "changed"); });
  for (const json* j : ended)
    t.rows.push_back(training_row(s, *j));
  return t;
}

table models_of(const top_status& s) {
  table t{"Served models",
          {{"MODEL", align::left, 0, 28},
           {"ID", align::left, 7, 0},
           {"STATE", align::left, 1, 0},
           {"PIPELINES", align::right, 5, 0},
           {"STREAMS", align::right, 0, 0},
           {"WAITING", align::right, 2, 0},
           {"PAGES", align::right, 3, 0},
           {"TOK/S", align::right, 0, 0},
           {"WHERE", align::left, 6, 60}},
          {},
          "none; `shoal serve` begins with one"};
  for (const json& j : s.is["jobs"]) {
    if (!serves(j) || !runs(j))
      continue;
    const std::string& id = text_of(j, "id");
    const pipeline_sums sum = sums_of(s.is, id);
    const bool heard = sum.pipelines > 0;
    const auto of = [&](std::uint64_t value) {
      return heard ? counted(double(value)) : unknown();
    };
    t.rows.push_back(
      {{text(j, "name")},
       {short_id(j, "id")},
       state_cell(j["ending"].get<bool>() ? "ending"
                  : sum.ready > 0         ? "ready"
                                          : "waits"),
       heard
         ? cell{std::to_string(sum.ready) + "/" + std::to_string(sum.pipelines),
                tone::plain, double(sum.ready)}
         : unknown(),
       of(sum.streams),
       of(sum.waiting),
       sum.pages_max > 0
         ? cell{std::to_string(sum.pages) + "/" + std::to_string(sum.pages_max)
                  + " " + percent(share_of(sum.pages, sum.pages_max)),
                tone::plain, share_of(sum.pages, sum.pages_max)}
         : unknown(),
       counted(s.memory.generated_per_s(id)),
       {remark_on(j), tone::dim}});
  }
  return t;
}

std::vector<span_of_text> totals_of(const top_status& s) {
  std::vector<span_of_text> out;
  std::map<std::string, int> peers{{"active", 0}};
  for (const json& p : s.is["peers"])
    ++peers[text(p, "state")];
  out.reserve(peers.size());
  for (const auto& [state, n] : peers)
    out.push_back({std::to_string(n) + " " + (state == "active" ? "up" : state),
                   state == "active" ? tone::plain : tone_of_state(state)});
  double trained = 0;
  std::optional<double> served;
  bool serving = false;
  for (const json& j : s.is["jobs"]) {
    if (!runs(j))
      continue;
    if (!serves(j)) {
      if (!j.contains("waiting"))
        trained += maybe(j, "tokens_per_s").value_or(0);
      continue;
    }
    serving = true;
    if (const auto rate = s.memory.generated_per_s(text_of(j, "id")))
      served = served.value_or(0) + *rate;
  }
  out.push_back({"train " + short_count(trained) + " tok/s"});
  out.push_back(
    {"serve "
     + (serving && !served ? std::string("-") : short_count(served.value_or(0)))
     + " tok/s"});
  const pipeline_sums sum = sums_of(s.is);
  out.push_back({"streams " + std::to_string(sum.running) + " running, "
                 + std::to_string(sum.waiting) + " waiting"});
  out.push_back({"KV pages " + percent(share_of(sum.pages, sum.pages_max))});
  return out;
}

} // namespace shoal::apps
