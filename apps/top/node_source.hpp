// apps/top/node_source.hpp -- asks the local node every interval, and through it
// every other peer for its own figures.
//
// Two threads: one asks the node, the other one peer after the other, so that a
// peer that hangs delays only the others' figures. A node that is lost is asked
// again every interval; another one that the client knows may answer instead.
//
// Threads:   look() from any; the rest from the one that owns it.
// Ownership: the function outlives it, and is called from the first thread.
// Cost:      a request for each peer and interval, of at most peers_max peers; at
//            the first sight of a training job its last events.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/top/top_memory.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace shoal::apps {

class node_source {
public:
  /// Peers that are asked in one interval; of more, each is asked in its turn.
  static constexpr std::size_t peers_max = 64;
  static constexpr std::chrono::milliseconds answer_max{3000};

  /// What is known now.
  struct answers {
    std::optional<status_json> status; ///< the last one
    top_memory memory;
    std::string lost; ///< why the node does not answer; empty: it does
  };

  /// @param changed called after each answer of the node, and when it is lost
  node_source(const node_address& at, std::chrono::milliseconds interval,
              std::function<void()> changed);
  /// Waits until requests under way have ended: at most answer_max each.
  ~node_source();

  /// Asks the node once. @returns why it does not answer; empty: it does. Before
  /// start() only.
  std::string ask_first();
  void start();
  void set_paused(bool paused);
  /// Calls `use` with the answers, which stay as they are meanwhile.
  void look(const std::function<void(const answers&)>& use) const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::apps
