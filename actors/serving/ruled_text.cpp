// actors/serving/ruled_text.cpp -- a constrained text, and its end.
#include "actors/serving/ruled_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::actors {

ruled_text::ruled_text(std::shared_ptr<core::grammar::token_masks> by,
                       std::span<const core::token_id> chosen,
                       std::vector<core::token_id> ends)
  : by_(std::move(by)), ends_(std::move(ends)) {
  if (!by_) {
    state_ = state::stuck;
    tokens_ = chosen.size();
    return;
  }
  text_.emplace(by_);
  for (const core::token_id id : chosen)
    add(id);
}

void ruled_text::find_allowed() {
  if (state_ != state::goes_on)
    return;
  if (!allowed_)
    allowed_.emplace(by_->tokens().size());
  text_->allowed(*allowed_);
  if (allowed_->empty())
    state_ =
      text_->may_end() && !text_->lost() ? state::complete : state::stuck;
}

void ruled_text::masked(std::span<const float> logits_V,
                        std::vector<float>& out) const {
  out.assign(logits_V.size(), -HUGE_VALF);
  const std::size_t known = std::min(by_->tokens().size(), logits_V.size());
  const auto words = allowed_->words();
  for (std::size_t v = 0; v < known; ++v) {
    if (words[v / 64] == 0)
      v |= 63;
    else if (words[v / 64] >> v % 64 & 1)
      out[v] = std::max(logits_V[v], std::numeric_limits<float>::lowest());
  }
  if (!text_->may_end())
    return;
  for (const core::token_id id : ends_)
    if (const auto v = static_cast<std::size_t>(id); v < logits_V.size())
      out[v] = logits_V[v];
}

void ruled_text::add(core::token_id token) {
  ++tokens_;
  if (state_ != state::goes_on)
    return;
  if (text_->add(static_cast<core::grammar::token>(token))) {
    if (text_->only_ends())
      state_ = state::complete;
  } else if (!text_->may_end()
             || std::ranges::find(ends_, token) == ends_.end()) {
    state_ = state::stuck;
  } // else it ends the text, and nothing is asked any more
}

} // namespace shoal::actors
