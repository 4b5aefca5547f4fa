// runtime/model/decode/token_text.cpp -- decodes, and looks for stop strings.
#include "runtime/model/decode/token_text.hpp"

#include <algorithm>
#include <utility>

namespace shoal::model {

token_text::token_text(const tokenizer* by, std::vector<std::string> stop,
                       std::size_t least)
  : text_(by), joins_prompt_(by != nullptr && by->file() != nullptr),
    stop_(std::move(stop)), least_(least) {
}

void token_text::after(std::span<const token_id> prompt) {
  if (joins_prompt_)
    for (const token_id id : prompt)
      (void)text_.push(id);
}

std::string token_text::push(token_id id) {
  std::string piece = text_.push(id);
  const std::string special =
    piece.empty() && special_ ? special_(id) : std::string();
  piece += special;
  if (least_ > 0) {
    --least_;
    return piece;
  }
  if (special.empty() || stops_in_special_ || stopped_)
    return release(piece, false);
  return std::exchange(held_, {}) + special;
}

std::string token_text::finish() {
  return release(text_.finish(), true);
}

std::string token_text::release(const std::string& piece, bool last) {
  if (stopped_)
    return {};
  held_ += piece;
  std::size_t stop_at = std::string::npos;
  for (const std::string& stop : stop_)
    if (const std::size_t at = held_.find(stop); at < stop_at) {
      stop_at = at;
      stopped_by_ = stop;
    }
  if (stop_at != std::string::npos) {
    stopped_ = true;
    held_.resize(stop_at);
    return std::move(held_);
  }
  std::size_t keep = 0; // longest end of held_ that begins a stop string
  for (const std::string& stop : stop_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size());
         n > keep && !last; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n)))
        keep = n;
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

} // namespace shoal::model
