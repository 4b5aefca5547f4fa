// runtime/model/config/word_rules.hpp -- how text is cut into words for BPE.
#pragma once

#include <cstdint>

namespace shoal::model::text {

/// The rule that cuts a text into the words whose bytes merge.
enum class word_rules : std::uint8_t {
  gpt2,  ///< GPT-2's pattern cuts it
  qwen2, ///< normalized to NFC; Qwen 2's pattern cuts it: each digit is a word
};

} // namespace shoal::model::text
