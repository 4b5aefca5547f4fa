// actors/gateway/gateway_metrics.cpp -- the metrics of requests and of pipelines.
#include "actors/gateway/gateway_metrics.hpp"

#include "runtime/http/keys/key_account.hpp"

namespace shoal::actors {

namespace {

using runtime::metric_kind;
using enum runtime::metric_type;

constexpr metric_kind requests{"shoal_requests_total", counter,
                               "requests with prompts"};
constexpr metric_kind answers{
  "shoal_answers_total", counter,
  "ended requests by status of HTTP; 499: the client has gone",
  "model_name, status"};
constexpr metric_kind made{"shoal_generated_tokens_total", counter,
                           "tokens generated for clients of this node", "",
                           "vllm:generation_tokens_total"};
constexpr metric_kind prompts{"shoal_prompt_tokens_total", counter,
                              "tokens of prompts of ended requests",
                              "model_name", "vllm:prompt_tokens_total"};
constexpr metric_kind first_token{
  "shoal_time_to_first_token_seconds", histogram,
  "time until a request had its first token", "model_name",
  "vllm:time_to_first_token_seconds"};
constexpr metric_kind each_token{
  "shoal_time_per_output_token_seconds", histogram,
  "mean time between tokens of a request of one text", "model_name",
  "vllm:request_time_per_output_token_seconds"};
constexpr metric_kind request{"shoal_request_seconds", histogram,
                              "time of a whole request that was answered",
                              "model_name", "vllm:e2e_request_latency_seconds"};
constexpr metric_kind streams{"shoal_streams", gauge,
                              "streams of clients of this node", "model_name"};
constexpr metric_kind model_step{
  "shoal_model_step", gauge,
  "step of the version that is served, of a job that trains", "model_name"};

constexpr const char* of_pipeline = "model_name, pipeline";
constexpr metric_kind ready{"shoal_pipeline_ready", gauge,
                            "whether all stages have their weights: 1 or 0",
                            of_pipeline};
constexpr metric_kind in_pipeline{"shoal_pipeline_streams", gauge,
                                  "streams of all nodes' clients", of_pipeline};
constexpr metric_kind running{"shoal_pipeline_running", gauge,
                              "of these, those that have pages of the cache",
                              of_pipeline, "vllm:num_requests_running"};
constexpr metric_kind queued{"shoal_pipeline_queued", gauge,
                             "of these, those that wait for pages", of_pipeline,
                             "vllm:num_requests_waiting"};
constexpr metric_kind pages{"shoal_pipeline_pages", gauge,
                            "pages of the cache in use", of_pipeline};
constexpr metric_kind usage{"shoal_pipeline_cache_usage_ratio", gauge,
                            "share of the cache in use, 0 to 1", of_pipeline,
                            "vllm:kv_cache_usage_perc"};
constexpr metric_kind waiting_tokens{
  "shoal_pipeline_waiting_tokens", gauge,
  "tokens of prompts that are still to be computed", of_pipeline};
constexpr metric_kind guessed{"shoal_pipeline_guessed_tokens_total", counter,
                              "tokens that were guessed ahead", of_pipeline,
                              "vllm:spec_decode_num_draft_tokens_total"};
constexpr metric_kind accepted{"shoal_pipeline_accepted_tokens_total", counter,
                               "of these, those that were right", of_pipeline,
                               "vllm:spec_decode_num_accepted_tokens_total"};

constexpr metric_kind over_limit{
  "shoal_key_refused_requests_total", counter,
  "requests that were refused since they exceeded a limit of their API key at "
  "this node: requests or tokens",
  "key_name, limit"};

double seconds(core::nanoseconds time) {
  return double(time) / 1e9;
}

void add_pipeline(const core::pipeline_report& r,
                  const runtime::metric_labels& label,
                  runtime::metric_page& to) {
  to.add(ready, label, r.ready ? 1 : 0);
  to.add(in_pipeline, label, r.streams);
  to.add(running, label, r.running);
  to.add(queued, label, r.streams - std::min(r.streams, r.running));
  to.add(pages, label, double(r.pages));
  if (r.room > 0)
    to.add(usage, label, double(r.pages * core::page_tokens) / double(r.room));
  to.add(waiting_tokens, label, double(r.waiting));
  to.add(guessed, label, double(r.guessed));
  to.add(accepted, label, double(r.accepted));
}

} // namespace

gateway_metrics::of_model& gateway_metrics::of(const std::string& name) {
  const bool apart = models_.contains(name) || models_.size() < names_max;
  return models_[apart ? name : ""];
}

void gateway_metrics::told(const std::string& name) {
  ++asked_;
  ++of(name).by_status[200];
}

void gateway_metrics::ended(const std::string& name, const ended_request& is) {
  of_model& m = of(name);
  ++m.by_status[is.status];
  m.prompt_tokens += is.prompt_tokens;
  if (is.first_token > 0)
    m.first_token.observe(seconds(is.first_token));
  if (is.status != 200)
    return;
  m.request.observe(seconds(is.all));
  if (is.generated_tokens > 1 && is.choices == 1)
    m.each_token.observe(seconds(is.all - is.first_token)
                         / double(is.generated_tokens - 1));
}

void gateway_metrics::add(
  const std::map<core::job_id, std::shared_ptr<served_model>>& models,
  runtime::metric_page& to) const {
  to.add(requests, {}, double(asked_));
  to.add(made, {}, double(generated_));
  for (const auto& [name, m] : models_) {
    const runtime::metric_labels label{{"model_name", name}};
    for (const auto& [status, count] : m.by_status)
      to.add(answers,
             {{"model_name", name}, {"status", std::to_string(status)}},
             double(count));
    to.add(prompts, label, double(m.prompt_tokens));
    to.add(first_token, label, m.first_token);
    to.add(each_token, label, m.each_token);
    to.add(request, label, m.request);
  }
  for (const auto& [id, model] : models) {
    const runtime::metric_labels label{{"model_name", model->name()}};
    to.add(streams, label, double(model->streams()));
    if (model->config().follows != 0)
      to.add(model_step, label, double(model->current()->is.step));
    for (const core::pipeline_report& r : model->current()->streams.reports()) {
      runtime::metric_labels of = label;
      of.emplace_back("pipeline", std::to_string(r.header.island));
      add_pipeline(r, of, to);
    }
  }
}

std::vector<core::served_load> gateway_metrics::loads(
  const std::map<core::job_id, std::shared_ptr<served_model>>& models) {
  std::erase_if(generated_of_,
                [&](const auto& each) { return !models.contains(each.first); });
  std::vector<core::served_load> out;
  for (const auto& [id, model] : models) {
    core::served_load load{id, model->name(), model->streams(), 0, {}};
    if (const auto at = generated_of_.find(id); at != generated_of_.end())
      load.generated_tokens = at->second;
    for (const core::pipeline_report& r : model->current()->streams.reports())
      load.pipelines.push_back({r.header.island, r.ready, r.streams, r.running,
                                r.pages, r.room / core::page_tokens,
                                r.waiting});
    out.push_back(std::move(load));
  }
  return out;
}

void add_refusals(const runtime::key_accounts& of, runtime::metric_page& to) {
  for (const runtime::key_refusals& k : of.refusals()) {
    to.add(over_limit, {{"key_name", k.name}, {"limit", "requests"}},
           double(k.requests));
    to.add(over_limit, {{"key_name", k.name}, {"limit", "tokens"}},
           double(k.tokens));
  }
}

const std::vector<metric_kind>& gateway_metric_kinds() {
  static const std::vector<metric_kind> all{
    requests,       answers, made,     prompts,    first_token,
    each_token,     request, streams,  model_step, ready,
    in_pipeline,    running, queued,   pages,      usage,
    waiting_tokens, guessed, accepted, over_limit};
  return all;
}

} // namespace shoal::actors
