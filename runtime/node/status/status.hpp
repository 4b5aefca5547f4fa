// runtime/node/status/status.hpp -- the output of `shoal status --json`.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/serving/served_load.hpp"
#include "runtime/discovery/apart_nodes.hpp"
#include "runtime/discovery/beacon_filter.hpp"
#include "runtime/files/field_text.hpp"
#include "runtime/links/data_paths.hpp"
#include "runtime/links/links.hpp"
#include "runtime/node/state/known_nodes.hpp" // shoal_of_peer
#include "runtime/node/status/node_resources.hpp"

#include <map>
#include <string>
#include <vector>

namespace shoal::runtime {

class job_journal;

struct status_input {
  core::peer_id self{};
  std::string name;
  std::string address;
  bool local_only = false; ///< as it has no cluster key
  std::string http; ///< where clients of models are answered; empty: nowhere
  std::string data_dir;
  core::cluster::phase phase = core::cluster::phase::created;
  std::vector<core::peer_id> reachable;
  std::string waiting; ///< why there is no quorum, and what to do
  /// As known_nodes::accuser(), while there is no quorum.
  std::string revoked_by;
  /// Program versions of this node and of those in contact; others' are
  /// unknown.
  std::map<core::peer_id, std::string> versions;
  std::map<core::peer_id, shoal_of_peer> strangers; ///< members, too
  std::shared_ptr<const core::view> view;           ///< may be null
  std::shared_ptr<const core::plan> plan;           ///< may be null
  std::vector<link_hub::link_stat> links;
  std::vector<std::pair<core::peer_id, pair_choice>> pairs;
  beacon_counts beacons;
  std::vector<apart_node> apart;     ///< nodes met that belong to other shoals
  std::vector<former_member> former; ///< members that are gone
  std::int64_t unix_ms = 0;          ///< now, to which ages are relative
  const job_journal* journal = nullptr; ///< may be null
  /// Peers whose disks refuse checkpoints, as far as known here.
  std::map<core::island_id, std::vector<core::peer_id>> refusing_disks;
  std::vector<core::served_load> serving; ///< as the gateway has reported
  node_resources resources;
};

/// Peers: state is "active", "joining", "leaving" or "unreachable".
std::string status_json(const status_input& in);
std::vector<field_text> status_fields();
/// The state of a member, in these words.
std::string member_state_text(const status_input& in, const core::member& m);
/// What a running job waits for; empty: nothing.
std::string waits_for(const status_input& in, const core::job_entry& job);
std::vector<field_text> job_fields(); ///< of each of its jobs

/// The starting point of `shoal attach`: a job's entry in the status, its last
/// step and its resolved run file.
std::string job_json(const status_input& in, const core::job_entry& job);

} // namespace shoal::runtime
