// runtime/node/status/status_links.cpp -- tables of links and of what went over them.
#include "runtime/node/status/status_links.hpp"

#include "runtime/core/text/hex.hpp"

namespace shoal::runtime {

using json = json_value;

namespace {

const json_table<link_hub::job_bytes>& job_bytes_table() {
  using b = const link_hub::job_bytes&;
  static const json_table<link_hub::job_bytes> table{
    {"job", "text", "", "its id; empty: of no job",
     [](b v) { return json(v.job ? core::job_text(v.job) : ""); }},
    {"sent_bytes", "whole number", "bytes", "to that peer",
     [](b v) { return json(v.sent); }},
    {"received_bytes", "whole number", "bytes", "from that peer",
     [](b v) { return json(v.received); }}};
  return table;
}

/// Bytes by fabric, and by job. Speeds are null while unknown.
const json_table<link_hub::link_stat>& moved_table() {
  using l = const link_hub::link_stat&;
  static const json_table<link_hub::link_stat> table{
    {"fabric", "text", "", "what carried them",
     [](l v) { return json(v.fabric); }},
    {"sent_bytes", "whole number", "bytes", "to that peer",
     [](l v) { return json(v.sent_bytes); }},
    {"received_bytes", "whole number", "bytes", "from that peer",
     [](l v) { return json(v.received_bytes); }},
    {"latency_ns", "whole number or null", "ns",
     "half of a small transfer's round trip; null: not known",
     [](l v) { return v.latency_ns ? json(v.latency_ns) : json(); }},
    {"bytes_per_s", "whole number or null", "bytes/s",
     "of what this node sends; null: not known",
     [](l v) { return v.bytes_per_s ? json(v.bytes_per_s) : json(); }},
    {"measured_ms_ago", "whole number, optional", "ms",
     "since either of both was measured last",
     [](l v) {
       return v.latency_ns || v.bytes_per_s ? json(v.age_ns / 1'000'000)
                                            : left_out();
     }},
    {"jobs", "list of objects", "", "the same by job",
     [](l v) { return written_each(job_bytes_table(), v.jobs); },
     texts_of(job_bytes_table())}};
  return table;
}

const json_table<fabric_reason>& reason_table() {
  static const json_table<fabric_reason> table{
    {"fabric", "text", "", "a faster one",
     [](const fabric_reason& r) { return json(r.fabric); }},
    {"why", "text", "", "why it is not used",
     [](const fabric_reason& r) { return json(r.why); }}};
  return table;
}

struct pair_of {
  core::peer_id peer;
  std::string fabric;
  std::vector<fabric_reason> instead_of;
  std::vector<link_hub::link_stat> moved;
};

const json_table<pair_of>& pair_table() {
  using p = const pair_of&;
  static const json_table<pair_of> table{
    {"peer", "text", "", "its id; this node's own: within the process",
     [](p v) { return json(core::to_hex(v.peer)); }},
    {"fabric", "text", "",
     "what carries tensors: `shm`, `rdma`, `ucx-tcp`, `tls`, or `local` within "
     "the process",
     [](p v) { return json(v.fabric); }},
    {"instead_of", "list of objects", "", "faster fabrics that are not used",
     [](p v) { return written_each(reason_table(), v.instead_of); },
     texts_of(reason_table())},
    {"moved", "list of objects", "", "what went over the link, by fabric",
     [](p v) { return written_each(moved_table(), v.moved); },
     texts_of(moved_table())}};
  return table;
}

} // namespace

json links_json(const status_input& in) {
  std::vector<pair_of> all;
  for (const auto& [peer, choice] : in.pairs) {
    pair_of& pair = all.emplace_back(
      pair_of{peer, name_of(choice.used), choice.instead_of, {}});
    for (const link_hub::link_stat& l : in.links)
      if (l.peer == peer)
        pair.moved.push_back(l);
  }
  for (const link_hub::link_stat& l : in.links)
    if (l.peer == in.self)
      all.push_back({l.peer, l.fabric, {}, {l}});
  return written_each(pair_table(), all);
}

std::vector<field_text> link_fields() {
  return texts_of(pair_table());
}

} // namespace shoal::runtime
