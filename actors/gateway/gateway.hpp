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
// some seconds (served_model::lasts_after) and get 503 then; answers that
// have begun wait until it can go on.
#pragma once

#include "actors/gateway/prompts/http_ask.hpp"
#include "runtime/context.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <cstdint>

namespace shoal::actors {

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

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::client_left)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::client_ready)
