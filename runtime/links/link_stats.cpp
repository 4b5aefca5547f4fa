// runtime/links/link_stats.cpp -- bytes moved by links, and their speed.
#include "runtime/links/link_state.hpp"

#include <algorithm>

namespace shoal::runtime {

const char* name_of(fabric_kind kind) {
  switch (kind) {
  case fabric_kind::tls:
    return "tls";
  case fabric_kind::shm:
    return "shm";
  case fabric_kind::rdma:
    return "rdma";
  case fabric_kind::ucx_tcp:
    return "ucx-tcp";
  }
  return "unknown";
}

namespace links {

void job_counters::name_plan(std::uint64_t plan, std::uint64_t job) {
  if (jobs_.insert_or_assign(plan, job).second)
    order_.push_back(plan);
  if (order_.size() > link_service::named_plans_max) {
    jobs_.erase(order_.front());
    order_.pop_front();
  }
}

std::uint64_t job_counters::job_of(std::uint64_t plan) const {
  const auto found = jobs_.find(plan);
  return found == jobs_.end() ? 0 : found->second;
}

transport::traffic& way_stat::of(std::uint64_t job) {
  const auto found = jobs.find(job);
  if (found != jobs.end())
    return found->second;
  return jobs[jobs.size() < link_service::jobs_counted_max ? job : 0];
}

void state::count(const transfer& t, bool sent) {
  std::lock_guard lock(stats_mutex);
  auto& way = stats[{t.peer, t.fabric}];
  const auto bytes = t.buffer.bytes.size();
  for (auto* moved : {&way.all, &way.of(named.job_of(t.tag.plan))})
    (sent ? moved->sent_bytes : moved->received_bytes) += bytes;
}

void state::meter_start(sending& s, std::int64_t at_ns) {
  std::lock_guard lock(stats_mutex);
  s.ticket = stats[{s.peer, s.fabric}].meter.started(at_ns);
}

void state::meter_end(const sending& s, bool arrived) {
  const auto at_ns = now_ns();
  std::lock_guard lock(stats_mutex);
  stats[{s.peer, s.fabric}].meter.ended(s.ticket, at_ns, s.buffer.bytes.size(),
                                        arrived);
}

std::vector<link_hub::link_stat> state::all_stats() const {
  const auto at_ns = now_ns();
  std::lock_guard lock(stats_mutex);
  std::vector<link_hub::link_stat> list;
  for (const auto& [key, way] : stats) {
    auto& s = list.emplace_back();
    s.peer = key.first;
    s.fabric = name_of(key.second);
    s.sent_bytes = way.all.sent_bytes;
    s.received_bytes = way.all.received_bytes;
    s.latency_ns = way.meter.latency_ns();
    s.bytes_per_s = way.meter.bytes_per_s();
    s.age_ns = way.meter.age_ns(at_ns);
    for (const auto& [job, moved] : way.jobs)
      s.jobs.push_back({job, moved.sent_bytes, moved.received_bytes});
  }
  return list;
}

std::vector<link_hub::pending> state::pending_of(std::uint64_t plan) const {
  std::vector<link_hub::pending> out;
  for (const auto& [id, p] : peers) {
    std::size_t listed = 0;
    for (auto at = p.receives.lower_bound(bulk_tag{plan, 0, 0});
         at != p.receives.end() && at->first.plan == plan
         && ++listed <= link_hub::pending_max;
         ++at)
      out.push_back({id, at->first, at->second->buffer.bytes.size(), false,
                     at->second->at == receive::stage::posted});
    listed = 0;
    for (auto at = p.sends.lower_bound(bulk_tag{plan, 0, 0});
         at != p.sends.end() && at->first.plan == plan
         && ++listed <= link_hub::pending_max;
         ++at)
      out.push_back({id, at->first, at->second->buffer.bytes.size(), true,
                     at->second->at == sending::stage::sending});
  }
  return out;
}

link_service::queues state::longest_queues() const {
  link_service::queues most;
  most.cancelled_plans = cancelled.size();
  for (const auto& [id, p] : peers) {
    most.transfers =
      std::max({most.transfers, p.receives.size(), p.sends.size()});
    most.early_credits = std::max(most.early_credits, p.early.size());
    most.finished = std::max(most.finished, p.finished_order.size());
    most.outbox = std::max(most.outbox, p.outbox.size());
  }
  return most;
}

} // namespace links

} // namespace shoal::runtime
