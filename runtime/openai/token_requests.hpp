// runtime/openai/token_requests.hpp -- /tokenize, /detokenize, /apply-template.
//
//   POST /tokenize        {"prompt": TEXT} or {"messages": [...]}, as vLLM has it;
//                         or {"content": TEXT}, as llama.cpp has it
//     -> {"count": N, "max_model_len": M, "tokens": [...], "token_strs": null}
//     with_pieces, as llama.cpp has it: "tokens": [{"id": 7, "piece": TEXT}], where
//     a part of a character is the list of its bytes in place of a text
//   POST /detokenize      {"tokens": [...]}
//     -> {"prompt": TEXT, "content": TEXT}
//   POST /apply-template  {"messages": [...]}, as llama.cpp has it
//     -> {"prompt": TEXT}
//
// "model" may be left out where one model is served. add_special_tokens is true
// for prompts, false for messages and contents; return_token_strs gives the text
// of each token. With "parse_special": false no text stands for a special token.
//
// Errors: an api_error with status 400 and the name of the field.
#pragma once

#include "runtime/openai/chat_request.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::openai {

struct tokenize_request {
  std::string model; ///< "": not given
  /// A text, or a conversation.
  std::variant<std::string, conversation> from;
  bool add_special_tokens = true;
  bool return_token_strs = false;
  bool with_pieces = false;
  bool parse_special = true;
};

struct detokenize_request {
  std::string model;
  std::vector<token_id> tokens;
};

struct template_request {
  std::string model;
  conversation asked;
};

std::variant<tokenize_request, api_error>
parse_tokenize(std::string_view body, const chat_limits& limits = {});
std::variant<detokenize_request, api_error>
parse_detokenize(std::string_view body, const chat_limits& limits = {});
std::variant<template_request, api_error>
parse_apply_template(std::string_view body, const chat_limits& limits = {});

/// The bytes of a token, as logprobs have them.
using piece_of = std::function<std::string(token_id)>;

/// Written as it is made, since a text may have millions of tokens.
std::string tokenize_json(const tokenize_request& asked,
                          const std::vector<token_id>& tokens,
                          const piece_of& piece, std::uint64_t max_model_len);
std::string detokenize_json(const std::string& text);
std::string apply_template_json(const std::string& text);

} // namespace shoal::openai
