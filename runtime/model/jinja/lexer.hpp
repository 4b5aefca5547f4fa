// runtime/model/jinja/lexer.hpp -- a template cut into tokens.
//
// With the settings of Hugging Face's transformers: the line end after a block
// is dropped (trim_blocks), so is white space before a block that begins a line
// (lstrip_blocks), and one line end at the end of the template.
//
// Errors: template_error, with "line N: " before it.
#pragma once

#include "runtime/model/jinja/values/limits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::jinja {

enum class token_kind : std::uint8_t {
  data, ///< text outside of tags
  begin_output,
  end_output,
  begin_block,
  end_block,
  name,
  text, ///< a string; `text` is its content
  integer,
  real,
  sign, ///< an operator or bracket
  end,
};

struct token {
  token_kind kind = token_kind::end;
  std::string text;
  int line = 1;

  bool is_sign(std::string_view s) const {
    return kind == token_kind::sign && text == s;
  }
  bool is_name(std::string_view n) const {
    return kind == token_kind::name && text == n;
  }
};

/// @pre source is UTF-8. The last token is `end`.
std::vector<token> tokens_of(std::string_view source);

[[noreturn]] void fail_at(int line, const std::string& what);

} // namespace shoal::jinja
