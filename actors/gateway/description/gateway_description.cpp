// actors/gateway/description/gateway_description.cpp -- one after the other.
#include "actors/gateway/description/gateway_description.hpp"

#include "actors/gateway/description/request_schemas.hpp"
#include "actors/gateway/description/written_schemas.hpp"
#include "runtime/observe/metric_page.hpp"

namespace shoal::actors {
namespace {

constexpr const char* sse = "text/event-stream";

void describe_generation(api_document& to) {
  to.add({.method = "POST",
          .path = "/v1/completions",
          .tag = "OpenAI",
          .summary = "continues prompts",
          .body = "CompletionRequest",
          .answer = "Completion",
          .other_type = sse,
          .other_meaning =
            "with stream: events whose data is a Completion with "
            "what is new, then [DONE]",
          .errors = {404, 500},
          .continues = true});
  to.add({.method = "POST",
          .path = "/v1/chat/completions",
          .tag = "OpenAI",
          .summary = "answers a conversation",
          .body = "ChatRequest",
          .answer = "ChatCompletion",
          .other_type = sse,
          .other_meaning =
            "with stream: events whose data is like a "
            "ChatCompletion, with `delta` in place of `message`, "
            "then [DONE]",
          .errors = {404, 500},
          .continues = true});
  to.add({.method = "POST",
          .path = "/v1/responses",
          .tag = "OpenAI",
          .summary = "answers a conversation, by the Responses API; nothing is "
                     "stored",
          .body = "ResponsesRequest",
          .answer = "Response",
          .other_type = sse,
          .other_meaning =
            "with stream: the API's events from response.created "
            "to response.completed, with sequence numbers",
          .errors = {404, 500}});
  to.add({.method = "POST",
          .path = "/v1/messages",
          .tag = "Anthropic",
          .summary = "answers a conversation, by Anthropic's API",
          .body = "MessagesRequest",
          .answer = "MessagesAnswer",
          .other_type = sse,
          .other_meaning =
            "with stream: the API's events from message_start to "
            "message_stop",
          .errors = {404, 500},
          .error = "MessagesError"});
  to.add({.method = "POST",
          .path = "/v1/messages/count_tokens",
          .tag = "Anthropic",
          .summary = "the tokens that a conversation would have",
          .body = "CountTokensRequest",
          .answer = "TokenCount",
          .errors = {404},
          .error = "MessagesError"});
  to.add({.method = "POST",
          .path = "/v1/embeddings",
          .tag = "OpenAI",
          .summary = "embeddings of prompts",
          .body = "EmbeddingRequest",
          .answer = "Embeddings",
          .errors = {404, 500}});
}

void describe_tokens(api_document& to) {
  for (const std::string before : {"", "/v1"}) {
    to.add({.method = "POST",
            .path = before + "/tokenize",
            .tag = "Tokens",
            .summary = "the tokens of a text or a conversation",
            .body = "TokenizeRequest",
            .answer = "Tokens",
            .errors = {404}});
    to.add({.method = "POST",
            .path = before + "/detokenize",
            .tag = "Tokens",
            .summary = "the text of tokens",
            .body = "DetokenizeRequest",
            .answer = "Text",
            .errors = {404}});
  }
  to.add({.method = "POST",
          .path = "/apply-template",
          .tag = "Tokens",
          .summary = "a conversation as the model's template writes it",
          .body = "TemplateRequest",
          .answer = "Text",
          .errors = {404}});
}

void describe_state(api_document& to) {
  to.add({.method = "GET",
          .path = "/v1/models",
          .tag = "OpenAI",
          .summary = "the models that are served",
          .body = "",
          .answer = "Models"});
  to.add({.method = "GET",
          .path = "/v1/models/{model}",
          .tag = "OpenAI",
          .summary = "one of them",
          .body = "",
          .answer = "Model"});
  to.add({.method = "GET",
          .path = "/ready",
          .tag = "Node",
          .summary =
            "whether all models have a pipeline that is loaded; 503 if "
            "not",
          .body = "",
          .answer = "Status"});
  to.add({.method = "GET",
          .path = "/health",
          .tag = "Node",
          .summary = "whether the process answers",
          .body = "",
          .answer = "Status"});
  to.add({.method = "GET",
          .path = "/version",
          .tag = "Node",
          .summary = "the program's version",
          .body = "",
          .answer = "Version"});
  to.add({.method = "GET",
          .path = "/metrics",
          .tag = "Node",
          .summary = "metrics for Prometheus",
          .body = "",
          .answer = "",
          .other_type = "text/plain",
          .other_meaning = "Prometheus' text format"});
}

} // namespace

void describe_gateway(api_document& to) {
  to.add_schemas(answer_schemas());
  to.add_schemas(request_part_schemas());
  using enum http_question;
  for (const auto& [what, name] : {std::pair{completion, "CompletionRequest"},
                                   {chat, "ChatRequest"},
                                   {responses, "ResponsesRequest"},
                                   {messages, "MessagesRequest"},
                                   {count_tokens, "CountTokensRequest"},
                                   {embeddings, "EmbeddingRequest"},
                                   {tokenize, "TokenizeRequest"},
                                   {detokenize, "DetokenizeRequest"},
                                   {apply_template, "TemplateRequest"}})
    to.add_schema(name, request_schema(what));
  describe_generation(to);
  describe_tokens(to);
  describe_state(to);
}

} // namespace shoal::actors
