// actors/reduction/step_losses.hpp -- brings the losses of a step's
// microbatches to all heads.
//
// A peer that has the head in some replicas knows the losses of their
// microbatches. The head of replica 0 merges them and sends them to the other
// heads and to the followers of the head: a step can then also be rolled
// forward with only their votes.
//
// Part of a reducer: see reduction_context.hpp.
#pragma once

#include "actors/reduction/reduction_context.hpp"
#include "actors/training/stage.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

class step_losses {
public:
  class events {
  public:
    /// All losses are known here, and this peer has sent those that it has to
    /// send.
    virtual void losses_complete() = 0;
    virtual void failed(const std::string& what, std::error_code error) = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  step_losses(const reduction_context& here, events& to)
    : here_(here), to_(to) {}

  void begin(std::uint64_t step);
  /// Takes the losses of this peer's replicas. @pre this peer has the head
  void take(const std::map<std::uint32_t, microbatch_loss>& own);
  /// As losses_complete(); immediately true on peers that get no losses.
  bool complete() const noexcept { return merged_ && to_send_ == 0; }
  /// By microbatch; empty on peers that get no losses. @pre complete()
  const std::vector<microbatch_loss>& all() const noexcept { return all_; }

private:
  bool has_head() const { return here_.computes(here_.head()); }
  bool leads() const { return here_.leads(here_.head()); }
  std::vector<std::pair<core::peer_id, std::uint32_t>> told() const;
  void expect(const core::peer_id& from, link_kind kind, std::uint32_t replica);
  void send(const core::peer_id& to, link_kind kind, std::uint32_t replica);
  void merge_if_ready();
  void merge(std::uint32_t first, const buffer& part);

  const reduction_context& here_;
  events& to_;
  std::uint64_t step_ = 0;
  std::vector<microbatch_loss> all_; ///< by microbatch; others' are 0 at first
  /// By the first replica of the sender; own and merged: empty.
  std::map<std::uint32_t, buffer> parts_;
  bool merged_ = false;
  int to_send_ = 0;
};

} // namespace shoal::actors
