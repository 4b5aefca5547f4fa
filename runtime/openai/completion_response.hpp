// runtime/openai/completion_response.hpp -- answers of /v1/completions,
// /v1/chat/completions and /v1/models.
//
// A request without `stream` gets one completion_json(). A stream is a sequence
// of events, each as sse_event(chunk_json(...), id), then sse_done:
//
//   id: 7@900
//   data: {"id":"cmpl-...","object":"text_completion","choices":[...], ...}
//
// Clients send the last id that they have as Last-Event-ID when they connect
// again. An error within a stream is an event with error_json() as its data.
//
// Texts that are not UTF-8 get U+FFFD for what is broken, so a stream must cut
// its texts between characters.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/openai/api_error.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::openai {

/// What all objects of one answer share.
struct completion_head {
  std::string id;           ///< "cmpl-..." or "chatcmpl-...", unique
  std::int64_t created = 0; ///< seconds since 1970
  std::string model;
  /// Of a model that still trains: the step of the version that answers, which is
  /// told as "system_fingerprint": "step-900".
  std::optional<std::uint64_t> step = {};
  bool chat = false; ///< the choices are messages
};

/// A token of a text.
struct listed_token {
  std::string bytes; ///< may be a part of a character; "": it has no text
  std::int32_t id = 0;
};

/// One list entry for each token of a text.
struct logprobs {
  using top = std::vector<std::pair<listed_token, float>>;

  std::vector<listed_token> tokens;
  /// Nothing for the first token of a prompt that is echoed.
  std::vector<std::optional<float>> token_logprobs;
  std::vector<std::optional<top>> top_logprobs; ///< most probable first
  /// Characters (code points) of the choice's text before the token, or before the
  /// character of which it is a part.
  std::vector<std::size_t> text_offset;
};

enum class finish_reason {
  none,       ///< more follows
  stop,       ///< the model ended the text, or a stop string occurred
  length,     ///< max_tokens, or the end of the model's context
  tool_calls, ///< the model ended the text, which calls tools
};

/// A call of a tool; in a chunk: what is new of it.
struct tool_call {
  std::size_t index = 0;
  std::string id, name;  ///< in a chunk: "" but in the first one
  std::string arguments; ///< JSON, as the model has written it
};

struct completion_choice {
  std::uint32_t index = 0;
  std::string text; ///< in a chunk: what is new
  // Of a chat alone.
  bool begins = false;   ///< in a chunk: the first of its choice
  std::string reasoning; ///< before the text; as the text
  std::vector<tool_call> calls;
  std::optional<openai::logprobs> logprobs;
  finish_reason finish = finish_reason::none;
  std::string stopped_by = {}; ///< the stop string that has ended it; "": none
  /// If asked for (return_token_ids): those of the prompt, in the first event of
  /// a stream, and all that were chosen, also one that ends the text; in a chunk:
  /// what is new.
  std::optional<std::vector<std::int32_t>> prompt_token_ids;
  std::optional<std::vector<std::int32_t>> token_ids;
  std::vector<float> embedding = {}; ///< of a request for one: all there is
};

/// The calls of a chunk. The first ones, without a name, go on with the call of the
/// chunk before, so they precede its text; the others follow it.
struct calls_of_chunk {
  std::span<const tool_call> continued, begun;
};
calls_of_chunk calls_of(const completion_choice& chunk);

struct usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  /// Tokens of the prompt that were not computed again; nothing: left out.
  std::optional<std::uint64_t> cached_tokens;
  std::uint64_t reasoning_tokens = 0; ///< of completion_tokens, of thoughts
};

/// What is told of completion_head::step. @pre it has one
std::string fingerprint_of(const completion_head& head);

/// The answer of a request without `stream`.
std::string completion_json(const completion_head& head,
                            const std::vector<completion_choice>& choices,
                            const usage& used);

/// One event of a stream.
/// @param with_usage  the request's include_usage: "usage" is null until the
///                    last event
/// @param so_far  is "usage" instead; may be null
std::string chunk_json(const completion_head& head,
                       const std::vector<completion_choice>& choices,
                       bool with_usage, const usage* so_far = nullptr);
/// The event after the last choice, if the request has include_usage.
std::string usage_chunk_json(const completion_head& head, const usage& used);

/// The id of an event: what a client has with it. As text "7", or "7@900".
struct event_id {
  std::uint64_t number = 0; ///< tokens, or a count of events
  /// Of a model that still trains: the step of the version that answers.
  std::optional<std::uint64_t> step;
  friend bool operator==(const event_id&, const event_id&) = default;
};
std::string to_text(const event_id& id);
/// The value of a header Last-Event-ID. @returns nothing if it is no id of an event
std::optional<event_id> parse_event_id(std::string_view text);

/// "id: ID\ndata: JSON\n\n".
/// @pre `json` is one line
std::string sse_event(std::string_view json, const event_id& id);
/// The same without an id: for an error.
std::string sse_event(std::string_view json);
/// "event: NAME\ndata: JSON\n\n": an event that has a name.
std::string sse_named_event(std::string_view name, std::string_view json);
/// The last event of a stream.
inline constexpr std::string_view sse_done = "data: [DONE]\n\n";
/// Clients ignore it; it keeps a connection alive while no token comes.
inline constexpr std::string_view sse_keep_alive = ": keep-alive\n\n";
/// What a stream's answer has as Content-Type.
inline constexpr std::string_view sse_type = "text/event-stream; charset=utf-8";

/// A token as it stands in logprobs: its text, or "bytes:\xe2\x96" if it is
/// only a part of a character.
std::string token_text(std::string_view bytes);
/// The same of a token: "token_id:7" if it has no text.
std::string name_of(const listed_token& token);
/// Code points of a text, as text_offset counts them; a byte that is not UTF-8
/// counts as one.
std::size_t characters(std::string_view text);

/// Probabilities as a list with an entry for each token, as chats have them.
nlohmann::ordered_json token_list(const logprobs& l);

struct model_card {
  std::string id;
  std::int64_t created = 0; ///< seconds since 1970
  std::string owned_by = "shoal";
  std::optional<std::uint64_t> max_model_len; ///< as vLLM tells it
  std::optional<std::uint64_t> step; ///< of training, where it is followed
  /// A pipeline has all of its weights; until then requests wait.
  std::optional<bool> ready;
};

/// GET /v1/models.
std::string models_json(const std::vector<model_card>& models);
/// GET /v1/models/ID.
std::string model_json(const model_card& model);

} // namespace shoal::openai
