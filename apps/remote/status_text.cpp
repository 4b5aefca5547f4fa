// apps/remote/status_text.cpp -- formats a status in columns.
#include "apps/remote/status_text.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/host/ip_address.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

namespace shoal::apps {
namespace {

using json = status_json;

/// Appends text in the format of printf.
[[gnu::format(printf, 2, 3)]] void
put(std::string& out, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int bytes = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  if (bytes > 0) {
    const std::size_t begin = out.size();
    out.resize(begin + std::size_t(bytes) + 1); // includes the '\0' of
                                                // vsnprintf
    std::vsnprintf(out.data() + begin, std::size_t(bytes) + 1, format, again);
    out.pop_back();
  }
  va_end(again);
}

const char* text(const json& from, const char* key) {
  return text_of(from, key).c_str();
}

/// The first bytes of an id, or of the text in its place.
std::string begin_of(const json& id, std::size_t bytes) {
  return core::shown(id.get_ref<const std::string&>(), bytes);
}

unsigned long long number(const json& from, const char* key) {
  return from[key].get<std::uint64_t>();
}

std::string devices_of(const json& peer) {
  if (peer["witness"].get<bool>())
    return "witness";
  std::string out;
  for (const json& d : peer["devices"])
    put(
      out, "%s%s %s %.*f GFLOP/s %s", out.empty() ? "" : ", ", text(d, "kind"),
      core::count_text(number(d, "threads"), "thread").c_str(),
      number(d, "mflops") < 10'000 ? 1 : 0, double(number(d, "mflops")) / 1000,
      core::size_text(number(d, d.contains("memory_for_jobs_bytes")
                                  ? "memory_for_jobs_bytes"
                                  : "memory_bytes"))
        .c_str());
  return peer["voter"].get<bool>() ? out : out + ", no vote";
}

/// The room that a peer's disk has for files of models, or "-" if unknown.
std::string disk_of(const json& peer) {
  std::uint64_t bytes = 0;
  for (const json& d : peer["devices"])
    bytes = std::max<std::uint64_t>(bytes, number(d, "disk_bytes"));
  if (bytes <= 1) // of a full disk a peer tells the least: 0 is not known
    return bytes == 0 ? "-" : "full";
  return core::size_text(bytes);
}

/// Of the node that was asked: what its files take of the disk.
std::string store_of(const json& status) {
  if (!status.contains("resources"))
    return {};
  const json& r = status["resources"];
  return ": its files take " + core::size_text(number(r, "store_bytes"))
         + " of its disk, and may take "
         + core::size_text(number(r, "store_room_bytes")) + " more";
}

/// The speed of a link, or "-" while it is unmeasured.
std::string speed_text(const json& value, double per, const char* unit) {
  std::string out;
  if (value.is_number())
    put(out, "%.1f %s", value.get<double>() / per, unit);
  return out.empty() ? "-" : out;
}

std::string name_of(const json& status, const std::string& id) {
  for (const json& p : status["peers"])
    if (text_of(p, "id") == id && !text_of(p, "name").empty())
      return text_of(p, "name");
  return begin_of(id, 8);
}

void put_moved(std::string& out, const std::string& peer, const json& moved,
               const std::string& why) {
  const std::string measured =
    moved.contains("measured_ms_ago")
      ? core::age_text(std::int64_t(number(moved, "measured_ms_ago"))) + " ago"
      : "-";
  put(out, "%-16s %-6s %10s %12s %10s %11s %11s  %s\n", peer.c_str(),
      text(moved, "fabric"), speed_text(moved["latency_ns"], 1e3, "us").c_str(),
      speed_text(moved["bytes_per_s"], 1e6, "MB/s").c_str(), measured.c_str(),
      core::size_text(number(moved, "sent_bytes")).c_str(),
      core::size_text(number(moved, "received_bytes")).c_str(), why.c_str());
  for (const json& j : moved["jobs"]) {
    const std::string& job = text_of(j, "job");
    put(out, "  %-49s %20s %11s\n",
        job.empty() ? "no job" : ("job " + job).c_str(),
        core::size_text(number(j, "sent_bytes")).c_str(),
        core::size_text(number(j, "received_bytes")).c_str());
  }
}

/// The version of each peer: one line if all are equal.
void put_versions(std::string& out, const json& status) {
  std::map<std::string, std::vector<std::string>> peers; // by version
  std::vector<std::string> unknown;
  for (const json& p : status["peers"]) {
    const std::string& version = text_of(p, "version");
    (version.empty() ? unknown : peers[version])
      .push_back(text_of(p, "name").empty() ? begin_of(p["id"], 8)
                                            : text_of(p, "name"));
  }
  if (peers.size() == 1) {
    const auto& [version, names] = *peers.begin();
    const std::size_t all = names.size() + unknown.size();
    if (all == 1)
      put(out, "this peer runs");
    else if (unknown.empty())
      put(out, "all peers run");
    else
      put(out, "%zu of %zu peers %s", names.size(), all,
          names.size() == 1 ? "runs" : "run");
    put(out, " shoal %s", version.c_str());
    if (!unknown.empty())
      put(out, "; not known: %s", core::listed(unknown).c_str());
    put(out, "\n");
  } else if (peers.size() > 1) {
    put(out, "peers run different versions; install one on all of them:\n");
    for (const auto& [version, names] : peers)
      put(out, "  %s: %s\n", version.c_str(), core::listed(names).c_str());
    if (!unknown.empty())
      put(out, "  not known: %s\n", core::listed(unknown).c_str());
  }
}

/// Of a training job that is served: which checkpoint is.
std::string version_of(const json& job) {
  return job.contains("version")
           ? ", step " + std::to_string(job["version"].get<std::uint64_t>())
           : "";
}

/// A peer's work for a job, in lines of its own. The shoal counts stages in
/// blocks; users know them as layers of the model.
void put_work(std::string& out, const json& peer, const json& job) {
  const json& replicas = job["places"];
  for (std::size_t r = 0; r < replicas.size(); ++r)
    for (std::size_t s = 0; s < replicas[r].size(); ++s) {
      const json& stage = replicas[r][s];
      if (text_of(stage, "id") != text_of(peer, "id"))
        continue;
      if (serves(job))
        put(out, "  serves %s (%s)%s, stage %zu of %zu, ", text(job, "name"),
            begin_of(job["id"], 8).c_str(), version_of(job).c_str(), s + 1,
            replicas[r].size());
      else
        put(out, "  trains job %s (%s), replica %zu stage %zu, ",
            text(job, "name"), begin_of(job["id"], 8).c_str(), r, s);
      const auto first = stage["first_layer"].get<std::int64_t>();
      const auto last = stage["last_layer"].get<std::int64_t>();
      if (first == last)
        put(out, "layer %lld\n", (long long)first);
      else
        put(out, "layers %lld-%lld\n", (long long)first, (long long)last);
    }
  if (!job.contains("keepers") || text_of(job, "state") != "running")
    return;
  const json& keepers = job["keepers"];
  const bool shared = job.contains("part_keepers");
  const json& disks = shared ? job["part_keepers"] : keepers;
  const auto takes = std::size_t(std::ranges::count_if(
    disks, [](const json& k) { return !k["refuses"].get<bool>(); }));
  const std::string counted = core::count_text(takes, "disk");
  for (const json& k : disks) {
    if (text_of(k, "id") != text_of(peer, "id"))
      continue;
    const std::string id = begin_of(job["id"], 8);
    if (serves(job)) {
      put(out, "  keeps files of %s (%s)\n", text(job, "name"), id.c_str());
      continue;
    }
    if (k["refuses"].get<bool>()) {
      put(out,
          "  keeps no checkpoints of job %s (%s): its disk has refused them "
          "(full, read-only or damaged)\n",
          text(job, "name"), id.c_str());
      continue;
    }
    put(out, "  keeps the checkpoints of job %s (%s): ", text(job, "name"),
        id.c_str());
    const std::string newest =
      job.contains("checkpoint")
        ? "the job's newest is of step "
            + std::to_string(job["checkpoint"]["step"].get<std::uint64_t>())
        : "none is known here yet";
    if (shared)
      put(out, "in parts on %s, each part on %zu; %s\n", counted.c_str(),
          keepers.size(), newest.c_str());
    else
      put(out, "whole on %s; %s\n",
          takes == 1 ? "this disk alone" : counted.c_str(), newest.c_str());
  }
}

} // namespace

bool serves(const json& job) {
  return text_of(job, "kind") == "serve";
}

/// Of a job: "ending" while a user waits for its end.
static const char* state_of(const json& job) {
  return job["ending"].get<bool>() ? "ending" : text(job, "state");
}

std::vector<std::string> unreachable_of(const json& status) {
  std::vector<std::string> out;
  for (const json& p : status["peers"])
    if (text_of(p, "state") == "unreachable")
      out.push_back(text_of(p, "name") + " (" + begin_of(p["id"], 8) + ")");
  return out;
}

std::string no_quorum_text(const status_json& status) {
  if (text_of(status, "state") != "waiting")
    return {};
  if (status.contains("waiting"))
    return text_of(status, "waiting");
  return "no quorum: cannot reach " + core::listed(unreachable_of(status));
}

std::string http_address(const status_json& status) {
  if (!status.contains("http"))
    return {};
  std::string bound = text_of(status, "http");
  const auto all = runtime::parse_ip(runtime::host_of(bound));
  if (!all || !runtime::is_any(all->address))
    return bound;
  const bool four = runtime::is_v4(all->address);
  const std::string port = bound.substr(bound.rfind(':'));
  for (const json& p : status["peers"]) {
    if (text_of(p, "id") != text_of(status, "self"))
      continue;
    for (const json& address : p["addresses"]) {
      const std::string host = runtime::host_of(address.get<std::string>());
      const auto ip = runtime::parse_ip(host);
      if (ip && runtime::is_v4(ip->address))
        return host + port;
      if (ip && !four && !runtime::is_link_local(ip->address))
        return "[" + host + "]" + port;
    }
  }
  return (four ? "127.0.0.1" : "[::1]") + port;
}

/// "host3 (9f86d081), lost at 2026-11-29 11:50:07 UTC; ...", the newest first.
static std::string former_text(const status_json& status) {
  constexpr std::size_t shown_max = 8;
  if (!status.contains("former"))
    return {};
  const json& all = status["former"];
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), shown_max); ++i) {
    const json& f = all[all.size() - 1 - i];
    const std::string how = text_of(f, "how");
    out += (i == 0 ? "" : "; ") + text_of(f, "name") + " ("
           + begin_of(f["id"], 8) + "), "
           + (how == "elsewhere" ? "in another shoal" : how) + " at "
           + core::utc_text(std::int64_t(number(f, "unix_ms")));
  }
  if (all.size() > shown_max)
    out += "; and " + std::to_string(all.size() - shown_max) + " more";
  return out;
}

std::string status_table(const status_json& status) {
  std::string out;
  put(out, "shoal %s  epoch %llu  %s\n", begin_of(status["id"], 12).c_str(),
      number(status, "epoch"), text(status, "state"));
  if (const std::string why = no_quorum_text(status); !why.empty())
    put(out, "%s\n", why.c_str());
  put(out, "%-10s %-16s %-12s %-22s %10s  %s\n", "PEER", "NAME", "STATE",
      "ADDRESS", "DISK", "DEVICES");
  for (const json& p : status["peers"]) {
    const json& addresses = p["addresses"];
    const bool own = text_of(p, "id") == text_of(status, "self");
    put(out, "%-10s %-16s %-12s %-22s %10s  %s\n",
        (begin_of(p["id"], 8) + (own ? "*" : "")).c_str(), text(p, "name"),
        text(p, "state"),
        addresses.empty() ? "" : addresses[0].get<std::string>().c_str(),
        disk_of(p).c_str(), devices_of(p).c_str());
    for (const json& j : status["jobs"])
      put_work(out, p, j);
  }
  put(out, "* the node that was asked (%s)%s\n", text(status, "name"),
      store_of(status).c_str());
  if (const std::string gone = former_text(status); !gone.empty())
    put(out, "not here any more: %s\n", gone.c_str());
  if (const std::string http = http_address(status); !http.empty())
    put(out,
        "models are served over HTTP at http://%s/v1, and in a browser at "
        "http://%s/\n",
        http.c_str(), http.c_str());
  if (status.contains("local_only") && status["local_only"] == true)
    put(out, "it was started without --cluster-key: no other machine can reach "
             "it\n");
  put_versions(out, status);
  const json& beacons = status["beacons"];
  if (number(beacons, "strange_last_minute") > 0)
    put(
      out,
      "%s of nodes with another cluster key or --cluster heard in the last "
      "minute, the last one %s ago: they are not of this shoal\n",
      core::count_text(number(beacons, "strange_last_minute"), "announcement")
        .c_str(),
      core::age_text(std::int64_t(number(beacons, "strange_age_ms"))).c_str());
  for (const json& a : status["apart"]) {
    const auto since = std::int64_t(number(a, "since_unix_ms"));
    const auto latest = std::int64_t(number(a, "latest_unix_ms"));
    put(out, "not of this shoal: %s, since %s, last at %s: %s\n",
        text(a, "address"), core::utc_text(since).c_str(),
        core::utc_text(latest).c_str(), text(a, "why"));
  }
  for (const json& o : status["other_shoals"]) {
    std::vector<std::string> names;
    for (const json& name : o["peers"])
      names.push_back(name.get<std::string>());
    const std::string way =
      o.contains("gives_way") ? text_of(o, "gives_way") : "";
    put(out,
        "another shoal of this cluster is in reach: %s, %s (connected: %s), %s "
        "running; %s\n",
        begin_of(o["id"], 12).c_str(),
        core::count_text(number(o, "members"), "member").c_str(),
        core::listed(names).c_str(),
        core::count_text(number(o, "running"), "job").c_str(),
        way == "this"
          ? "it was made in place of this one by `recover --force`: this shoal "
            "joins it when it runs no job, so end its jobs here (`shoal "
            "cancel`). What they have trained since the split ends with them: "
            "`shoal attach JOB --out DIR` before that keeps it"
        : way == "other"
          ? "this one was made in its place by `recover --force`: it joins "
            "this one when it runs no job, so end its jobs there (`shoal "
            "cancel` on one of its nodes). What they have trained since the "
            "split ends with them: `shoal attach JOB --out DIR` there, before "
            "that, keeps it"
        : names.size() * 2 <= number(o, "members")
          ? "one joins the other when no job is in the way, and it has a "
            "quorum: half of its members or fewer are in reach here, so look "
            "at `shoal status` there"
          : "one joins the other when no job is in the way");
  }
  for (const json& cut : status["cuts"])
    if (cut.size() == 2)
      put(out, "no way between %s and %s\n",
          name_of(status, begin_of(cut[0], 64)).c_str(),
          name_of(status, begin_of(cut[1], 64)).c_str());
  for (const json& j : status["jobs"])
    put(out, "job %s  %s  %s  %s\n", text(j, "id"), text(j, "name"),
        state_of(j),
        j.contains("waiting") ? ("waits: " + text_of(j, "waiting")).c_str()
        : j.contains("cause") ? text(j, "cause")
        : j.contains("plan")  ? text(j, "plan")
                              : "");
  return out;
}

std::string links_table(const status_json& status) {
  std::string out;
  put(out, "%-16s %-6s %10s %12s %10s %11s %11s  %s\n", "PEER", "FABRIC",
      "LATENCY", "BANDWIDTH", "MEASURED", "SENT", "RECEIVED", "WHY NOT BETTER");
  for (const json& l : status["links"]) {
    std::string why;
    for (const json& r : l["instead_of"])
      why += (why.empty() ? "" : "; ") + text_of(r, "fabric") + ": "
             + text_of(r, "why");
    const json unused = {{"fabric", l["fabric"]}, {"sent_bytes", 0u},
                         {"received_bytes", 0u},  {"latency_ns", json()},
                         {"bytes_per_s", json()}, {"jobs", json::array()}};
    std::vector<const json*> lines{&unused};
    for (const json& m : l["moved"])
      if (m["fabric"] == l["fabric"])
        lines[0] = &m;
      else
        lines.push_back(&m);
    const std::string peer = name_of(status, text_of(l, "peer"));
    for (const json* m : lines)
      put_moved(out, peer, *m, m == lines[0] ? why : "before");
  }
  return out;
}

std::string purpose_of(const status_json& status, const flow& f) {
  std::vector<std::string> out;
  for (const flow::part& p : f.parts) {
    std::string name = p.job.empty() ? "files" : begin_of(json(p.job), 16);
    for (const json& j : status["jobs"])
      if (text_of(j, "id") == p.job && !text_of(j, "name").empty())
        name = core::shown(text_of(j, "name"));
    out.push_back(std::move(name));
  }
  return core::listed(out);
}

std::string
traffic_table(const status_json& status, const traffic_report& traffic) {
  std::string out;
  put(out, "%-16s %-16s %12s %11s  %s\n", "FROM", "TO", "RATE", "SENT", "FOR");
  for (const flow& f : traffic.flows)
    put(out, "%-16s %-16s %12s %11s  %s\n", name_of(status, f.from).c_str(),
        name_of(status, f.to).c_str(),
        f.bytes_per_s ? core::rate_text(std::uint64_t(*f.bytes_per_s)).c_str()
                      : "-",
        core::size_text(f.bytes).c_str(), purpose_of(status, f).c_str());
  if (traffic.flows.empty())
    put(out, "no peer has sent tensors or files to another one\n");
  if (traffic.more > 0)
    put(out, "and %zu pairs with less traffic\n", traffic.more);
  std::vector<std::string> silent;
  for (const std::string& id : traffic.silent)
    silent.push_back(name_of(status, id));
  if (!silent.empty())
    put(out, "no answer from %s: traffic between two of them is not known\n",
        core::listed(silent).c_str());
  return out;
}

namespace {

/// Running and waiting jobs first, by priority, then by age, oldest first;
/// after them those that have ended, latest first.
std::vector<const json*> in_order(const json& jobs) {
  std::vector<const json*> out;
  for (const json& j : jobs)
    out.push_back(&j);
  const auto place = [](const json* j) {
    const auto changed = std::int64_t(number(*j, "changed")); // <= 2^56
    return text_of(*j, "state") == "running"
             ? std::tuple(0, -(*j)["priority"].get<std::int64_t>(), changed)
             : std::tuple(1, std::int64_t{0}, -changed);
  };
  std::ranges::stable_sort(out, {}, place);
  return out;
}

} // namespace

std::string jobs_table(const status_json& status, std::int64_t now_ms) {
  std::string out;
  put(out, "%-16s  %-16s %6s  %-16s %4s  %-9s %15s %9s %10s  %s\n", "JOB",
      "NAME", "AGE", "USER", "PRIO", "STATE", "STEP", "LOSS", "TOKENS/S",
      "WHERE");
  for (const json* each : in_order(status["jobs"])) {
    const json& j = *each;
    const bool waits = j.contains("waiting");
    const bool runs = text_of(j, "state") == "running";
    std::string loss, speed;
    if (j["loss"].is_number())
      put(loss, "%.4f", j["loss"].get<double>());
    if (runs && !waits && j["tokens_per_s"].is_number())
      put(speed, "%.0f", j["tokens_per_s"].get<double>());
    const std::string step = serves(j) ? (runs ? "serves" : "served")
                                       : std::to_string(number(j, "step")) + "/"
                                           + std::to_string(number(j, "steps"));
    const auto since = std::int64_t(number(j, "submitted_unix_ms"));
    put(out, "%-16s  %-16s %6s  %-16s %4d  %-9s %15s %9s %10s  %s\n",
        text(j, "id"), text(j, "name"),
        since == 0 ? "-" : core::age_text(now_ms - since).c_str(),
        text_of(j, "user").empty() ? "-" : text(j, "user"),
        j["priority"].get<int>(),
        waits && !j["ending"].get<bool>() ? "waits" : state_of(j), step.c_str(),
        loss.empty() ? "-" : loss.c_str(), speed.empty() ? "-" : speed.c_str(),
        waits                 ? text(j, "waiting")
        : j.contains("cause") ? text(j, "cause")
        : j.contains("plan")  ? text(j, "plan")
                              : "");
  }
  return out;
}

} // namespace shoal::apps
