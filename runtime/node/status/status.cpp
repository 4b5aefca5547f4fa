// runtime/node/status/status.cpp -- the output of `shoal status --json`.
//
// Each object is a table: name, type, unit, meaning, and how to get the value.
#include "runtime/node/status/status.hpp"

#include "runtime/core/planning/host_memory.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/node/state/other_shoals.hpp"
#include "runtime/node/status/status_discovery.hpp"
#include "runtime/node/status/status_jobs.hpp"
#include "runtime/node/status/status_links.hpp"
#include "runtime/node/status/status_serving.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace {

using json = json_value;

const char* phase_name(core::cluster::phase p) {
  switch (p) {
  case core::cluster::phase::created:
    return "starting";
  case core::cluster::phase::waiting:
    return "waiting";
  case core::cluster::phase::member:
    return "member";
  case core::cluster::phase::homeless:
    return "joining";
  case core::cluster::phase::gone:
    return "gone";
  }
  return "unknown";
}

// Peers.

struct device_of {
  const core::device_profile& is;
  /// Memory that jobs may use on it; peers of one host share that host's.
  std::optional<std::uint64_t> memory_for_jobs;
};

const json_table<device_of>& device_table() {
  using d = const device_of&;
  static const json_table<device_of> table{
    {"kind", "text", "", "`cpu`", [](d v) { return json(v.is.kind); }},
    {"name", "text", "", "the processor's name",
     [](d v) { return json(v.is.name); }},
    {"threads", "whole number", "", "threads that compute",
     [](d v) { return json(v.is.threads); }},
    {"host_threads", "whole number", "", "cores of its machine; 0: not known",
     [](d v) { return json(v.is.host_threads); }},
    {"mflops", "whole number", "MFLOP/s",
     "measured in float32 products when its node started, or by steps since",
     [](d v) { return json(v.is.mflops); }},
    {"stream_mbps", "whole number", "MB/s",
     "measured speed of its memory; 0: not known",
     [](d v) { return json(v.is.stream_mbps); }},
    {"memory_bytes", "whole number", "bytes", "that its node offers to jobs",
     [](d v) { return json(v.is.memory_bytes); }},
    {"host_memory_bytes", "whole number", "bytes",
     "of its machine or container, in all; 0: not known",
     [](d v) { return json(v.is.host_memory_bytes); }},
    {"memory_is_share", "true or false", "",
     "whether it shares what it offers with other nodes of its machine",
     [](d v) { return json(v.is.memory_is_share); }},
    {"disk_bytes", "whole number", "bytes",
     "room on its disk for files of served models, with those there; 0: not "
     "known",
     [](d v) { return json(v.is.disk_bytes); }},
    {"memory_for_jobs_bytes", "whole number, optional", "bytes",
     "what plans count on, after such sharing", [](d v) {
       return v.memory_for_jobs ? json(*v.memory_for_jobs) : left_out();
     }}};
  return table;
}

const json_table<core::network_profile>& network_table() {
  using n = const core::network_profile&;
  static const json_table<core::network_profile> table{
    {"name", "text", "", "the fabric; `host`: within its machine",
     [](n v) { return json(v.name); }},
    {"latency_ns", "whole number", "ns", "one way",
     [](n v) { return json(v.latency); }},
    {"bytes_per_s", "whole number", "bytes/s", "of what it sends",
     [](n v) { return json(v.bytes_per_s); }}};
  return table;
}

struct peer_of {
  const core::member& is;
  std::string version;
  bool reachable;
  std::optional<std::uint64_t> memory_for_jobs;
};

const char* state_of(const peer_of& p) {
  return p.is.state == core::member_state::joining   ? "joining"
         : !p.reachable                              ? "unreachable"
         : p.is.state == core::member_state::leaving ? "leaving"
                                                     : "active";
}

const json_table<peer_of>& peer_table() {
  using p = const peer_of&;
  static const json_table<peer_of> table{
    {"id", "text", "", "64 hexadecimal digits",
     [](p v) { return json(core::to_hex(v.is.id.peer)); }},
    {"name", "text", "", "--name of its node",
     [](p v) { return json(v.is.name); }},
    {"version", "text", "", "of its program; \"\": not known",
     [](p v) { return json(v.version); }},
    {"state", "text", "", "`active`, `joining`, `leaving` or `unreachable`",
     [](p v) { return json(state_of(v)); }},
    {"addresses", "list of texts", "", "where it listens",
     [](p v) { return json(v.is.addresses); }},
    {"devices", "list of objects", "", "what computes; none of a witness",
     [](p v) {
       return v.is.witness
                ? json::array()
                : json::array(
                  {written(device_table(), {v.is.device, v.memory_for_jobs})});
     },
     texts_of(device_table())},
    {"incarnation", "whole number", "",
     "number of the view that admitted it: another process, another number",
     [](p v) { return json(v.is.id.incarnation); }},
    {"host", "text", "", "equal for peers of one machine",
     [](p v) { return json(v.is.host); }},
    {"voter", "true or false", "", "whether it counts for the quorum",
     [](p v) { return json(v.is.voter); }},
    {"witness", "true or false", "", "whether it votes only",
     [](p v) { return json(v.is.witness); }},
    {"roles", "list of texts", "", "roles that run files may place there",
     [](p v) { return json(v.is.roles); }},
    {"networks", "list of objects", "",
     "measured at its end: what plans count on; none: assumed",
     [](p v) { return written_each(network_table(), v.is.networks); },
     texts_of(network_table())}};
  return table;
}

// The whole document.

json peers_json(const status_input& in) {
  json out = json::array();
  if (!in.view)
    return out;
  const auto memory = core::memory_for_jobs(*in.view, in.view->previous);
  for (const core::member& m : in.view->members) {
    const auto version = in.versions.find(m.id.peer);
    peer_of peer{m,
                 version == in.versions.end() ? "" : version->second,
                 std::ranges::count(in.reachable, m.id.peer) > 0,
                 {}};
    if (const auto at = memory.find(m.id.peer); at != memory.end())
      peer.memory_for_jobs = at->second;
    out.push_back(written(peer_table(), peer));
  }
  return out;
}

json cuts_json(const status_input& in) {
  json out = json::array();
  if (in.view)
    for (const core::cut_pair& cut : in.view->cuts)
      out.push_back({core::to_hex(cut.low.peer), core::to_hex(cut.high.peer)});
  return out;
}

const json_table<status_input>& status_table() {
  using s = const status_input&;
  static const json_table<status_input> table{
    {"epoch", "whole number", "", "of the view, counted up; 0: none yet",
     [](s v) { return json(v.view ? v.view->number : 0); }},
    {"id", "text", "", "of the shoal, in hexadecimal digits",
     [](s v) { return json(v.view ? core::to_hex(v.view->shoal) : ""); }},
    {"self", "text", "", "id of the node that answers",
     [](s v) { return json(core::to_hex(v.self)); }},
    {"name", "text", "", "its name", [](s v) { return json(v.name); }},
    {"address", "text", "", "where it listens",
     [](s v) { return json(v.address); }},
    {"http", "text, optional", "", "where it answers clients of models",
     [](s v) { return v.http.empty() ? left_out() : json(v.http); }},
    {"local_only", "true or false, optional", "",
     "`true`: it was started without `--cluster-key`, so no other machine can "
     "reach it",
     [](s v) { return v.local_only ? json(true) : left_out(); }},
    {"data_dir", "text", "", "its data directory",
     [](s v) { return json(v.data_dir); }},
    {"state", "text", "",
     "of the node: `starting`, `waiting` (no quorum), `member`, `joining` or "
     "`gone`",
     [](s v) { return json(phase_name(v.phase)); }},
    {"waiting", "text, optional", "", "why it has no quorum, and what to do",
     [](s v) { return v.waiting.empty() ? left_out() : json(v.waiting); }},
    {"revoked_by", "text, optional", "",
     "while there is no quorum: who said when that the node was revoked",
     [](s v) {
       return v.revoked_by.empty() ? left_out() : json(v.revoked_by);
     }},
    {"cluster", "text, optional", "", "name of the shoal",
     [](s v) { return v.view ? json(v.view->cluster) : left_out(); }},
    {"peers", "list of objects", "", "members of the view", peers_json,
     texts_of(peer_table())},
    {"jobs", "list of objects", "", "as `shoal jobs --json` lists them",
     jobs_json},
    {"other_shoals", "list of objects", "",
     "of this cluster and in reach: they join when no job is in the way",
     [](s v) { return other_shoals_json(v.view.get(), v.strangers); },
     other_shoal_fields()},
    {"apart", "list of objects", "",
     "nodes that this one has met in the last 10 minutes and that are not of "
     "its shoal: another cluster key, --cluster or planner",
     apart_json, apart_fields()},
    {"former", "list of objects", "",
     "members that are gone since this node has started and have not come "
     "back, "
     "the newest last",
     former_json, former_fields()},
    {"cuts", "list of lists of texts", "",
     "ids of two members each that cannot reach each other", cuts_json},
    {"links", "list of objects", "", "how tensors reach each peer", links_json,
     link_fields()},
    {"beacons", "object", "",
     "multicast beacons that were received, by what became of them",
     beacons_json, beacon_fields()},
    {"resources", "object", "", "what the process of the node uses",
     [](s v) { return resources_json(v.resources); }, resource_fields()},
    {"serving", "list of objects", "",
     "how busy each served model is, as the node knows it",
     [](s v) { return serving_json(v.serving); }, serving_fields()}};
  return table;
}

} // namespace

std::string status_json(const status_input& in) {
  return model::json_text(written(status_table(), in));
}

std::string member_state_text(const status_input& in, const core::member& m) {
  return state_of({m, {}, std::ranges::count(in.reachable, m.id.peer) > 0, {}});
}

std::vector<field_text> status_fields() {
  return texts_of(status_table());
}

} // namespace shoal::runtime
