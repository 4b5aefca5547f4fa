// runtime/model/text/patterns/charsmap.hpp -- SentencePiece's precompiled table
// of characters and what they become ("Precompiled").
//
// A double array, which is a tree of the bytes of texts, whose leaves point into
// a list of texts that end with NUL. A user-perceived character of less than 6
// bytes becomes the text of the shortest entry that it begins with, all of it;
// otherwise each of its characters does so by itself. That is what the package
// `tokenizers` does, whatever SentencePiece does.
//
// The table comes from a file, so all of it that a text can reach is checked
// when it is read: afterwards no step leaves it.
//
// Threads: immutable, cheap to copy.
// Cost:    parse: 255 steps for each node that can be reached. apply: linear.
// Errors:  parse: what is wrong with the table. apply: as grows_too_much().
// Source:  the crate spm_precompiled 0.1; Yata's darts-clone.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::model::text {

/// A larger table is refused; those of known families have some 300 KB.
inline constexpr std::size_t charsmap_bytes_max = 16u << 20;

class charsmap {
public:
  /// @param bytes  the number of bytes of the double array, its 32-bit units,
  ///               and the texts
  static result<charsmap> parse(std::string_view bytes);
  /// The same in base 64.
  static result<charsmap> parse_base64(std::string_view text);

  /// Rewrites a text. @pre text is UTF-8
  status apply(std::string& text, std::size_t bytes_max) const;

private:
  struct table;

  std::optional<std::string_view> entry(std::string_view key) const;

  std::shared_ptr<const table> table_;
};

} // namespace shoal::model::text
