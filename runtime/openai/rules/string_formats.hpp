// runtime/openai/rules/string_formats.hpp -- what `format` of a JSON schema says, as
// regular expressions.
//
// All formats of draft 2020-12, section 7.3 of its validation part. Of some only a
// usable part is written: URIs, also as references, templates and IRIs, are those of
// http and https; of idn-email and idn-hostname those in ASCII; a regex is letters,
// digits, spaces, "_" and "-". A 29th of February and a leap second are left out.
//
// Threads: any.
// Private to runtime/openai/rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::openai {

struct string_format {
  std::string pattern; ///< of the whole text
  /// Characters of its texts: no shorter ones, and none longer.
  std::uint32_t least = 0, most = 0;
};

/// @returns nothing: the name is none of the draft's, and says nothing about a text
std::optional<string_format> format_named(std::string_view name);

} // namespace shoal::openai
