// runtime/core/planning/layout/layout_search.hpp -- groupings of members, their cost,
// and how to make them better. A part of layout.cpp.
#pragma once

#include "runtime/core/planning/layout/layout_split.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core {

/// What a job allows the search to do.
struct layout_wishes {
  std::uint32_t replicas_max = 1; ///< by members, microbatches and wish
  bool replicas_wanted = false;
  bool apart = false; ///< each replica has `peers` members, if there are enough
                      ///< of them for all replicas
  std::uint32_t peers = 0;     ///< if apart: stages, or fewer that share these
  std::uint32_t stages = 0;    ///< of every replica; 0: one per member
  std::uint32_t depth_max = 1; ///< members in a replica
};

using grouping = std::vector<std::vector<cost_model::index>>;

/// A grouping with its split and cost.
struct candidate_layout {
  grouping groups;
  std::vector<cost_model::replica> places;
  std::vector<cost_model::pipeline_time> times;
  layout_score score; ///< cost_never: does not fit
};

/// Evaluates groupings; counts the work.
class layout_search {
public:
  using index = cost_model::index;

  layout_search(const layout_problem& p, layout_wishes w);

  /// Whether the group sizes are what the job wants. `replicas` 0: any number.
  bool allowed(const grouping& g, std::uint32_t replicas) const;
  /// `exact`: for the final answer.
  /// @returns cost_never where it does not fit
  candidate_layout evaluate(const grouping& g, bool exact);
  /// Tries every grouping, for few members; returns the best, evaluated
  /// exactly.
  candidate_layout try_all(std::uint32_t replicas);
  /// Groupings of a shape worth trying.
  std::vector<grouping>
  groupings(std::uint32_t replicas, std::uint32_t depth) const;
  /// Moves and swaps members while that helps and `work` is left.
  void improve(candidate_layout& c, std::uint32_t replicas, std::uint64_t work);
  /// Rough time of a step; cost_never where memory does not suffice.
  std::uint64_t estimate(std::uint32_t replicas, std::uint32_t depth) const;

  const cost_model& model() const { return model_; }
  std::uint64_t work() const { return work_; }

private:
  struct edit {
    std::size_t group;
    std::vector<index> members;
  };

  void make_orders(const layout_problem& p);
  std::vector<std::uint32_t>
  sizes_of(std::uint32_t replicas, std::uint32_t depth) const;
  void sort_by_place(grouping& g) const;
  grouping balanced(std::uint32_t replicas) const;
  std::vector<index> unused(const grouping& g) const;
  bool try_edits(candidate_layout& c, std::uint32_t replicas,
                 std::vector<edit> edits);
  bool
  try_whole(candidate_layout& c, std::uint32_t replicas, const grouping& g);
  bool
  swap_all(candidate_layout& c, std::uint32_t replicas, std::uint64_t until);
  bool
  move_all(candidate_layout& c, std::uint32_t replicas, std::uint64_t until);
  bool
  reshape_all(candidate_layout& c, std::uint32_t replicas, std::uint64_t until);
  void sample(candidate_layout& c, std::uint32_t replicas, std::uint64_t until);
  bool split_group(candidate_layout& c, std::size_t r, bool exact);
  bool has_room(const cost_model::replica& r, std::uint32_t split_for) const;
  void total(candidate_layout& c);

  cost_model model_;
  layout_wishes wishes_;
  bool hosts_shared_ = false;
  std::uint64_t work_ = 0;
  std::vector<index> by_speed_, by_place_, by_memory_;
  std::vector<std::uint32_t> place_rank_;
  std::vector<std::uint32_t> class_; ///< equal for members that are alike
  grouping kept_;                    ///< the groups of the previous assignment
  std::vector<std::uint64_t> speed_sum_, memory_sum_; ///< of the best n members
};

} // namespace shoal::core
