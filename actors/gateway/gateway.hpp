// actors/gateway/gateway.hpp -- what clients of served models talk to, on any
// node.
//
// Keeps the streams of its clients (core/serving/replay.hpp): where pipelines are
// is nothing to them.
//
// Message            Effect
// view_changed       other models, other places of their pipelines
// quorum_changed     without a quorum: pipelines with peers out of reach are none
// serve_message_in   tokens and reports of pipelines
// http_ask           a request, from the HTTP server
// client_left, client_ready
//                    the client of a request has gone, or takes more again
// (private)          files that have been read
//
// Errors: answers to clients. A request that came before its model's tokenizer
// waits for that. While no peers have room for a model, or those that run it are out
// of reach and no quorum can replace them, requests without a token so far wait for
// some seconds (served_model::unplaced_lasts_after) and get 503 then; answers that
// have begun wait until it can go on.
#pragma once

#include "runtime/context.hpp"
#include "runtime/http/http_exchange.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <memory>
#include <string>

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
/// The client of a request has gone.
struct client_left {
  std::uint64_t request = 0;
};
/// It takes more again.
struct client_ready {
  std::uint64_t request = 0;
};

caf::actor spawn_gateway(caf::actor_system& system, runtime::context& node);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::http_ask)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::client_left)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::client_ready)
