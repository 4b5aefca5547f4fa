// actors/serving/ruled_text.cpp -- a constrained text, and its end.
#include "actors/serving/ruled_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::actors {

ruled_text::ruled_text(std::shared_ptr<core::grammar::token_masks> by,
                       core::token_filter filter,
                       std::span<const core::token_id> chosen,
                       std::vector<core::token_id> ends)
  : by_(std::move(by)), filter_(std::move(filter)), ends_(std::move(ends)) {
  if (by_)
    text_.emplace(by_);
  for (const core::token_id id : chosen)
    take(id);
}

void ruled_text::find_allowed() {
  if (state_ == state::goes_on && by_) {
    if (!allowed_)
      allowed_.emplace(by_->tokens().size());
    text_->allowed(*allowed_);
    // What may end ends here, also where it is too ambiguous to go on.
    if (allowed_->empty())
      state_ = text_->may_end() ? state::complete : state::stuck;
  }
  ready_.store(true, std::memory_order_release);
}

bool ruled_text::masked(std::span<const float> logits_V,
                        std::vector<float>& out) {
  if (by_)
    apply_rule(logits_V, out);
  else
    out.assign(logits_V.begin(), logits_V.end());
  apply_filter(out);
  if (std::ranges::any_of(out, [](float x) { return x > -HUGE_VALF; }))
    return true;
  // What may end, but not with a token, ends here.
  state_ = by_ && text_->may_end() ? state::complete : state::stuck;
  return false;
}

void ruled_text::apply_rule(std::span<const float> logits_V,
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

void ruled_text::apply_filter(std::vector<float>& out) const {
  const auto forbid = [&](core::token_id id) {
    if (const auto v = static_cast<std::size_t>(id); v < out.size())
      out[v] = -HUGE_VALF;
  };
  if (!filter_.allowed.empty()) {
    std::vector<float> left(out.size(), -HUGE_VALF);
    for (const core::token_id id : filter_.allowed)
      if (const auto v = static_cast<std::size_t>(id); v < out.size())
        left[v] = out[v];
    out = std::move(left);
  }
  if (tokens_ < filter_.least)
    std::ranges::for_each(ends_, forbid);
  for (const core::token_word& w : filter_.banned) {
    const std::size_t before = w.tokens.empty() ? 0 : w.tokens.size() - 1;
    if (!w.tokens.empty() && before <= recent_.size()
        && std::equal(w.tokens.begin(), w.tokens.end() - 1,
                      recent_.end() - std::ptrdiff_t(before)))
      forbid(w.tokens.back());
  }
}

void ruled_text::add(core::token_id token) {
  ready_.store(false, std::memory_order_relaxed);
  take(token);
}

void ruled_text::take(core::token_id token) {
  ++tokens_;
  if (!filter_.banned.empty()) {
    if (recent_.size() == core::serving::word_tokens_max)
      recent_.erase(recent_.begin());
    recent_.push_back(token);
  }
  if (state_ != state::goes_on || !by_)
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
