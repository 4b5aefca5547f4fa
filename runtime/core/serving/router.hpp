// runtime/core/serving/router.hpp -- which pipeline a gateway sends a sequence to.
//
// Every peer has a gateway, and each knows only what it has sent itself and what
// pipelines tell of their load. It sends a sequence to the pipeline that should
// have its first token soonest:
//
//   (tokens that wait there + those of the sequence that are not cached there)
//     / speed of its prompts
//
// among those whose cache has room for the whole sequence. Since cached tokens
// need not be computed, sequences with the same beginning meet at one pipeline,
// until its queue costs more than computing them elsewhere.
//
// What is cached where is guessed from what this gateway has sent: the hashes of
// the beginnings of sequences, page by page. A wrong guess costs time, nothing
// else: the pipeline compares tokens.
//
// Threads: none of its own. Cost: linear in the pipelines and in the sequence's
// pages.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/serving/pages.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

/// What a pipeline tells of itself.
struct pipeline_load {
  std::uint32_t island = 0;
  epoch since = 0;        ///< a pipeline with another place has an empty cache
  std::uint64_t room = 0; ///< tokens that its cache can hold
  std::uint64_t waiting = 0; ///< tokens of prompts that it has still to compute
  std::uint64_t per_s = 0;   ///< tokens of prompts that it computes in a second
};

class serve_router {
public:
  /// Pages whose place is remembered, over all pipelines; the oldest are
  /// forgotten first.
  static constexpr std::size_t remembered_max = 65'536;

  /// The pipelines that serve now, with their newest loads.
  void set(std::vector<pipeline_load> pipelines);
  /// The island for a sequence of these tokens, and of `more` to be generated.
  /// @returns nothing if no pipeline has room for it
  [[nodiscard]] std::optional<std::uint32_t>
  choose(std::span<const token_id> tokens, std::uint64_t more) const;
  /// The sequence was sent there: it waits there now, and will be cached.
  void sent(std::uint32_t island, std::span<const token_id> tokens);
  /// The number of tokens at the beginning that are thought to be cached there.
  [[nodiscard]] std::uint64_t
  cached(std::uint32_t island, std::span<const token_id> tokens) const;

private:
  struct remembered {
    std::uint32_t island = 0;
    std::uint64_t beginning = 0; ///< hash of all tokens up to the page's end
    friend auto operator<=>(const remembered&, const remembered&) = default;
  };
  void forget(std::uint32_t island);

  std::vector<pipeline_load> pipelines_;
  std::list<remembered> oldest_; ///< the newest last
  std::map<remembered, std::list<remembered>::iterator> at_;
};

} // namespace shoal::core
