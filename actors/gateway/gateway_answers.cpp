// actors/gateway/gateway_answers.cpp -- cards of models.
#include "actors/gateway/gateway_answers.hpp"

#include "runtime/openai/completion_response.hpp"

#include <string_view>
#include <vector>

namespace shoal::actors {

namespace {

openai::model_card card_of(const served_model& m) {
  openai::model_card out;
  out.id = m.name();
  out.created = m.entry().submitted_ms / 1000;
  out.max_model_len = m.config().context;
  if (m.config().follows != 0)
    out.step = m.current()->is.step;
  return out;
}

} // namespace

std::shared_ptr<served_model>
model_named(const served_models& all, const std::string& name) {
  for (const auto& [id, model] : all)
    if (model->name() == name)
      return model;
  return nullptr;
}

void answer_models(runtime::http_exchange& x, const served_models& all) {
  std::vector<openai::model_card> cards;
  for (const auto& [id, model] : all)
    cards.push_back(card_of(*model));
  x.respond_json(openai::models_json(cards));
}

void answer_model(runtime::http_exchange& x, const served_models& all) {
  constexpr std::string_view before = "/v1/models/";
  const auto name = runtime::percent_decoded(
    std::string_view(x.request().path).substr(before.size()));
  const auto model = name ? model_named(all, *name) : nullptr;
  if (!model)
    x.respond(openai::model_not_found(name.value_or(x.request().path)));
  else
    x.respond_json(openai::model_json(card_of(*model)));
}

void answer_ready(runtime::http_exchange& x, const served_models& all) {
  if (all.empty()) {
    x.respond(openai::unavailable("no model is served", 1));
    return;
  }
  for (const auto& [id, model] : all)
    if (model->current()->streams.ready() == 0) {
      x.respond(openai::unavailable(
        "the model \"" + model->name() + "\" is being loaded", 1));
      return;
    }
  x.respond_json("{\"status\":\"ready\"}");
}

} // namespace shoal::actors
