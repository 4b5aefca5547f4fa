// actors/gateway/prompts/http_ask.hpp -- what is asked of a gateway over HTTP.
//
// gateway_door sends it from the server's thread. Its receiver must answer the
// exchange; an exchange that nobody answers before it is destroyed gets 500.
//
// Threads: any, one at a time. Errors: none.
#pragma once

#include "runtime/http/http_exchange.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <memory>

namespace shoal::runtime {
class key_accounts; // runtime/http/keys/key_account.hpp
}

namespace shoal::actors {

enum class http_question : std::uint8_t {
  completion,      ///< POST /v1/completions
  chat,            ///< POST /v1/chat/completions
  responses,       ///< POST /v1/responses
  messages,        ///< POST /v1/messages
  count_tokens,    ///< POST /v1/messages/count_tokens
  embeddings,      ///< POST /v1/embeddings
  tokenize,        ///< POST /tokenize
  detokenize,      ///< POST /detokenize
  apply_template,  ///< POST /apply-template
  models,          ///< GET /v1/models
  model,           ///< GET /v1/models/NAME
  ready,           ///< GET /ready
  metrics,         ///< GET /metrics
  metrics_of_vllm, ///< the same, with the names of vLLM besides
};

struct http_ask {
  std::shared_ptr<runtime::http_exchange> exchange;
  http_question what{};
  /// Of the server's keys, for metrics; null: none has limits.
  std::shared_ptr<const runtime::key_accounts> accounts = {};
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::http_ask)
