// apps/top/top_memory.cpp -- counters of answers become rates.
#include "apps/top/top_memory.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::apps {
namespace {

using json = status_json;

double number_of(const json& from, const char* key) {
  return from[key].is_number() ? from[key].get<double>() : 0;
}

/// Bytes over a link by all of its fabrics.
std::pair<double, double> moved_over(const json& link) {
  double sent = 0, received = 0;
  for (const json& m : link["moved"]) {
    sent += number_of(m, "sent_bytes");
    received += number_of(m, "received_bytes");
  }
  return {sent, received};
}

void add_to(std::optional<double>& sum, std::optional<double> value) {
  if (value)
    sum = sum.value_or(0) + *value;
}

} // namespace

void job_history::add(std::uint64_t step, double loss, std::int64_t unix_ms) {
  while (!steps_.empty() && steps_.back().step > step)
    steps_.pop_back();
  if (!steps_.empty() && steps_.back().step == step)
    return;
  steps_.push_back({step, loss, unix_ms});
  if (steps_.size() > losses_max)
    steps_.pop_front();
}

std::vector<double> job_history::losses() const {
  std::vector<double> out;
  for (const ended_step& s : steps_)
    out.push_back(s.loss);
  return out;
}

std::uint64_t job_history::last_step() const {
  return steps_.empty() ? 0 : steps_.back().step;
}

std::optional<double> job_history::seconds_to(std::uint64_t steps) const {
  if (steps_.size() < 2 || steps < steps_.back().step)
    return std::nullopt;
  const ended_step& last = steps_.back();
  const ended_step& first =
    steps_[steps_.size() - std::min(steps_.size(), steps_max)];
  const double passed_s = double(last.unix_ms - first.unix_ms) / 1000;
  if (passed_s <= 0)
    return std::nullopt;
  return double(steps - last.step) * passed_s / double(last.step - first.step);
}

void top_memory::add_peer(const json& status, time now) {
  of_peer& p = peers_[text_of(status, "self")];
  double sent = 0, received = 0;
  for (const json& l : status["links"]) {
    if (text_of(l, "peer") == text_of(status, "self"))
      continue; // within the process
    const auto [s, r] = moved_over(l);
    sent += s;
    received += r;
  }
  p.sent.add(sent, now);
  p.received.add(received, now);
  traffic_.add(status, now);
  if (status.contains("resources")) {
    const json& r = status["resources"];
    if (r["cpu_seconds"].is_number())
      p.cpu.add(r["cpu_seconds"].get<double>(), now);
    p.resident = r["resident_bytes"].get<std::uint64_t>();
    p.store = r["store_bytes"].get<std::uint64_t>();
    p.room = r["store_room_bytes"].get<std::uint64_t>();
  }
  if (status.contains("serving"))
    for (const json& m : status["serving"])
      p.generated[text_of(m, "job")].add(number_of(m, "generated_tokens"), now);
}

void top_memory::add(const json& status, time now, std::int64_t unix_ms) {
  add_peer(status, now);
  std::set<std::string> ids;
  for (const json& p : status["peers"])
    ids.insert(text_of(p, "id"));
  ids.insert(text_of(status, "self"));
  std::erase_if(peers_, [&](const auto& p) { return !ids.contains(p.first); });
  traffic_.keep_only(ids);
  std::erase_if(links_, [&](const auto& l) { return !ids.contains(l.first); });
  for (const json& l : status["links"])
    if (ids.contains(text_of(l, "peer"))) {
      const auto [sent, received] = moved_over(l);
      links_[text_of(l, "peer")].sent.add(sent, now);
      links_[text_of(l, "peer")].received.add(received, now);
    }
  ids.clear();
  for (const json& j : status["jobs"]) {
    ids.insert(text_of(j, "id"));
    const auto step = j["step"].get<std::uint64_t>();
    if (text_of(j, "kind") == "train" && step > 0 && j["loss"].is_number()
        && job(text_of(j, "id")).last_step() < step)
      job(text_of(j, "id")).add(step, j["loss"].get<double>(), unix_ms);
  }
  std::erase_if(jobs_, [&](const auto& j) { return !ids.contains(j.first); });
  for (auto& [id, p] : peers_)
    std::erase_if(p.generated,
                  [&](const auto& m) { return !ids.contains(m.first); });
}

peer_figures top_memory::figures(const std::string& peer) const {
  const auto at = peers_.find(peer);
  if (at == peers_.end())
    return {};
  const of_peer& p = at->second;
  peer_figures out{p.cpu.per_s(), {},      p.sent.per_s(), p.received.per_s(),
                   p.resident,    p.store, p.room};
  for (const auto& [job, rate] : p.generated)
    add_to(out.generated_per_s, rate.per_s());
  return out;
}

const job_history* top_memory::find_job(const std::string& id) const {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &at->second;
}

std::optional<double>
top_memory::generated_per_s(const std::string& job) const {
  std::optional<double> out;
  for (const auto& [id, p] : peers_)
    if (const auto at = p.generated.find(job); at != p.generated.end())
      add_to(out, at->second.per_s());
  return out;
}

std::optional<double> top_memory::sent_to(const std::string& peer) const {
  const auto at = links_.find(peer);
  return at == links_.end() ? std::nullopt : at->second.sent.per_s();
}

std::optional<double> top_memory::received_from(const std::string& peer) const {
  const auto at = links_.find(peer);
  return at == links_.end() ? std::nullopt : at->second.received.per_s();
}

} // namespace shoal::apps
