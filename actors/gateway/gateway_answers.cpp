// actors/gateway/gateway_answers.cpp -- lists of models, /ready, /metrics.
#include "actors/gateway/gateway_answers.hpp"

#include "actors/training/training_state.hpp" // unix_ms
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/view.hpp"
#include "runtime/http/keys/key_account.hpp"
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/embeddings.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace shoal::actors {

namespace {

openai::api_error
waits_error(const served_model& model, const std::string& why) {
  constexpr unsigned again_after_s = 10; // peers seldom come back sooner
  return openai::unavailable("the model \"" + model.name() + "\" waits: " + why,
                             again_after_s);
}

bool is_ready(const served_model& m) {
  return !m.unplaced && !(m.textless && m.textless->lasts)
         && m.current()->streams.ready() > 0;
}

openai::model_card card_of(const served_model& m) {
  openai::model_card out;
  out.id = m.name();
  out.created = m.entry().submitted_ms / 1000;
  out.max_model_len = m.config().context;
  out.step = m.step_of(*m.current());
  out.ready = is_ready(m);
  return out;
}

void answer_models(runtime::http_exchange& x, const served_models& models) {
  std::vector<openai::model_card> all;
  for (const auto& [id, model] : models)
    all.push_back(card_of(*model));
  x.respond_json(openai::models_json(all));
}

void answer_model(runtime::http_exchange& x, const served_models& models) {
  constexpr std::string_view before = "/v1/models/";
  const auto name = runtime::percent_decoded(
    std::string_view(x.request().path).substr(before.size()));
  for (const auto& [id, model] : models)
    if (name && model->name() == *name) {
      x.respond_json(openai::model_json(card_of(*model)));
      return;
    }
  x.respond(openai::model_not_found(name.value_or(x.request().path)));
}

openai::api_error why_not_ready(const served_model& model) {
  if (model.unplaced)
    return unplaced_error(model);
  if (const auto why = why_refused(model))
    return *why;
  return openai::unavailable(
    "the model \"" + model.name() + "\" is being loaded", 1);
}

void answer_ready(runtime::http_exchange& x, const served_models& models) {
  if (models.empty()) {
    x.respond(openai::unavailable("no model is served", 1));
    return;
  }
  for (const auto& [id, model] : models)
    if (!is_ready(*model)) {
      x.respond(why_not_ready(*model));
      return;
    }
  x.respond_json("{\"status\":\"ready\"}");
}

} // namespace

std::set<core::peer_id> members_of(const core::view& v) {
  std::set<core::peer_id> out;
  for (const core::member& m : v.members)
    out.insert(m.id.peer);
  return out;
}

std::uint64_t random_number() {
  std::random_device from;
  return (std::uint64_t(from()) << 32) | from();
}

openai::completion_head
head_of(const served_model& model, const served_version& version,
        std::uint64_t request) {
  openai::completion_head out;
  out.id = core::job_text(request);
  out.created = unix_ms() / 1000;
  out.model = model.name();
  out.step = model.step_of(version);
  return out;
}

std::vector<std::string>
readiness_lines(const served_model& model, const served_version& version,
                bool ready, const core::view& view, const core::plan& plan) {
  std::vector<std::string> out;
  if (const auto at =
        std::ranges::find(plan.jobs, model.entry().id, &core::assignment::job);
      ready && at != plan.jobs.end())
    for (const core::unheld_wish& w : core::unheld_wishes(view, *at))
      out.push_back(core::to_text(w));
  out.push_back((ready ? "ready: all weights of a pipeline are loaded"
                       : "waiting: no pipeline has all of its weights")
                + (model.config().follows == 0
                     ? std::string()
                     : " (step " + std::to_string(version.is.step) + ")"));
  return out;
}

stream_wishes
wishes_of(const runtime::http_request& from, const text_request& asked) {
  return {std::hash<std::string>{}(from.key_name),
          asked.key,
          asked.how,
          asked.rule,
          asked.filter,
          asked.pooled};
}

std::vector<core::stream_ask>
asks_of(const completion& answer, const served_model& model,
        const stream_wishes& wishes) {
  std::vector<core::stream_ask> out;
  const openai::generation_options& options = answer.request();
  for (std::size_t i = 0; i < answer.choices(); ++i) {
    core::stream_ask& a = out.emplace_back();
    a.client = wishes.client;
    a.key = wishes.key;
    a.tokens = answer.prompt_of(i);
    // The prompt's scores, or its embedding, come with it.
    a.tokens_max = std::max(1u, options.max_tokens);
    a.scored = answer.wants_scores();
    a.how = wishes.how;
    // A seed that was asked for is each prompt's; one that was drawn is no prompt's
    // but the first one's.
    a.how.seed = wishes.how.seed + (options.seed ? i % options.generated() : i);
    a.rule = wishes.rule;
    a.filter = wishes.filter;
    a.pooled = wishes.pooled;
    if (a.pooled == core::pooling::none)
      a.ends = model.ends_of(options);
  }
  return out;
}

std::size_t embeddings_at_once(const served_model& m) {
  constexpr std::size_t most = 64;
  return std::clamp<std::size_t>(m.config().queue_max / 2, 1, most);
}

std::optional<std::vector<float>>
embedding_of(std::span<const std::byte> pooled, const served_model& model) {
  std::vector<float> out(std::size_t(model.config().model.hidden_size));
  if (pooled.size() != out.size() * sizeof(float))
    return std::nullopt;
  std::memcpy(out.data(), pooled.data(), pooled.size());
  if (!openai::normalize(out))
    return std::nullopt;
  return out;
}

bool needs_view(http_question what) {
  return what != http_question::metrics
         && what != http_question::metrics_of_vllm;
}

void answer_without_view(runtime::http_exchange& x,
                         const runtime::quorum_changed& quorum) {
  x.respond(openai::unavailable(
    quorum.why_none.empty() ? "the node is starting" : quorum.why_none, 1));
}

void answer(const http_ask& ask, const served_models& models,
            const gateway_metrics& counted, const runtime::context& node) {
  runtime::http_exchange& x = *ask.exchange;
  switch (ask.what) {
  case http_question::models:
    return answer_models(x, models);
  case http_question::model:
    return answer_model(x, models);
  case http_question::ready:
    return answer_ready(x, models);
  default:
    runtime::metric_page page(ask.what == http_question::metrics_of_vllm);
    counted.add(models, page);
    if (ask.accounts)
      add_refusals(*ask.accounts, page);
    node.add_metrics(page);
    x.respond(200, {{"Content-Type", runtime::metric_page::content_type}},
              page.text());
  }
}

void tell(runtime::http_exchange& x, const std::string& model,
          const std::string& json, gateway_metrics& counted) {
  counted.told(model);
  x.respond_json(json);
}

runtime::job_event
notice_of(const std::string& text, std::uint64_t number, core::epoch view) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::notice;
  e.step = number;
  e.epoch = view;
  e.text = text;
  e.unix_ms = unix_ms();
  return e;
}

openai::api_error unplaced_error(const served_model& model) {
  return waits_error(model, model.unplaced->why);
}

std::string textless_text(const served_model& model) {
  return "this node cannot get the files of the tokenizer: "
         + model.textless->why;
}

std::optional<openai::api_error> why_refused(const served_model& model) {
  if (model.unplaced && model.unplaced->lasts)
    return unplaced_error(model);
  if (model.textless && model.textless->lasts)
    return waits_error(model, textless_text(model));
  return std::nullopt;
}

std::optional<openai::api_error>
why_not_begun(const core::view& v, const served_model& model,
              const runtime::http_request& request, const text_request& asked) {
  const core::job_entry* entry = core::find_job(v, model.entry().id);
  if (entry != nullptr && core::is_draining(*entry))
    return openai::unavailable(
      "the model \"" + model.name() + "\" is about to end", 1);
  if (const auto why = why_refused(model))
    return why;
  if (!request.account)
    return std::nullopt;
  std::uint64_t tokens = 0;
  for (const completion_prompt& p : asked.prompts)
    tokens += p.ids.size();
  return request.account->take_prompt(tokens);
}

openai::api_error version_gone(const served_model& model) {
  return openai::refused_request(
    410,
    "the version of \"" + model.name()
      + "\" with which this stream began is not served any more: send the "
        "request again without Last-Event-ID",
    "version_gone");
}

std::optional<openai::api_error>
why_ended(core::stream_end end, const served_version& version,
          const char* prompt_field) {
  switch (end) {
  case core::stream_end::too_long:
    return openai::invalid_request(
      "the prompt and max_tokens have more tokens than the cache of the model "
      "has room for ("
        + std::to_string(version.streams.room()) + ")",
      prompt_field, "context_length_exceeded");
  case core::stream_end::busy:
    return openai::rate_limited("too many requests wait for this model", 1);
  case core::stream_end::broken:
    return openai::server_error(
      "the model's output is not a number: its weights are broken");
  case core::stream_end::deadly:
    return openai::server_error("the request was given up: peers have failed "
                                "while they computed it");
  case core::stream_end::stuck:
    return openai::invalid_request(
      "what the text must be asks for characters that the model's tokenizer "
      "does not have, or is too ambiguous, or bad_words and allowed_token_ids "
      "leave no token");
  default:
    return std::nullopt;
  }
}

} // namespace shoal::actors
