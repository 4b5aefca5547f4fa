// apps/remote/status_text.hpp -- a shoal's status as tables.
//
// All functions return lines for users, made from the result of parse_status().
#pragma once

#include "apps/remote/shoal_traffic.hpp"
#include "apps/remote/status_json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::apps {

/// Why the node waits for a quorum, and what to do; empty: it does not wait.
std::string no_quorum_text(const status_json& status);

/// "NAME (ID)" of the peers with which the node has no contact.
std::vector<std::string> unreachable_of(const status_json& status);

/// "host:port" at which clients reach the node that was asked by HTTP: if it
/// listens at all addresses, one of its machine. Empty: it answers none.
std::string http_address(const status_json& status);

/// Whether a job of it serves a model, instead of training one.
bool serves(const status_json& job);

/// Peers with their devices and work, pairs that cannot reach each other, jobs.
std::string status_table(const status_json& status);

/// One line for each fabric with traffic, the one in use first.
std::string links_table(const status_json& status);

/// One line from each peer to each, the busiest first.
std::string
traffic_table(const status_json& status, const traffic_report& traffic);

/// What a flow is for: names of jobs, the busiest first; "files" is of no job.
std::string purpose_of(const status_json& status, const flow& f);

/// The output of `shoal jobs`. @param now_ms Unix time, to which ages are
/// relative
std::string jobs_table(const status_json& status, std::int64_t now_ms);

} // namespace shoal::apps
