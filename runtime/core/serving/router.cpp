// runtime/core/serving/router.cpp -- the pipeline with the first token soonest.
#include "runtime/core/serving/router.hpp"

#include "runtime/core/random.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::core {

namespace {

/// Calls body(hash of all tokens up to its end) for each full page, while it
/// returns true.
template <class Body>
void for_beginnings(std::span<const token_id> tokens, const Body& body) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    hash = cluster::random(hash ^ std::uint32_t(tokens[i])).next();
    if ((i + 1) % page_tokens == 0 && !body(hash))
      return;
  }
}

} // namespace

void serve_router::set(std::vector<pipeline_load> pipelines) {
  for (const pipeline_load& was : pipelines_)
    if (std::ranges::none_of(pipelines, [&](const pipeline_load& is) {
          return is.island == was.island && is.since == was.since;
        }))
      forget(was.island);
  pipelines_ = std::move(pipelines);
}

void serve_router::forget(std::uint32_t island) {
  std::erase_if(oldest_,
                [&](const remembered& r) { return r.island == island; });
  std::erase_if(at_, [&](const auto& of) { return of.first.island == island; });
}

std::uint64_t serve_router::cached(std::uint32_t island,
                                   std::span<const token_id> tokens) const {
  std::uint64_t pages = 0;
  for_beginnings(tokens, [&](std::uint64_t hash) {
    const bool there = at_.contains({island, hash});
    pages += there ? 1 : 0;
    return there;
  });
  return pages * page_tokens;
}

std::optional<std::uint32_t>
serve_router::choose(std::span<const token_id> tokens,
                     std::uint64_t more) const {
  using rank = std::tuple<double, std::uint64_t, std::uint32_t>;
  std::optional<rank> best;
  // One that has measured nothing yet, as it is new, is taken for as fast as the
  // fastest.
  std::uint64_t usual = 1;
  for (const pipeline_load& p : pipelines_)
    usual = std::max(usual, p.per_s);
  for (const pipeline_load& p : pipelines_) {
    if (tokens.size() + more > p.room)
      continue;
    const double work =
      double(p.waiting + tokens.size() - cached(p.island, tokens));
    // Of equal ones the one with less room: others may need the larger.
    const rank r{work / double(p.per_s == 0 ? usual : p.per_s), p.room,
                 p.island};
    if (!best || r < *best)
      best = r;
  }
  return best ? std::optional(std::get<std::uint32_t>(*best)) : std::nullopt;
}

void serve_router::sent(std::uint32_t island,
                        std::span<const token_id> tokens) {
  const auto to = std::ranges::find(pipelines_, island, &pipeline_load::island);
  if (to == pipelines_.end())
    return;
  to->waiting += tokens.size() - cached(island, tokens);
  for_beginnings(tokens, [&](std::uint64_t hash) {
    const remembered r{island, hash};
    if (const auto at = at_.find(r); at != at_.end())
      oldest_.splice(oldest_.end(), oldest_, at->second);
    else
      at_[r] = oldest_.insert(oldest_.end(), r);
    return true;
  });
  while (at_.size() > remembered_max) {
    at_.erase(oldest_.front());
    oldest_.pop_front();
  }
}

} // namespace shoal::core
