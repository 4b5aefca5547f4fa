// actors/gateway/gateway_answers.hpp -- what a gateway knows at once: models, and
// whether they are ready.
//
// Threads: the gateway's.
#pragma once

#include "actors/gateway/gateway.hpp"
#include "actors/gateway/gateway_metrics.hpp"
#include "runtime/jobs/job_log.hpp"

#include <map>
#include <memory>
#include <optional>

namespace shoal::actors {

using served_models = std::map<core::job_id, std::shared_ptr<served_model>>;

/// @pre `what` is one of those after apply_template
void answer(http_question what, runtime::http_exchange& x,
            const served_models& models, const gateway_metrics& counted,
            const runtime::context& node);

/// Answers with JSON that was made without a stream; it is counted.
void tell(runtime::http_exchange& x, const std::string& model,
          const std::string& json, gateway_metrics& counted);

/// A line about a served model, now.
runtime::job_event
notice_of(const std::string& text, std::uint64_t number, core::epoch view);

/// Why no request for a model is begun any more; nothing if requests are.
std::optional<openai::api_error>
why_not_begun(const core::view& v, const served_model& model);

/// What a client is told where a stream has ended without its tokens; nothing for
/// other ends.
std::optional<openai::api_error>
why_ended(core::stream_end end, const served_version& version);

} // namespace shoal::actors
