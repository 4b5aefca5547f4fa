// runtime/model/jinja/values/python_text.hpp -- what Python's str does with a text.
//
// Positions are in code points, as Python counts them; offsets are in bytes.
//
// Differences from Python: letter case maps one character to one, but for the
// German sharp s.
//
// @pre everywhere: texts are UTF-8
#pragma once

#include "runtime/model/jinja/values/marked_text.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::jinja {

/// str.isspace of a character: what strip() takes off, and \s matches.
bool is_python_space(char32_t code);
std::size_t code_points(std::string_view text);
/// The offset at which code point `position` begins; the size if there are
/// fewer.
std::size_t offset_of(std::string_view text, std::size_t position);

enum class strip_side { both, left, right };
/// @param characters null: white space
text_range strip(std::string_view text, strip_side side,
                 const std::string_view* characters = nullptr);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// str.title(): every run of letters begins with a capital.
std::string title(std::string_view text);

/// str.split(): the parts as ranges. @param separator null: white space
/// @param most cuts; nothing: all
std::vector<text_range>
split(std::string_view text, const std::string_view* separator,
      std::optional<std::size_t> most, bool from_right);
std::vector<text_range> split_lines(std::string_view text);

/// repr() of a float and of a string.
std::string repr(double number);
std::string repr(std::string_view text);

} // namespace shoal::jinja
