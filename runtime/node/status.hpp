// runtime/node/status.hpp -- what `shoal status --json` prints.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/training/plan.hpp"
#include "runtime/field_text.hpp"
#include "runtime/links.hpp"
#include "runtime/node/beacon_filter.hpp"
#include "runtime/node/paired_ways.hpp"

#include <map>
#include <string>
#include <vector>

namespace shoal::runtime {

class job_journal;

/// What a connected peer says of the shoal that it is in.
struct shoal_of_peer {
  core::shoal_id shoal{};
  std::string name; ///< of the peer
  std::uint32_t members = 0;
  std::uint32_t running = 0; ///< jobs
};

struct status_input {
  core::peer_id self{};
  std::string name;
  std::string address;
  std::string data_dir;
  core::cluster::phase phase = core::cluster::phase::created;
  std::vector<core::peer_id> reachable;
  /// Of the programs of this node and of those in contact; others' are unknown.
  std::map<core::peer_id, std::string> versions;
  std::map<core::peer_id, shoal_of_peer> strangers; ///< members, too
  std::shared_ptr<const core::view> view;           ///< may be null
  std::shared_ptr<const core::plan> plan;           ///< may be null
  std::vector<link_hub::link_stat> links;
  std::vector<std::pair<core::peer_id, pair_choice>> pairs;
  beacon_counts beacons;
  const job_journal* journal = nullptr; ///< may be null
};

/// Peers: state is "active", "joining", "leaving" or "unreachable".
std::string status_json(const status_input& in);
std::vector<field_text> status_fields();
std::vector<field_text> job_fields(); ///< of each of its jobs

/// What `shoal attach` starts from: a job's place among the others, its last
/// step and its resolved run file.
std::string job_json(const status_input& in, const core::job_entry& job);

} // namespace shoal::runtime
