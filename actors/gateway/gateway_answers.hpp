// actors/gateway/gateway_answers.hpp -- what a gateway answers of its models, apart
// from completions.
//
// Threads: the gateway's.
#pragma once

#include "actors/gateway/served_model.hpp"
#include "runtime/http/http_exchange.hpp"

#include <map>
#include <memory>
#include <string>

namespace shoal::actors {

using served_models = std::map<core::job_id, std::shared_ptr<served_model>>;

/// Null: there is none of that name.
std::shared_ptr<served_model>
model_named(const served_models& all, const std::string& name);

/// /v1/models
void answer_models(runtime::http_exchange& x, const served_models& all);
/// /v1/models/NAME
void answer_model(runtime::http_exchange& x, const served_models& all);
/// /ready
void answer_ready(runtime::http_exchange& x, const served_models& all);

} // namespace shoal::actors
