// apps/remote/last_checkpoint.cpp -- asks the peers of a status, one by one.
#include "apps/remote/last_checkpoint.hpp"

#include "apps/common/report.hpp"
#include "apps/remote/remote.hpp"
#include "runtime/core/text/hex.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

namespace shoal::apps {

namespace {

const status_json* job_in(const status_json& status, const std::string& id) {
  for (const status_json& j : status["jobs"])
    if (text_of(j, "id") == id)
      return &j;
  return nullptr;
}

/// The step of the newest checkpoint that the node knows; -1: none.
std::int64_t saved_step(const status_json& job) {
  return job.contains("checkpoint")
           ? job["checkpoint"]["step"].get<std::int64_t>()
           : -1;
}

/// A client of a peer in the asked node's status: through that node, or by the
/// peer's addresses where the user has named some.
runtime::client_config
client_of_peer(const status_json& peer, const node_address& at) {
  runtime::client_config c = client_of(at);
  c.data_dir.clear();
  c.addresses.clear();
  if (at.peers.empty()) {
    c.through = std::filesystem::absolute(data_dir_of(at));
    c.cluster_key_file.clear();
    c.addresses.push_back(text_of(peer, "id"));
  } else {
    for (const status_json& address : peer["addresses"])
      c.addresses.push_back(address.get<std::string>());
  }
  return c;
}

} // namespace

std::optional<runtime::job_event>
last_elsewhere(const status_json& status, const std::string& id,
               const node_address& at,
               const std::function<void(const std::string&)>& say,
               std::optional<std::uint64_t> ended_at) {
  const status_json* here = job_in(status, id);
  if (!here || (!ended_at && text_of(*here, "state") == "running"))
    return std::nullopt;
  const auto end =
    ended_at ? std::int64_t(*ended_at) : (*here)["step"].get<std::int64_t>();
  if (saved_step(*here) >= end)
    return std::nullopt;
  bool said = false;
  auto newest = std::max<std::int64_t>(saved_step(*here), 0);
  std::optional<runtime::job_event> found;
  for (const status_json& peer : status["peers"]) {
    if (text_of(peer, "id") == text_of(status, "self")
        || text_of(peer, "state") == "unreachable")
      continue;
    if (!std::exchange(said, true)) {
      const std::string line = "this node knows no checkpoint of step "
                               + std::to_string(end) + " of job " + id
                               + ": asking the other peers";
      if (say)
        say(line);
      else
        std::cerr << "shoal: " << line << "\n";
    }
    runtime::client client(client_of_peer(peer, at));
    if (client.connect())
      continue;
    const auto theirs = status_of(client);
    const status_json* there = theirs ? job_in(*theirs, id) : nullptr;
    runtime::job_event out;
    if (there && saved_step(*there) > newest
        && core::from_hex(text_of((*there)["checkpoint"], "digest"),
                          out.digest)) {
      newest = saved_step(*there);
      out.kind = runtime::job_event_kind::checkpoint;
      out.step = std::uint64_t(newest);
      found = out;
      if (newest >= end)
        break;
    }
  }
  return found;
}

} // namespace shoal::apps
