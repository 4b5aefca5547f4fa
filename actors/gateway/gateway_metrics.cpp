// actors/gateway/gateway_metrics.cpp -- the text of /metrics.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats
#include "actors/gateway/gateway_metrics.hpp"

namespace shoal::actors {

namespace {

std::string label(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

class metrics_page {
public:
  std::string text;

  void kind(const char* name, const char* kind) {
    text += std::string("# TYPE ") + name + " " + kind + "\n";
  }
  void value(const char* name, const std::string& labels, std::uint64_t value) {
    text += name + labels + " " + std::to_string(value) + "\n";
  }
};

} // namespace

std::string metrics_text(
  const gateway_counts& counts,
  const std::map<core::job_id, std::shared_ptr<served_model>>& models) {
  metrics_page out;
  const auto counter = [&](const char* name, std::uint64_t value) {
    out.kind(name, "counter");
    out.value(name, "", value);
  };
  counter("shoal_requests_total", counts.requests);
  counter("shoal_clients_gone_total", counts.clients_gone);
  counter("shoal_generated_tokens_total", counts.tokens);
  out.kind("shoal_streams", "gauge");
  for (const auto& [id, model] : models)
    out.value("shoal_streams", "{model=\"" + label(model->name()) + "\"}",
              model->streams());
  out.kind("shoal_model_step", "gauge");
  for (const auto& [id, model] : models)
    if (model->config().follows != 0)
      out.value("shoal_model_step", "{model=\"" + label(model->name()) + "\"}",
                model->current()->is.step);
  const auto of_pipelines = [&](const char* name, auto value_of,
                                const char* kind = "gauge") {
    out.kind(name, kind);
    for (const auto& [id, model] : models)
      for (const core::pipeline_report& r : model->current()->streams.reports())
        out.value(name,
                  "{model=\"" + label(model->name()) + "\",pipeline=\""
                    + std::to_string(r.header.island) + "\"}",
                  value_of(r));
  };
  using report = const core::pipeline_report&;
  of_pipelines("shoal_pipeline_ready",
               [](report r) { return r.ready ? 1u : 0u; });
  of_pipelines("shoal_pipeline_streams", [](report r) { return r.streams; });
  of_pipelines("shoal_pipeline_running", [](report r) { return r.running; });
  of_pipelines("shoal_pipeline_pages", [](report r) { return r.pages; });
  of_pipelines("shoal_pipeline_waiting_tokens",
               [](report r) { return r.waiting; });
  of_pipelines(
    "shoal_pipeline_guessed_tokens_total", [](report r) { return r.guessed; },
    "counter");
  of_pipelines(
    "shoal_pipeline_accepted_tokens_total", [](report r) { return r.accepted; },
    "counter");
  return std::move(out.text);
}

} // namespace shoal::actors
