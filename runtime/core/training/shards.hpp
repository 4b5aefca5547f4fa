// runtime/core/training/shards.hpp -- who writes which part of a checkpoint.
//
// A checkpoint has two files for each unit: what they hold depends on the
// step's state alone, so any holder of the unit writes the same bytes, and a
// checkpoint that is made again, also in another layout, has the same names.
// Each unit is written by one of its holders, so that all write about the same
// bytes; all peers work this out for themselves. One of them, the publisher,
// collects what the writers tell (shards_written) until it has every unit. A
// peer whose disk refuses has no part in any of it, if others can do it.
//
// C-1: a unit has exactly one writer, and it holds the unit.
// C-2: a checkpoint is complete when each unit has been told by its writer;
//      what others tell has no effect.
//
// Threads: none. Cost: units * replicas, and units * log(units).
#pragma once

#include "runtime/core/training/job_messages.hpp"
#include "runtime/core/view.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace shoal::core {

/// The writer of each unit. The largest units are given away first, each to
/// that of its holders who has the fewest bytes so far, of these the lowest id.
/// @param unit_bytes size of each unit; blocks + 2 of them
/// @param unable ascending; they write what nobody else holds, no more. Where
///        all who compute a unit are, those who follow it at every step do.
/// @pre place has replicas
[[nodiscard]] std::vector<peer_id>
shard_writers(const assignment& place,
              std::span<const std::uint64_t> unit_bytes,
              const std::vector<peer_id>& unable = {});

/// Who gathers a checkpoint and publishes it: the checkpointer, unless its disk
/// refuses; then the first participant whose does not, keepers before others.
/// Where all do, the checkpointer again.
/// @param unable ascending
[[nodiscard]] peer_id
publisher_of(const assignment& place, const std::vector<peer_id>& unable);

/// Whose stores are to have all of it, ascending: the keepers, but for those
/// who are unable others who take part stand in, if there are any.
/// @param unable in any order
[[nodiscard]] std::vector<peer_id>
checkpoint_keepers(const assignment& place, const std::vector<peer_id>& unable);

/// Whether with these and `self` unable others could make a checkpoint: there
/// is one to publish it, and for each unit of `self` one who writes it.
/// @param unable ascending
[[nodiscard]] bool others_can_save(const assignment& place, const peer_id& self,
                                   std::vector<peer_id> unable);

/// The units that `peer` writes, ascending.
[[nodiscard]] std::vector<std::uint32_t>
units_written_by(const std::vector<peer_id>& writers, const peer_id& peer);

/// What has been told of one step's checkpoint.
class shard_tally {
public:
  explicit shard_tally(std::vector<peer_id> writers);

  /// Takes what a peer tells of this step; the newest word of each counts.
  void take(const peer_id& from, const shards_written& m);

  /// Every unit is written.
  [[nodiscard]] bool complete() const noexcept;
  /// All shards, by unit. @pre complete()
  [[nodiscard]] std::vector<written_shard> shards() const;

  /// Somebody cannot write his part.
  struct failure {
    peer_id at{};
    std::string why;
    bool trying = false;
  };
  /// The first by id that does not try on, else the first that does.
  [[nodiscard]] const failure* failed() const noexcept;

private:
  std::vector<peer_id> writers_;
  std::map<std::uint32_t, written_shard> told_;
  std::map<peer_id, failure> failures_;
};

} // namespace shoal::core
