// runtime/control/client_text.hpp -- why a client found no node, and what to
// do.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/control/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Errors on each way to a node; empty: none.
struct failed_ways {
  std::string last;      ///< of the last one that was tried
  std::string no_key;    ///< why there is no cluster key
  std::string not_there; ///< answer of a node that could have handed on the
                         ///< request
};

/// Why a client that has lost its node has not moved to another one.
struct other_nodes {
  bool named = false;                  ///< the lost node had told of others
  std::string no_key;                  ///< as in failed_ways
  std::vector<std::string> refusing;   ///< addresses of those that do not use
                                       ///< this client's key
  std::filesystem::path key_file = {}; ///< that the user has named
};

/// The line about a node that is lost while a client looks for another one, for
/// `seconds` more.
std::string lost_node_text(const std::string& lost, const other_nodes& others,
                           std::int64_t seconds);

/// The line about it when none has answered for `seconds`. @param refusing  as in
/// other_nodes
std::string
gone_node_text(const std::string& lost,
               const std::vector<std::string>& refusing, std::int64_t seconds);

/// Follows the reason why the answer to a new job did not come.
inline constexpr const char* may_have_job_text =
  "; it may have taken the job before: once it or another node answers, `shoal "
  "jobs` lists it";

/// The text for the user: "no node answers in DIR: start one with ...".
std::string no_node_text(const client_config& config, const failed_ways& ways);

/// A node takes connections and does not answer.
std::string
silent_node_text(const std::string& where, std::chrono::milliseconds waited);

} // namespace shoal::runtime
