// runtime/core/training/shards.hpp -- which peer writes which shard of a
// checkpoint.
//
// A checkpoint has two files for each unit. Their content depends on the step's
// state alone. So any holder of the unit writes the same bytes, and a
// checkpoint that is made again, even in another layout, has the same names.
// One holder writes each unit, chosen so that all peers write about the same
// number of bytes; every peer computes this by itself. One peer, the publisher,
// collects the writers' reports (shards_written) until it has every unit. A
// peer whose disk refuses takes no part, if others can replace it.
//
// C-1: a unit has exactly one writer, and it holds the unit.
// C-2: a checkpoint is complete when the writer of each unit has reported it;
//      reports from other peers have no effect.
//
// Threads: none. Cost: units * replicas, and units * log(units).
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/training/job_messages.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace shoal::core {

/// The writer of each unit. The largest units are assigned first, each to the
/// holder that has the fewest bytes so far; in a tie, to the lowest id.
/// @param unit_bytes size of each unit; blocks + 2 of them
/// @param unable ascending; they write only what no other peer holds. Where
///        all that compute a unit are, its followers of every step write it
/// @pre place has replicas
[[nodiscard]] std::vector<peer_id>
shard_writers(const island_place& place,
              std::span<const std::uint64_t> unit_bytes,
              const std::vector<peer_id>& unable = {});

/// The peer that gathers a checkpoint and publishes it: the checkpointer,
/// unless its disk refuses; then the first participant that is able, keepers
/// before others. If all are unable, the checkpointer.
/// @param unable ascending
[[nodiscard]] peer_id
publisher_of(const island_place& place, const std::vector<peer_id>& unable);

/// The peers whose stores should have parts of it, ascending: those that share
/// them, else the keepers. Other participants replace unable ones, if fewer than
/// there are keepers are able.
/// @param unable in any order
[[nodiscard]] std::vector<peer_id>
checkpoint_keepers(const island_place& place,
                   const std::vector<peer_id>& unable);

/// The parts of a checkpoint that the store of `peer` should have. If its
/// keepers share the parts, each part is at as many of them as the place has
/// keepers: those with the largest hash of part and peer, so that few parts
/// move when a keeper comes or goes. Source: D. Thaler, C. V. Ravishankar: Using
/// Name-Based Mappings to Increase Hit Rates, IEEE/ACM ToN 6 (1998).
/// @param parts number of all parts
/// @param unable in any order
/// Cost: parts * keepers.
[[nodiscard]] part_set
parts_kept_by(const peer_id& peer, const island_place& place,
              std::uint32_t parts, const std::vector<peer_id>& unable);

/// The parts that the publisher's store has when it publishes: all, or if
/// keepers share them, those that it keeps.
[[nodiscard]] part_set
parts_gathered_by(const peer_id& publisher, const island_place& place,
                  std::uint32_t parts, const std::vector<peer_id>& unable);

/// Whether each part is in at least `stores` of these.
/// @param lacks the parts that each store does not have
[[nodiscard]] bool everywhere(std::uint32_t parts, std::size_t stores,
                              const std::vector<part_set>& lacks);

/// Whether other peers could make a checkpoint if these and `self` are unable:
/// there is a publisher, and a writer for each unit of `self`.
/// @param unable ascending
[[nodiscard]] bool
others_can_save(const island_place& place, const peer_id& self,
                std::vector<peer_id> unable);

/// The units that `peer` writes, ascending.
[[nodiscard]] std::vector<std::uint32_t>
units_written_by(const std::vector<peer_id>& writers, const peer_id& peer);

/// The reports about one step's checkpoint.
class shard_tally {
public:
  explicit shard_tally(std::vector<peer_id> writers);

  /// Takes a peer's report on this step; its newest one counts.
  void take(const peer_id& from, const shards_written& m);

  /// Every unit is written.
  [[nodiscard]] bool complete() const noexcept;
  /// All shards, by unit. @pre complete()
  [[nodiscard]] std::vector<written_shard> shards() const;

  /// A peer cannot write its shards.
  struct failure {
    peer_id at{};
    std::string why;
    bool trying = false;
  };
  /// The first by id that does not keep trying, else the first that does.
  [[nodiscard]] const failure* failed() const noexcept;

private:
  std::vector<peer_id> writers_;
  std::map<std::uint32_t, written_shard> reported_;
  std::map<peer_id, failure> failures_;
};

} // namespace shoal::core
