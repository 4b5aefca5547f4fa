// apps/remote/shoal_traffic.cpp -- counters by pair; their table.
#include "apps/remote/shoal_traffic.hpp"

#include "runtime/files/json_table.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shoal::apps {

using json = status_json;

void shoal_traffic::counted::add(std::uint64_t value, time now) {
  bytes = value;
  rate.add(double(value), now);
}

void shoal_traffic::add(direction& to, const json& moved, const char* key,
                        time now) {
  std::uint64_t all = 0;
  std::map<std::string, std::uint64_t> jobs;
  for (const json& m : moved) { // by fabric
    all += m[key].get<std::uint64_t>();
    for (const json& j : m["jobs"])
      if (jobs.contains(text_of(j, "job")) || jobs.size() < jobs_max)
        jobs[text_of(j, "job")] += j[key].get<std::uint64_t>();
  }
  to.all.add(all, now);
  std::erase_if(to.jobs,
                [&](const auto& j) { return !jobs.contains(j.first); });
  for (const auto& [job, bytes] : jobs)
    to.jobs[job].add(bytes, now);
}

void shoal_traffic::add(const json& status, time now) {
  const std::string& self = text_of(status, "self");
  auto& links = peers_[self];
  std::set<std::string> linked;
  for (const json& l : status["links"]) {
    const std::string& peer = text_of(l, "peer");
    if (linked.size() >= links_max)
      break;
    if (peer == self || !linked.insert(peer).second)
      continue; // within the process
    add(links[peer].sent, l["moved"], "sent_bytes", now);
    add(links[peer].received, l["moved"], "received_bytes", now);
  }
  std::erase_if(links,
                [&](const auto& l) { return !linked.contains(l.first); });
}

void shoal_traffic::keep_only(const std::set<std::string>& peers) {
  const auto strange = [&](const auto& p) { return !peers.contains(p.first); };
  std::erase_if(peers_, strange);
  for (auto& [id, links] : peers_)
    std::erase_if(links, strange);
}

std::vector<flow> shoal_traffic::flows() const {
  std::map<std::pair<std::string, std::string>, const direction*> pairs;
  for (const auto& [id, links] : peers_)
    for (const auto& [other, l] : links)
      pairs[{id, other}] = &l.sent;
  for (const auto& [id, links] : peers_)
    for (const auto& [other, l] : links)
      pairs.try_emplace({other, id}, &l.received);
  const auto order = [](const auto& f) {
    return std::tuple(-f.bytes_per_s.value_or(0), -double(f.bytes));
  };
  std::vector<flow> out;
  for (const auto& [pair, d] : pairs) {
    if (d->all.bytes == 0)
      continue;
    flow& f = out.emplace_back();
    f.from = pair.first;
    f.to = pair.second;
    f.bytes = d->all.bytes;
    f.bytes_per_s = d->all.rate.per_s();
    for (const auto& [job, c] : d->jobs)
      if (c.bytes > 0)
        f.parts.push_back({job, c.bytes, c.rate.per_s()});
    std::ranges::stable_sort(f.parts, {}, order);
  }
  std::ranges::stable_sort(out, {}, order);
  return out;
}

namespace {

using runtime::json_table;

json known(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

const json_table<flow::part>& part_table() {
  using p = const flow::part&;
  static const json_table<flow::part> table{
    {"job", "text", "", "its id; empty: of no job",
     [](p v) { return json(v.job); }},
    {"bytes", "whole number", "bytes", "since the sender's node started",
     [](p v) { return json(v.bytes); }},
    {"bytes_per_s", "number or null", "bytes/s",
     "in the last seconds; null: not known yet",
     [](p v) { return known(v.bytes_per_s); }}};
  return table;
}

const json_table<flow>& flow_table() {
  using f = const flow&;
  static const json_table<flow> table{
    {"from", "text", "", "id of the peer that sends",
     [](f v) { return json(v.from); }},
    {"to", "text", "", "id of the peer that receives",
     [](f v) { return json(v.to); }},
    {"bytes", "whole number", "bytes",
     "since the sender's node started (or the receiver's, if the sender does "
     "not answer)",
     [](f v) { return json(v.bytes); }},
    {"bytes_per_s", "number or null", "bytes/s",
     "in the last seconds; null: not known yet",
     [](f v) { return known(v.bytes_per_s); }},
    {"jobs", "list of objects", "", "the same by job",
     [](f v) { return runtime::written_each(part_table(), v.parts); },
     runtime::texts_of(part_table())}};
  return table;
}

const json_table<traffic_report>& report_table() {
  using r = const traffic_report&;
  static const json_table<traffic_report> table{
    {"flows", "list of objects", "",
     "from one peer to another, the busiest first; 256 at most",
     [](r v) { return runtime::written_each(flow_table(), v.flows); },
     runtime::texts_of(flow_table())},
    {"more", "whole number", "", "flows that are left out of the list",
     [](r v) { return json(v.more); }},
    {"silent", "list of texts", "",
     "ids of peers that did not answer: nothing is known of traffic between "
     "two of them",
     [](r v) { return json(v.silent); }}};
  return table;
}

} // namespace

json traffic_json(const traffic_report& r) {
  return runtime::written(report_table(), r);
}

std::vector<runtime::field_text> traffic_fields() {
  return runtime::texts_of(report_table());
}

} // namespace shoal::apps
