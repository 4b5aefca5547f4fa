// runtime/openai/embeddings.hpp -- the body of POST /v1/embeddings, and its answer.
//
//   {"model": NAME, "input": TEXT | [TEXT...] | [ID...] | [[ID...]...],
//    "encoding_format": "float" | "base64"}
//     -> {"object": "list", "data": [{"object": "embedding", "index": 0,
//         "embedding": [...] | "..."}], "model": NAME, "usage": {...}}
//
// base64 is that of the values as little-endian floats. Each embedding has length
// 1: the gateway divides by the length. `dimensions` may only be what the model
// has: to leave out values makes sense for models that were trained for it alone,
// and nothing in their files that this server reads says so (as in vLLM's server).
// `user` has no effect; truncate_prompt_tokens and add_special_tokens are taken, as
// vLLM's server does.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field. Errors about the
//          prompts call them `prompt`: see names.
// Source:  https://platform.openai.com/docs/api-reference/embeddings
#pragma once

#include "runtime/openai/answer_writer.hpp"
#include "runtime/openai/completion_request.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::openai {

struct embedding_limits : completion_limits {
  embedding_limits() {
    prompts_max = 2048; // as OpenAI's API
  }
};

struct embedding_request : completion_request {
  bool base64 = false;
  std::optional<std::uint32_t> dimensions;
  bool add_special_tokens = true;
  static constexpr std::array names = {field_name{"prompt", "input"},
                                       field_name{"max_tokens", "input"}};
};

[[nodiscard]] std::variant<embedding_request, api_error>
parse_embeddings(std::string_view body, const embedding_limits& limits = {});

/// Divides the values by their length, in place. @returns false: it is 0
[[nodiscard]] bool normalize(std::span<float> values);

std::unique_ptr<answer_writer> make_writer(const embedding_request& asked);

} // namespace shoal::openai
