// runtime/core/training/job/state/known_checkpoints.hpp -- which checkpoints exist:
// those that our store holds, with the parts that it lacks, those that were
// published, and those that are whole nowhere.
//
// A checkpoint that is given up is neither held nor heard of any more, and stays
// so; one that is made again later is another one (is_given_up).
//
// Threads: none. Limits: the newest of each kind, as named below.
#pragma once

#include "runtime/core/training/job_messages.hpp"

#include <map>
#include <set>
#include <vector>

namespace shoal::core {

class known_checkpoints {
public:
  /// One that is forgotten may be given up again, by the seal of a peer that has
  /// not forgotten it.
  static constexpr std::size_t given_up_max = checkpoints_told_max;
  static constexpr std::size_t held_max = 9;
  static constexpr std::size_t heard_max = 8;

  /// The checkpoint was published, and `holders` have it.
  void hear(const checkpoint_ref& c, const std::vector<peer_id>& holders);
  /// Our store has it, but for the parts `lacks`. @param self this peer
  void hold(const checkpoint_ref& c, const peer_id& self,
            const part_set& lacks = {});
  /// Our store no longer has it. The newest stays.
  void drop(const checkpoint_ref& c);
  /// No peer has all of it. @returns false if that was known
  bool give_up(const checkpoint_ref& c);
  [[nodiscard]] bool is_given_up(const checkpoint_ref& c) const;

  /// Those held here, with the parts that our store lacks.
  [[nodiscard]] const std::map<checkpoint_ref, part_set>&
  held() const noexcept {
    return held_;
  }
  /// The newest held here; no manifest: none.
  [[nodiscard]] checkpoint_ref newest() const {
    return held_.empty() ? checkpoint_ref{} : held_.rbegin()->first;
  }
  /// Whether our store has these parts of it.
  [[nodiscard]] bool has(const checkpoint_ref& c, const part_set& parts) const;
  [[nodiscard]] const std::vector<checkpoint_ref>& given_up() const noexcept {
    return given_up_;
  }
  /// The published ones, with the holders that we know.
  [[nodiscard]] const std::map<checkpoint_ref, std::set<peer_id>>&
  heard() const noexcept {
    return heard_;
  }
  /// Holders of a checkpoint other than `self`, as far as known here.
  [[nodiscard]] std::vector<peer_id>
  holders(const checkpoint_ref& c, const peer_id& self) const;

private:
  std::map<checkpoint_ref, std::set<peer_id>> heard_;
  std::map<checkpoint_ref, part_set> held_; ///< with what is lacking
  std::vector<checkpoint_ref> given_up_;
};

} // namespace shoal::core
