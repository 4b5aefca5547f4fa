// tests/runtime/wire/random_fields.cpp -- random structs keep their rules.
#include "tests/runtime/wire/random_fields.hpp"

#include <algorithm>

namespace shoal::tests {

static void in_order(std::uint32_t& first, std::uint32_t& last) {
  if (last < first)
    std::swap(first, last);
}

template <class Unit>
static void by_unit(std::vector<Unit>& list) {
  std::ranges::sort(list, {}, &Unit::unit);
  const auto twice =
    std::unique(list.begin(), list.end(),
                [](const Unit& a, const Unit& b) { return a.unit == b.unit; });
  list.erase(twice, list.end());
}

void random_fields::settle(core::stage_place& x) {
  if (x.shards.empty())
    x.shards.emplace_back();
  in_order(x.first_block, x.last_block);
}

void random_fields::settle(core::replica_place& x) {
  in_order(x.first_microbatch, x.last_microbatch);
}

void random_fields::settle(core::holder_place& x) {
  in_order(x.first_unit, x.last_unit);
}

void random_fields::settle(core::seal& x) {
  by_unit(x.units);
}

void random_fields::settle(core::shards_written& x) {
  by_unit(x.shards);
}

void random_fields::settle(core::view& x) {
  std::ranges::sort(x.members, {}, &core::member::id);
  std::ranges::sort(x.jobs, {}, &core::job_entry::id);
  std::size_t cuts = 0; // as many as there are neighbours for
  for (std::size_t i = 1; i < x.members.size() && cuts < x.cuts.size(); ++i)
    x.cuts[cuts++] = {x.members[i - 1].id, x.members[i].id};
  x.cuts.resize(cuts);
}

void random_fields::settle(core::sampling_wish& x) {
  x.top_p = (1 + x.top_p) / 200;
  x.min_p /= 200;
  x.repetition_penalty += 1;
  // Far below its limits, above and below 0.
  x.frequency_penalty = x.frequency_penalty / 100 - 1;
  x.presence_penalty = x.presence_penalty / 100 - 1;
}

void random_fields::settle(core::serve_request& x) {
  x.chosen %= x.tokens.size() + 1;
  x.scored = x.scored && x.chosen == 0;
  if (x.chosen > 0 || x.scored || x.rule)
    x.pooled = core::pooling::none;
}

void random_fields::settle(core::row_pooling& x) {
  if (x.how == core::pooling::none)
    x.how = core::pooling::mean;
  x.ends = x.ends || x.how == core::pooling::last;
}

void random_fields::settle(core::serve_row& x) {
  if (x.tokens.empty())
    x.tokens.push_back(7);
  x.guesses %= x.tokens.size();
  if (core::logits_of(x) > x.tokens.size())
    x.scores.reset();
  if (x.choice || x.scores || x.guesses > 0)
    x.pooled.reset();
}

} // namespace shoal::tests
