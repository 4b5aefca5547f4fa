// runtime/node/state/absent_peers.hpp -- peers that are not here: since when, and why.
//
// A person who asks for a peer is told apart: a name that nobody had, a member
// that cannot be reached, and one that was a member. Only this process's time
// is known: what was before it started, nobody remembers here.
//
// Threads: one at a time; the node guards it.
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace shoal::runtime {

class absent_peers {
public:
  /// Former members that are remembered, the last ones: a quarter of a full
  /// shoal may go at once. 256 names take 64 KiB at most.
  static constexpr std::size_t former_max = 256;
  /// Peers whose last connection is remembered: as many as a shoal has members.
  static constexpr std::size_t lost_max = 1024;

  /// What a person may mean by a word: a member, or none, and then why.
  struct meant {
    core::peer_id peer{};
    std::string why; ///< empty: `peer` is the one
  };

  explicit absent_peers(std::int64_t started_unix_ms)
    : started_ms_(started_unix_ms) {}

  void connected(const core::peer_id& peer);
  void disconnected(const core::peer_id& peer, std::int64_t unix_ms);
  /// A view has taken effect; `before` may be null.
  void adopted(const core::view* before, const core::view& now,
               std::int64_t unix_ms);

  /// The member of `v` with this name, address or beginning of an id.
  meant find(const core::view& v, const std::string& word,
             std::int64_t unix_ms) const;

  /// "peer two (9f86d081) is not reachable since ...", of one that has no
  /// connection. @pre a member of `v`
  std::string unreachable(const core::view& v, const core::peer_id& peer,
                          std::int64_t unix_ms) const;

private:
  struct former {
    core::peer_id peer{};
    std::string name;
    std::string gone; ///< "left the shoal", ...
    std::int64_t unix_ms = 0;
  };

  const former* find_former(const std::string& word) const;
  std::string nobody(const core::view& v, const std::string& word) const;

  std::int64_t started_ms_;
  std::map<core::peer_id, std::int64_t> lost_; ///< when, Unix time
  std::deque<former> former_;                  ///< newest last
};

} // namespace shoal::runtime
