// runtime/model/jinja/values/marked_text.hpp -- a text that knows which of its bytes
// came from a client.
//
// A template writes a model's control tokens, such as "<|im_end|>"; a client
// that writes the same characters into a message must not get that token. So
// each text carries the ranges that are foreign, through every operation. Where
// an operation cannot follow them exactly, its whole result is foreign if any
// part was.
#pragma once

#include "runtime/core/text/text_range.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::jinja {

using core::text_range;

struct marked_text {
  std::string bytes;
  /// In order, apart from each other, none empty.
  std::vector<text_range> foreign;

  /// A text of the template.
  static marked_text own(std::string text) { return {std::move(text), {}}; }
  /// A text of a client.
  static marked_text from_client(std::string text);
  /// A text that was made of `origin` in a way that ranges cannot follow.
  static marked_text made_of(std::string text, const marked_text& origin);

  void append(std::string_view own_text) { bytes += own_text; }
  void append(const marked_text& more);
  /// Bytes [first, last). @pre first <= last <= size
  marked_text part(std::size_t first, std::size_t last) const;
};

/// What a client chooses and does not write: under this key these texts are as the
/// model's own.
struct choice {
  std::string_view key;
  std::span<const std::string_view> texts;
};

} // namespace shoal::jinja
