// actors/gateway/gateway_answers.hpp -- what a gateway knows at once: models, and
// whether they are ready.
//
// Threads: the gateway's.
#pragma once

#include "actors/gateway/completion.hpp"
#include "actors/gateway/gateway.hpp"
#include "actors/gateway/gateway_metrics.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/work/quorum_changed.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace shoal::actors {

using served_models = std::map<core::job_id, std::shared_ptr<served_model>>;

/// Whether an answer needs to know what is served, and where.
bool needs_view(http_question what);
/// That is not known yet: the node has just been started, perhaps without a quorum.
void answer_without_view(runtime::http_exchange& x,
                         const runtime::quorum_changed& quorum);

/// @pre `ask.what` is one of those after apply_template
void answer(const http_ask& ask, const served_models& models,
            const gateway_metrics& counted, const runtime::context& node);

/// Answers with JSON that was made without a stream; it is counted.
void tell(runtime::http_exchange& x, const std::string& model,
          const std::string& json, gateway_metrics& counted);

/// A line about a served model, now.
runtime::job_event
notice_of(const std::string& text, std::uint64_t number, core::epoch view);

/// What clients are told of a model that is unplaced. @pre model.unplaced
openai::api_error unplaced_error(const served_model& model);
/// That and why a model's tokenizer is not here. @pre model.textless
std::string textless_text(const served_model& model);
/// Why requests for a model do not wait until it can answer.
std::optional<openai::api_error> why_refused(const served_model& model);

/// Takes the prompts of a request from what its key may use. @returns why it is not
/// begun: for that, or since no request for the model is begun any more
std::optional<openai::api_error>
why_not_begun(const core::view& v, const served_model& model,
              const runtime::http_request& request, const text_request& asked);

/// What a client is told where a stream has ended without its tokens; nothing for
/// other ends.
/// @param prompt_field  the name of the field that has the prompt
std::optional<openai::api_error>
why_ended(core::stream_end end, const served_version& version,
          const char* prompt_field);

/// A stream was to go on with a version that is not served any more.
openai::api_error version_gone(const served_model& model);

std::set<core::peer_id> members_of(const core::view& v);
std::uint64_t random_number();

/// What all answers to a request begin with.
openai::completion_head
head_of(const served_model& model, const served_version& version,
        std::uint64_t request);

/// The lines about a version that has become ready, or is not any more.
std::vector<std::string>
readiness_lines(const served_model& model, const served_version& version,
                bool ready, const core::view& view, const core::plan& plan);

stream_wishes
wishes_of(const runtime::http_request& from, const text_request& asked);

/// The stream of each choice of an answer.
/// @param wishes  what the request had beside its prompts and options
std::vector<core::stream_ask>
asks_of(const completion& answer, const served_model& model,
        const stream_wishes& wishes);

/// Streams of one request for embeddings: it may have more prompts than a
/// pipeline's queue has places.
std::size_t embeddings_at_once(const served_model& m);

/// The embedding that a pipeline has sent for a model. @returns nothing: it is none
std::optional<std::vector<float>>
embedding_of(std::span<const std::byte> pooled, const served_model& model);

} // namespace shoal::actors
