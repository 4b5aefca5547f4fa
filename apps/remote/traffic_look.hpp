// apps/remote/traffic_look.hpp -- asks a node, and through it each of its peers, what
// went over their links.
//
// Nothing is sent between peers unless somebody looks.
//
// Threads: one at a time; look() blocks.
// Cost:    a status of each peer for each look, of at most peers_max peers; of more,
//          each in its turn. Of each answer, what parse_status() takes; kept are
//          flows between peers that the asked node knows (shoal_traffic.hpp).
// Errors:  look() fails only if the node does not answer. A peer that does not answer
//          within answer_max is `silent`, and is asked again after silent_for.
#pragma once

#include "apps/remote/shoal_traffic.hpp"
#include "apps/remote/status_asker.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shoal::apps {

class traffic_look {
public:
  static constexpr std::size_t peers_max = 64;
  static constexpr std::chrono::seconds answer_max{2};
  static constexpr std::chrono::seconds silent_for{15};
  /// Rates need a second look within this time.
  static constexpr std::chrono::seconds kept_for{30};

  /// @param node  its timeout is not used
  explicit traffic_look(runtime::client_config node);

  /// @param goes_on  asked between two peers
  /// @returns the status of the asked node, as it sent it
  model::result<std::string>
  look(const std::function<bool()>& goes_on = [] { return true; });

  [[nodiscard]] traffic_report report() const;

private:
  using clock = std::chrono::steady_clock;
  std::vector<std::string> peers_to_ask(const status_json& status);

  status_asker node_, peers_;
  std::set<std::string> ids_; ///< of the peers that the node knows
  clock::time_point looked_{};
  std::map<std::string, clock::time_point> silent_; ///< until when
  std::size_t turn_ = 0;
  shoal_traffic traffic_;
};

} // namespace shoal::apps
