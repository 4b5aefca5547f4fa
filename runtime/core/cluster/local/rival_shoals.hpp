// runtime/core/cluster/local/rival_shoals.hpp -- other shoals in contact: which
// of them could admit us, and whether ours dissolves into one.
//
// Both shoals compare their hellos, so that exactly one of them dissolves. A
// shoal made by `recover --force` in place of ours, or one that has replaced
// our cluster key, goes on whatever its size. A shoal with running jobs does
// not dissolve, unless the other has the same jobs and our shoal was gone, every
// process of it, when it was forced.
//
// Ownership: refers to parts of membership; made for one call.
#pragma once

#include "runtime/core/cluster/local/former_shoals.hpp"
#include "runtime/core/cluster/local/key_ring.hpp"
#include "runtime/core/cluster/local/situation.hpp"

#include <string>
#include <utility>

namespace shoal::core::cluster {

/// What becomes of our shoal next to another.
enum class verdict {
  goes_on,     ///< the other one dissolves, as soon as it can
  dissolves,   ///< into the other
  stays_apart, ///< ours runs jobs: neither may end
};

class rival_shoals {
public:
  /// @param cluster only shoals of this name count
  /// @param embedded we give way to any other shoal
  rival_shoals(const situation& s, const key_ring& keys,
               const former_shoals& former, const std::string& cluster,
               bool embedded)
    : s_(s), keys_(keys), former_(former), cluster_(cluster),
      embedded_(embedded) {}

  /// A contact that can admit us to a shoal that replaced ours, or null.
  const contact* superseding() const;

  /// The contact of another shoal that is the best to ask for admission: in a
  /// shoal whose key replaced ours, else in one with the same key (K-4). Null
  /// if there is none.
  /// @param attempt chooses another member of that shoal at each attempt
  std::pair<peer_id, const contact*> best(std::uint64_t attempt) const;

  // About the shoal of a contact that has said hello.
  verdict judge(const contact& c) const;
  /// Whether our running jobs may end with our shoal: the other shoal replaced
  /// it and has the same jobs, and all of ours was gone then.
  bool may_give_up_jobs(const contact& c) const;
  /// Why the two shoals stay apart, in words; empty if the other can end.
  std::string why_apart(const contact& c) const;

private:
  const superseded_shoal* supersedes_ours(const contact& c) const;
  bool is_superseded_by_ours(const contact& c) const;
  bool runs_what_we_lack(const contact& c) const;
  bool can_admit(const contact& c) const;
  bool has_usable_key(const contact& c) const;

  situation s_;
  const key_ring& keys_;
  const former_shoals& former_;
  const std::string& cluster_;
  bool embedded_;
};

} // namespace shoal::core::cluster
