// runtime/model/gguf/gguf_tokenizer.hpp -- the tokenizer of a GGUF file, as a
// tokenizer.json and a tokenizer_config.json.
//
// Two kinds: "gpt2", BPE of bytes with merges; and "llama", BPE of characters,
// as SentencePiece has it: its merges follow from the tokens' scores.
//
// Errors: a failure names the key. A way of cutting words that is not known
// (tokenizer.ggml.pre) is one, since its tokens would be others.
#pragma once

#include "runtime/model/gguf/gguf_file.hpp"

#include <string>
#include <string_view>

namespace shoal::model::gguf {

result<std::string> tokenizer_json(const file& from);

/// Special tokens by name, and the chat template, as a tokenizer_config.json has
/// them.
std::string tokenizer_config_json(const file& from);

/// The chat template; empty: the file has none.
std::string_view chat_template_of(const file& from);

} // namespace shoal::model::gguf
