// runtime/core/serving/prompt_lookup.cpp -- the newest place with the same tokens.
#include "runtime/core/serving/prompt_lookup.hpp"

namespace shoal::core {

std::vector<token_id>
looked_up(std::span<const token_id> tokens, std::size_t most) {
  using namespace prompt_lookup;
  for (std::size_t n = match_max; n >= match_min && most > 0; --n) {
    if (tokens.size() <= n)
      continue;
    const auto last = tokens.last(n);
    for (std::size_t end = tokens.size() - 1; end >= n; --end)
      if (std::ranges::equal(tokens.subspan(end - n, n), last)) {
        std::vector<token_id> out;
        for (std::size_t at = end; out.size() < most; ++at)
          out.push_back(at < tokens.size() ? tokens[at]
                                           : out[at - tokens.size()]);
        return out;
      }
  }
  return {};
}

} // namespace shoal::core
