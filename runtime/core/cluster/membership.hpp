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
  /// when their peers are not connected.
  std::vector<std::string> seeds;
  /// Throw-away: stores nothing, admits nobody, joins only through `seeds`.
  bool embedded = false;
  std::uint64_t seed = 0; ///< random, of this process: spreads retries
  /// Makes the id of a shoal from its first view and a salt.
  shoal_id (*name_shoal)(const view& first, std::uint64_t salt) = nullptr;
  /// The cluster key that the process was started with, and how views name
  /// one; null: keys are never replaced here.
  cluster_key key{};
  key_digest (*digest_key)(const cluster_key& key) = nullptr;
  /// The assignments that `v` leads to: make_plan(v).jobs.
  std::vector<assignment> (*plan_jobs)(const view& v) = nullptr;

  // Times in nanoseconds; the defaults are for the product.
  nanoseconds heartbeat_interval = 250'000'000;
  nanoseconds suspect_floor = 1'500'000'000; ///< silence before suspicion
  nanoseconds batch_window = 50'000'000;     ///< gathers wishes into one view
  /// The same of losses, for which others wait: connections that end at one
  /// time are seen within it; detector::unstable() waits for other deaths.
  nanoseconds loss_window = 15'000'000;
  nanoseconds rank_delay = 30'000'000; ///< between the turns of proposers
  nanoseconds ballot_timeout = 300'000'000;
  /// What follows from events of the network is worked out at most once in
  /// this time for each member: 10 ms among 1,000. 0: at every event.
  nanoseconds settle_pace = 10'000;
  nanoseconds homeless_patience = 3'000'000'000;
  nanoseconds waiting_period = 10'000'000'000;
  nanoseconds leave_patience = 5'000'000'000;
  /// A leaver that no quorum is in contact with goes after so long, keeping
  /// its history: longer than a detection, shorter than a user waits.
  nanoseconds alone_patience = 2'000'000'000;
  /// A new cluster key waits so long for members that do not take it; then a
  /// quorum is enough. A revocation is to close links within a second.
  nanoseconds offer_patience = 500'000'000;
  /// After so long without a quorum it is given up.
  nanoseconds offer_max = 5'000'000'000;
  /// A member that was expelled for holding up a job is let in again after
  /// this, then after twice as long each time, up to the other. A hang is found
  /// in 3 s at least, and then costs what a loss does: at first the pause is
  /// what any loss is given (join_hold), and from the third time on a peer that
  /// always hangs takes less than a third of the time; in the end 1 %.
  nanoseconds stall_pause = 2'000'000'000;
  nanoseconds stall_pause_max = 256'000'000'000;
  /// Who has been back for so long begins with the first pause again: then it
  /// costs less than 1 % however it goes on.
  nanoseconds stall_memory = 1'800'000'000'000;
  /// A peer that somebody calls revoked, that is in no quorum's company and has
  /// nobody else to talk to, ends after so long. All its members have been
  /// dialled twice by then (dial_pause_max), and a process that starts at the
  /// same time as this one is there.
  nanoseconds shut_out_patience = 5'000'000'000;
};

class membership {
public:
  explicit membership(config c);
  ~membership();
  membership(membership&&) noexcept;

  /// Appends what is to be done to `out`. @pre the first event is start
  void step(const event& e, nanoseconds now, actions& out);

  /// The newest decided view. @pre start has been given
  const view& current() const;
  cluster::phase phase() const;
  bool seated() const;
  /// Members of the view that are in contact and not suspected, self too.
  std::vector<peer_id> reachable() const;

  struct impl; // membership_impl.hpp

private:
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::core::cluster
