// runtime/model/decode/token_places.cpp -- counts the characters that a token ends
// and those that it begins.
#include "runtime/model/decode/token_places.hpp"

#include "runtime/core/text/utf8.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// Characters of a text, without one that is cut off at its end; a broken part
/// counts as one.
std::size_t characters(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const core::character c = core::first_character(text);
    if (c.is == core::character::kind::cut_off)
      break;
    text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
    ++out;
  }
  return out;
}

bool goes_on_with_a_character(std::string_view bytes) {
  return !bytes.empty()
         && (static_cast<unsigned char>(bytes[0]) & 0xC0) == 0x80;
}

} // namespace

token_places::token_places(const tokenizer* by, std::size_t at)
  : by_(by), text_(by), count_(at) {
}

/// The space that decoders take from a text's first token is text, too.
bool token_places::has_text(token_id id) const {
  return !by_->piece(id, false).empty()
         && !(by_->file() && by_->file()->is_special(id));
}

void token_places::after(std::span<const token_id> prompt) {
  if (!by_ || !by_->file()) // each byte is for itself
    return;
  for (const token_id id : prompt) {
    first_ = first_ && !has_text(id);
    (void)text_.push(id);
  }
}

std::size_t token_places::push(token_id id, bool told) {
  if (!by_)
    return count_;
  const bool special = by_->file() && by_->file()->is_special(id);
  const std::string own = by_->piece(id, first_);
  std::size_t grown = characters(text_.push(id));
  if (special && told && grown == 0)
    grown = characters(own);
  first_ = first_ && !has_text(id);
  // What it releases of earlier tokens is before it.
  const std::size_t begun =
    goes_on_with_a_character(own) ? grown : std::min(grown, characters(own));
  const std::size_t at = count_ + grown - begun;
  count_ += grown;
  return at;
}

} // namespace shoal::model
