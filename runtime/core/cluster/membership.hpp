// runtime/core/cluster/membership.hpp -- one peer's part in its shoal.
//
// Birth, restart, merge, joining, leaving, failures and jobs are all the same
// thing: a wish for another view, which the voters of the current one agree on
// (agreement.hpp) after watching each other (detector.hpp).
//
//   start without history --> alone (seated in a shoal of one)
//   start with a view     --> waiting until its quorum is in contact, then
//                             asks for a new entry, since its memory is gone
//   member  --dissolved or expelled--> homeless --admitted--> member
//   homeless for homeless_patience    --> alone, in a new shoal
//
// Invariants
// C-1: two decided views of one shoal never succeed the same view.
// C-2: the number of this peer's view never falls.
// C-3: a vote is persisted before it is sent; so is a view before it is used.
// C-4: only a seated peer votes, and a seated peer neither founds nor joins
//      another shoal unless its own ends.
// C-5: a shoal with a running job does not dissolve, except into one that was
//      made from it by force and has the same job.
//
// Threads: one at a time. No clock, no randomness of its own: `now` and
// config::seed are all it has. Cost: a heartbeat O(log members); any other
// event O(members) at most, and that once in settle_pace * members.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/cluster/local/limits.hpp"
#include "runtime/core/cluster/local/situation.hpp"

#include <memory>

namespace shoal::core::cluster {

/// Fixed for the life of the process.
struct config {
  /// This process: id.peer, instance, name, addresses, host, device, voter,
  /// witness; the rest is ignored. A peer that is no voter, or embedded,
  /// votes only while it is alone.
  member self;
  std::string cluster = "default";
  std::string version; ///< of this program, as in hello
  /// Addresses given by the user: tried until they answer, and now and then
  /// while their peers are not connected.
  std::vector<std::string> seeds;
  /// A temporary peer: stores nothing, admits no peer, joins only through
  /// `seeds`.
  bool embedded = false;
  std::uint64_t seed = 0; ///< random for each process; spreads retries
  /// Makes the id of a shoal from its first view and a salt.
  shoal_id (*name_shoal)(const view& first, std::uint64_t salt) = nullptr;
  /// The cluster key that the process was started with, and the function that
  /// makes a view's name for a key; null: keys are never replaced here.
  cluster_key key{};
  key_digest (*digest_key)(const cluster_key& key) = nullptr;
  /// The assignments that `v` leads to: make_plan(v).jobs.
  std::vector<assignment> (*plan_jobs)(const view& v) = nullptr;

  // Times in nanoseconds; the defaults are for the product.
  nanoseconds heartbeat_interval = 250'000'000;
  nanoseconds suspect_floor = 1'500'000'000; ///< silence before suspicion
  nanoseconds batch_window = 50'000'000;     ///< gathers wishes into one view
  /// The same for losses, which hold up other peers: connections that end at
  /// the same time end within it; detector::unstable() waits for further
  /// deaths.
  nanoseconds loss_window = 15'000'000;
  nanoseconds rank_delay = 30'000'000; ///< between the turns of proposers
  nanoseconds ballot_timeout = 300'000'000;
  /// The least time, per member, between two evaluations of what follows from
  /// network events: 10 ms with 1,000 members. 0: at every event.
  nanoseconds settle_pace = 10'000;
  nanoseconds homeless_patience = 3'000'000'000;
  nanoseconds waiting_period = 10'000'000'000;
  nanoseconds leave_patience = 5'000'000'000;
  /// A leaver without contact to a quorum goes after this time and keeps its
  /// history. Longer than a detection, shorter than a user waits.
  nanoseconds alone_patience = 2'000'000'000;
  /// How long a new cluster key waits for members that do not accept it; then a
  /// quorum is enough. A revocation should close connections within a second.
  nanoseconds offer_patience = 500'000'000;
  /// An offer that has no quorum after this time is given up.
  nanoseconds offer_max = 5'000'000'000;
  /// A member that was expelled for holding up a job is admitted again after
  /// stall_pause; the pause doubles each time, up to stall_pause_max. Finding a
  /// hang takes at least 3 s, and then it costs the same as a loss. At first
  /// the pause equals the one after any loss (join_hold). From the third time
  /// on, a peer that always hangs costs less than a third of the time; in the
  /// end 1 %.
  nanoseconds stall_pause = 2'000'000'000;
  nanoseconds stall_pause_max = 256'000'000'000;
  /// A peer that has been back for this long starts with the first pause again:
  /// it costs less than 1 % even if it always hangs.
  nanoseconds stall_memory = 1'800'000'000'000;
  /// A peer ends after this time if another peer calls it revoked, it is in
  /// contact with no quorum, and it has no other contact. By then all its
  /// members have been dialled twice (dial_pause_max), and a process that
  /// started at the same time is up.
  nanoseconds shut_out_patience = 5'000'000'000;
};

class membership {
public:
  explicit membership(config c);
  ~membership();
  membership(membership&&) noexcept;

  /// Handles one event; appends the resulting actions to `out`. @pre the first
  /// event is start
  void step(const event& e, nanoseconds now, actions& out);

  /// The newest decided view. @pre start has been handled
  const view& current() const;
  cluster::phase phase() const;
  bool seated() const;
  /// Members of the view that are in contact and not suspected, including self.
  std::vector<peer_id> reachable() const;

  struct impl; // membership_impl.hpp

private:
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::core::cluster
