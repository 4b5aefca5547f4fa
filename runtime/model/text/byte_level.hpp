// runtime/model/text/byte_level.hpp -- bytes as printable characters, GPT-2's.
//
// Each of the 256 bytes has its own character: those that Latin-1 shows stand
// for themselves, the others follow from U+0100 on.
// Source: openai/gpt-2, encoder.py, bytes_to_unicode().
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shoal::model::text {

/// The bytes of the text, each as its character.
std::string to_byte_level(std::string_view bytes);

/// Appends the bytes that the characters stand for; if one stands for none,
/// appends the text's own bytes. @pre text is UTF-8
void append_from_byte_level(std::string_view text, std::string& bytes);

} // namespace shoal::model::text
