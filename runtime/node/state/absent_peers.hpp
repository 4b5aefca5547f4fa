// runtime/node/state/absent_peers.hpp -- absent peers: since when, and why.
//
// A user who names a peer gets different answers for a name that no peer had,
// for a member that cannot be reached, and for a former member. Only what
// happened since the start of this process is known.
//
// Threads: one at a time; the node guards it.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace shoal::core {
struct view; // runtime/core/view.hpp
}

namespace shoal::runtime {

enum class departure : std::uint8_t {
  left = 1,
  lost = 2, ///< out of reach, or it held up a job
  revoked = 3,
  stayed = 4, ///< it is in the shoal that this node has left for another
};

struct former_member {
  core::peer_id peer{};
  std::string name;
  departure how = departure::lost;
  std::int64_t unix_ms = 0;
};

class absent_peers {
public:
  /// Limit of the former members that are remembered, newest first: a quarter
  /// of a full shoal may leave at once. 256 names take 64 KiB at most.
  static constexpr std::size_t former_max = 256;
  /// Limit of the peers whose last connection is remembered: the largest number
  /// of a shoal's members.
  static constexpr std::size_t lost_max = 1024;

  /// The result of a search: a member, or the reason why there is none.
  struct meant {
    core::peer_id peer{};
    std::string why; ///< empty: `peer` was found
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

  /// All that have not come back, newest last; former_max at most.
  const std::deque<former_member>& former() const { return former_; }

  /// The former members with this name.
  std::vector<core::peer_id> gone(const std::string& name) const;

  /// "two (9f86d081)" each, or the digits alone of one that went earlier.
  std::vector<std::string> names(const std::vector<core::peer_id>& peers) const;

  /// "peer two (9f86d081) is not reachable since ...", for a member without
  /// connection. @pre a member of `v`
  std::string unreachable(const core::view& v, const core::peer_id& peer,
                          std::int64_t unix_ms) const;

private:
  const former_member* find_former(const std::string& word) const;
  std::string nobody(const core::view& v, const std::string& word) const;

  std::int64_t started_ms_;
  std::map<core::peer_id, std::int64_t> lost_; ///< time of the loss, Unix time
  std::deque<former_member> former_;
};

} // namespace shoal::runtime
