// actors/reduction/step_losses.cpp -- sends parts to replica 0, which merges
// them.
#include "actors/reduction/step_losses.hpp"

#include "runtime/links/links.hpp"

#include <algorithm>
#include <type_traits>

namespace shoal::actors {

// Replicas send each other its bytes.
static_assert(std::is_trivially_copyable_v<
                microbatch_loss> && sizeof(microbatch_loss) == 16);

/// The peers to which the head of replica 0 sends the merged losses, with the
/// replica in the tag: 0 for a follower.
std::vector<std::pair<core::peer_id, std::uint32_t>> step_losses::told() const {
  std::vector<std::pair<core::peer_id, std::uint32_t>> out;
  const core::holdings& holds = here_.holds();
  const model::unit_index head = here_.head();
  const std::vector<core::peer_id> heads = holds.computers(head);
  for (std::size_t i = 1; i < heads.size(); ++i)
    out.emplace_back(heads[i], holds.first_replica(heads[i], head));
  if (here_.place().copy_every <= 1)
    for (const core::member_id& f : holds.followers(head))
      if (std::ranges::find(heads, f.peer) == heads.end())
        out.emplace_back(f.peer, 0);
  return out;
}

void step_losses::begin(std::uint64_t step) {
  step_ = step;
  parts_.clear();
  to_send_ = 0;
  merged_ = !has_head() && !here_.followed.contains(here_.head());
  if (merged_)
    return;
  const core::island_place& place = here_.place();
  all_.assign(place.replicas.back().last_microbatch, {});
  if (!leads()) {
    to_send_ = has_head() ? 1 : 0;
    expect(here_.holds().computer(0, here_.head()).peer,
           link_kind::losses_merged,
           has_head() ? here_.first_replica(here_.head()) : 0);
    return;
  }
  to_send_ = int(told().size());
  for (const core::peer_id& other : here_.holds().computers(here_.head()))
    if (other != here_.self)
      expect(other, link_kind::losses,
             here_.holds().first_replica(other, here_.head()));
}

void step_losses::expect(const core::peer_id& from, link_kind kind,
                         std::uint32_t replica) {
  here_.expect(from, here_.tag(kind, replica, 0, step_),
               all_.size() * sizeof(microbatch_loss),
               [this, step = step_, kind, replica](const buffer& part,
                                                   std::error_code error) {
                 if (step != step_)
                   return;
                 if (error)
                   return to_.failed("the losses", error);
                 // The merged losses come from replica 0.
                 parts_[kind == link_kind::losses ? replica : 0] = part;
                 merge_if_ready();
               });
}

void step_losses::take(const std::map<std::uint32_t, microbatch_loss>& own) {
  for (const auto& [microbatch, loss] : own)
    all_.at(microbatch) = loss;
  const std::uint32_t first = here_.first_replica(here_.head());
  parts_[first] = {};
  if (!leads())
    send(here_.holds().computer(0, here_.head()).peer, link_kind::losses,
         first);
  merge_if_ready();
}

void step_losses::send(const core::peer_id& to, link_kind kind,
                       std::uint32_t replica) {
  buffer copy = here_.buffers->get(all_.size() * sizeof(microbatch_loss));
  std::ranges::copy(all_, copy.as<microbatch_loss>().begin());
  here_.links->send(
    to, here_.tag(kind, replica, 0, step_), copy.shared(),
    [this, post = here_.leased_post(), step = step_](std::error_code error) {
      if (!error) // on an error the peer is lost: a new plan follows
        post([this, step] {
          if (step == step_ && --to_send_ == 0 && merged_)
            to_.losses_complete();
        });
    });
}

/// Every replica filled in its own losses: nothing is added.
void step_losses::merge_if_ready() {
  const std::size_t wanted = leads()
                               ? here_.holds().computers(here_.head()).size()
                             : has_head() ? 2
                                          : 1;
  if (merged_ || parts_.size() < wanted)
    return;
  merged_ = true;
  for (const auto& [first, part] : parts_)
    if (part) // empty: our own
      merge(first, part);
  if (leads())
    for (const auto& [to, replica] : told())
      send(to, link_kind::losses_merged, replica);
  if (to_send_ == 0)
    to_.losses_complete();
}

void step_losses::merge(std::uint32_t first, const buffer& part) {
  const auto from = part.as<const microbatch_loss>();
  if (!leads()) { // the merged ones
    std::ranges::copy(from, all_.begin());
    return;
  }
  const core::island_place& place = here_.place();
  const core::member_id& who = here_.holds().computer(first, here_.head());
  for (std::uint32_t r = first; r < place.replicas.size(); ++r) {
    if (here_.holds().computer(r, here_.head()) != who)
      continue;
    const core::replica_place& theirs = place.replicas[r];
    for (auto m = theirs.first_microbatch; m < theirs.last_microbatch; ++m)
      all_[m] = from[m];
  }
}

} // namespace shoal::actors
