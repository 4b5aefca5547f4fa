// runtime/node/status/node_metrics.cpp -- the metrics, one kind after the other.
#include "runtime/node/status/node_metrics.hpp"

#include "runtime/core/planning/placer.hpp"
#include "runtime/jobs/job_journal.hpp"

#include <algorithm>
#include <map>

namespace shoal::runtime {

namespace {

using enum metric_type;

constexpr metric_kind build_info{"shoal_build_info", gauge,
                                 "1; its label is the program's version",
                                 "version"};
constexpr metric_kind view_number{
  "shoal_view", gauge, "number of the view: it grows with each change"};
constexpr metric_kind quorum{
  "shoal_quorum", gauge, "whether the node is a member with a quorum: 1 or 0"};
constexpr metric_kind peers{"shoal_peers", gauge,
                            "members of the view by state", "state"};
constexpr metric_kind moved{
  "shoal_transport_bytes_total", counter,
  "bytes of tensors and weights that were exchanged with a peer",
  "peer, peer_name, transport, direction"};
constexpr metric_kind latency{"shoal_link_latency_seconds", gauge,
                              "measured time of a message to a peer, one way",
                              "peer, peer_name, transport"};
constexpr metric_kind rate{"shoal_link_bytes_per_second", gauge,
                           "measured speed of sending to a peer",
                           "peer, peer_name, transport"};
constexpr metric_kind jobs{"shoal_jobs", gauge,
                           "jobs that the shoal knows, by kind and state",
                           "kind, state"};
constexpr metric_kind waiting{
  "shoal_job_waiting", gauge,
  "whether a running job waits for something: 1 or 0", "job, job_name"};
constexpr metric_kind step{"shoal_train_step", gauge,
                           "steps that a training job has done",
                           "job, job_name"};
constexpr metric_kind loss{"shoal_train_loss", gauge,
                           "loss of its last step, in nats", "job, job_name"};
constexpr metric_kind tokens{"shoal_train_tokens_per_second", gauge,
                             "of its last steps, over about 10 s",
                             "job, job_name"};
constexpr metric_kind saved_step{"shoal_train_checkpoint_step", gauge,
                                 "step of its newest checkpoint",
                                 "job, job_name"};
constexpr metric_kind saved_at{
  "shoal_train_checkpoint_last_success_timestamp_seconds", gauge,
  "Unix time of its newest checkpoint", "job, job_name"};
constexpr metric_kind store_bytes{"shoal_store_bytes", gauge,
                                  "bytes in the node's store of files"};
constexpr metric_kind store_room{"shoal_store_room_bytes", gauge,
                                 "bytes that the store may still take"};
constexpr metric_kind cpu{"process_cpu_seconds_total", counter,
                          "processor time of the process"};
constexpr metric_kind resident{"process_resident_memory_bytes", gauge,
                               "memory of the process"};

void add_peers(const status_input& in, metric_page& to) {
  std::map<std::string, double> count{
    {"active", 0}, {"joining", 0}, {"leaving", 0}, {"unreachable", 0}};
  for (const core::member& m : in.view->members)
    ++count[member_state_text(in, m)];
  for (const auto& [state, n] : count)
    to.add(peers, {{"state", state}}, n);
}

void add_links(const status_input& in, metric_page& to) {
  for (const link_hub::link_stat& l : in.links) {
    const core::member* m =
      in.view ? core::find_member(*in.view, l.peer) : nullptr;
    const metric_labels link{{"peer", core::short_name(l.peer)},
                             {"peer_name", m != nullptr ? m->name : ""},
                             {"transport", l.fabric}};
    const auto direction = [&](const char* where, std::uint64_t bytes) {
      metric_labels labels = link;
      labels.emplace_back("direction", where);
      to.add(moved, labels, double(bytes));
    };
    direction("sent", l.sent_bytes);
    direction("received", l.received_bytes);
    if (l.latency_ns > 0)
      to.add(latency, link, double(l.latency_ns) / 1e9);
    if (l.bytes_per_s > 0)
      to.add(rate, link, double(l.bytes_per_s));
  }
}

void add_training(const status_input& in, const core::job_entry& job,
                  const metric_labels& label, metric_page& to) {
  const auto last = in.journal->last_step(job.id);
  to.add(step, label,
         double(last ? std::max(last->step, job.done_step) : job.done_step));
  if (last && last->step >= job.done_step) {
    to.add(loss, label, last->loss);
    const double pace = in.journal->tokens_per_s(job.id);
    to.add(tokens, label, pace > 0 ? pace : last->tokens_per_s);
  }
  if (const auto saved = in.journal->last_checkpoint(job.id)) {
    to.add(saved_step, label, double(saved->step));
    to.add(saved_at, label, double(saved->unix_ms) / 1000);
  }
}

void add_jobs(const status_input& in, metric_page& to) {
  std::map<std::pair<std::string, std::string>, double> count;
  for (const core::job_entry& job : in.view->jobs)
    ++count[{core::placer_of(job.kind).name, core::to_text(job.state)}];
  for (const auto& [of, n] : count)
    to.add(jobs, {{"kind", of.first}, {"state", of.second}}, n);
  for (const core::job_entry& job : in.view->jobs) {
    if (job.state != core::job_state::running)
      continue;
    const metric_labels label{{"job", core::job_text(job.id)},
                              {"job_name", job.name}};
    to.add(waiting, label, waits_for(in, job).empty() ? 0 : 1);
    if (in.journal != nullptr && job.kind == core::job_kind::train)
      add_training(in, job, label, to);
  }
}

} // namespace

const std::vector<metric_kind>& node_metric_kinds() {
  static const std::vector<metric_kind> all{
    build_info, view_number, quorum,      peers,      moved, latency,
    rate,       jobs,        waiting,     step,       loss,  tokens,
    saved_step, saved_at,    store_bytes, store_room, cpu,   resident};
  return all;
}

void add_node_metrics(const status_input& in, const std::string& version,
                      metric_page& to) {
  to.add(build_info, {{"version", version}}, 1);
  to.add(view_number, {}, in.view ? double(in.view->number) : 0);
  to.add(quorum, {},
         in.phase == core::cluster::phase::member && in.waiting.empty() ? 1
                                                                        : 0);
  if (in.view)
    add_peers(in, to);
  add_links(in, to);
  if (in.view)
    add_jobs(in, to);
  to.add(store_bytes, {}, double(in.resources.store_bytes));
  to.add(store_room, {}, double(in.resources.store_room_bytes));
  to.add(cpu, {}, in.resources.cpu_seconds);
  to.add(resident, {}, double(in.resources.resident_bytes));
}

} // namespace shoal::runtime
