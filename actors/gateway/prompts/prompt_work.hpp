// actors/gateway/prompts/prompt_work.hpp -- from the body of a request to what the gateway
// needs: parsed, rendered and tokenized.
//
// A long prompt takes long, so it is not the gateway's actor that does it: work is
// queued on context::prompts(), and comes back as a message. One thread does it in
// the order in which requests came, so those of one client keep theirs.
//
// Threads: any.
#pragma once

#include "actors/gateway/prompts/completion_rules.hpp"
#include "actors/gateway/prompts/http_ask.hpp"
#include "runtime/openai/answer_writer.hpp"

#include <memory>
#include <optional>
#include <variant>

namespace shoal::actors {

/// A request for text, ready for pipelines.
struct text_request {
  openai::generation_options options;
  std::unique_ptr<openai::answer_writer> writer; ///< of the request's API
  bool chat = false; ///< the answer has thoughts and calls apart from its text
  std::vector<completion_prompt> prompts;
  /// The last event that the client has of it, if it comes again.
  std::optional<openai::event_id> after;
  std::uint64_t key = 0; ///< core::stream_ask::key
  core::sampling_wish how;
  openai::answer_format format;                ///< of a chat's answer
  std::shared_ptr<const core::text_rule> rule; ///< of its text; null: none
  /// Of its tokens; null: none.
  std::shared_ptr<const core::token_filter> filter;
  /// If not none, embeddings of the prompts are asked for, and no text.
  core::pooling pooled = core::pooling::none;
};

/// What the streams of a request have in common.
struct stream_wishes {
  std::uint64_t client = 0;
  std::uint64_t key = 0; ///< core::stream_ask::key
  core::sampling_wish how;
  std::shared_ptr<const core::text_rule> rule;
  std::shared_ptr<const core::token_filter> filter;
  core::pooling pooled = core::pooling::none;
};

/// The files of its model are not here yet.
struct waits_for_text {};

struct prompt_answer {
  std::string model; ///< as it was asked for; "": unknown
  /// For streams; JSON that answers it; or what is wrong with it.
  std::variant<text_request, std::string, openai::api_error, waits_for_text>
    what;
};

/// @param random  the seed of a request that gives none
prompt_answer prepare(http_question what, const runtime::http_request& request,
                      const prompt_models& models, std::uint64_t random);

} // namespace shoal::actors
