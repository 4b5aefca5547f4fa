// apps/remote/traffic_look.hpp -- asks a node, and through it each of its peers, what
// went over their links.
//
// Nothing is sent between peers unless somebody looks.
//
// Threads: one at a time; look() blocks.
// Cost:    a status of each peer for each look, of at most peers_max peers; of more,
//          each in its turn.
// Errors:  look() fails only if the node does not answer. A peer that does not answer
//          within answer_max is `silent`, and is asked again after silent_for.
#pragma once

#include "apps/remote/shoal_traffic.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
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
  model::result<std::string>
  ask(runtime::client& client, bool& connected, const std::string& peer);

  runtime::client node_, peers_;
  bool node_connected_ = false, peers_connected_ = false;
  clock::time_point looked_{};
  std::map<std::string, clock::time_point> silent_; ///< until when
  std::size_t turn_ = 0;
  shoal_traffic traffic_;
};

} // namespace shoal::apps
