// runtime/jobs/serve_config.cpp -- JSON of a served model, and its costs.
#include "runtime/jobs/serve_config.hpp"

#include "runtime/core/job_entry.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/units.hpp"

#include <algorithm>
#include <array>

namespace shoal::runtime {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

constexpr kernels::weight_type weight_types[] = {
  kernels::weight_type::f32, kernels::weight_type::bf16,
  kernels::weight_type::q8, kernels::weight_type::q4};

/// A whole number of the section within bounds, or its default.
model::status read(const json& section, const char* key, std::uint64_t low,
                   std::uint64_t high, std::uint64_t& into) {
  const auto at = section.find(key);
  if (at == section.end())
    return model::done{};
  if (!at->is_number_unsigned() || at->get<std::uint64_t>() < low
      || at->get<std::uint64_t>() > high)
    return failure{std::string("serve.") + key + ": is " + model::shown(*at)
                   + ", must be a whole number from " + std::to_string(low)
                   + " to " + std::to_string(high)};
  into = at->get<std::uint64_t>();
  return model::done{};
}

/// Passes that are under way at once, then: the step of the planner is the time
/// of a token behind the others.
constexpr std::uint32_t usual_passes = 4;

/// The job of a text that core::job_text() made, or 0.
core::job_id job_of_text(const std::string& text) {
  constexpr std::size_t digits = 2 * sizeof(core::job_id);
  if (text.size() != digits
      || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return 0;
  return std::stoull(text, nullptr, 16);
}
/// Of grow_after and shrink_after: a day.
constexpr std::uint64_t times_max_s = 86'400;

/// Bytes of a matrix value, times 32.
std::uint64_t value_bytes_32(const serve_config& c) {
  if (!c.quantize)
    return c.stored_bytes * 32;
  switch (*c.quantize) {
  case kernels::weight_type::f32:
    return 128;
  case kernels::weight_type::bf16:
    return 64;
  case kernels::weight_type::q8:
    return 34;
  case kernels::weight_type::q4:
    return 18;
  }
  return 128;
}

} // namespace

std::uint64_t usual_cache_tokens(std::uint64_t context) {
  return std::max(
    context, std::min(cache_sequences_usual * context, cache_tokens_usual));
}

core::window_pages window_pages_of(const serve_config& c) {
  std::uint64_t windowed = 0;
  for (std::uint64_t layer = 0; layer != c.model.num_hidden_layers; ++layer)
    windowed += model::window_of(c.model, layer) != 0 ? 1 : 0;
  if (windowed == 0)
    return {};
  const std::uint64_t pages = core::pages_for(c.cache_tokens);
  const std::uint64_t sequences =
    std::max<std::uint64_t>(1, pages / core::pages_for(c.context));
  const std::uint64_t own = std::max<std::uint64_t>(
    sequences * core::window_ring(c.model.sliding_window, c.pass_tokens),
    (pages + 3) / 4);
  if (own >= pages
      || 2 * windowed * (pages - own) <= c.model.num_hidden_layers * pages)
    return {};
  return {std::uint32_t(own), std::uint32_t(c.model.sliding_window)};
}

std::uint64_t pooled_rows_of(const serve_config& c) {
  const std::uint64_t bytes =
    std::uint64_t(c.model.hidden_size) * sizeof(float);
  return std::clamp<std::uint64_t>(core::serving::pooled_bytes_max / bytes, 1,
                                   core::serving::rows_max);
}

std::string to_json(const serve_config& c) {
  json serve = json::object();
  serve["context"] = c.context;
  serve["cache_tokens"] = c.cache_tokens;
  serve["pass_tokens"] = c.pass_tokens;
  serve["streams_max"] = c.streams_max;
  serve["queue_max"] = c.queue_max;
  serve["speculate"] = c.speculate;
  serve["pooling"] = c.pooled == core::pooling::mean ? "mean" : "last";
  serve["kv_type"] = kernels::name_of(c.kv);
  serve["quantize"] = c.quantize ? kernels::name_of(*c.quantize) : "stored";
  serve["stored_bytes"] = c.stored_bytes;
  if (c.follows != 0)
    serve["follows"] = core::job_text(c.follows);
  if (c.replicas_max > 0) {
    serve["replicas_max"] = c.replicas_max;
    serve["grow_after"] = c.grow_after;
    serve["shrink_after"] = c.shrink_after;
  }
  return model::json_text(
    json{{"serve", serve},
         {"model", model::parse_json<json>(model::to_json(c.model))}});
}

model::result<serve_config> parse_serve(std::string_view text) {
  const json all = model::parse_json<json>(text);
  if (!all.is_object() || !all.contains("serve") || !all["serve"].is_object()
      || !all.contains("model"))
    return failure{"it describes no served model"};
  const json& serve = all["serve"];
  serve_config c;
  auto config = model::parse_config(model::json_text(all["model"]), "model");
  if (!config)
    return config.why();
  c.model = *config;
  const std::uint64_t positions = std::min<std::uint64_t>(
    c.model.max_position_embeddings, core::serving::tokens_max);
  c.context = positions;
  if (auto ok = read(serve, "context", 1, positions, c.context); !ok)
    return ok.why();
  c.cache_tokens = usual_cache_tokens(c.context);
  if (auto ok =
        read(serve, "cache_tokens", core::page_tokens,
             core::serving::pages_max * core::page_tokens, c.cache_tokens);
      !ok)
    return ok.why();
  if (auto ok = read(serve, "pass_tokens", 1, core::serving::pass_tokens_max,
                     c.pass_tokens);
      !ok)
    return ok.why();
  if (auto ok =
        read(serve, "streams_max", 1, core::serving::rows_max, c.streams_max);
      !ok)
    return ok.why();
  if (auto ok = read(serve, "queue_max", 1, 1u << 20, c.queue_max); !ok)
    return ok.why();
  if (auto ok =
        read(serve, "speculate", 0, core::serving::guesses_max, c.speculate);
      !ok)
    return ok.why();
  if (auto ok = read(serve, "stored_bytes", 2, 4, c.stored_bytes); !ok)
    return ok.why();
  if (serve.contains("follows")) {
    const auto job = serve["follows"].is_string()
                       ? job_of_text(serve["follows"].get<std::string>())
                       : 0;
    if (job == 0)
      return failure{"serve.follows: is " + model::shown(serve["follows"])
                     + ", must be the id of a job"};
    c.follows = job;
  }
  if (auto ok = read(serve, "replicas_max", 0, core::limits::islands_max,
                     c.replicas_max);
      !ok)
    return ok.why();
  for (const auto& [key, into] : {std::pair("grow_after", &c.grow_after),
                                  std::pair("shrink_after", &c.shrink_after)})
    if (auto ok = read(serve, key, 1, times_max_s, *into); !ok)
      return ok.why();
  const auto word = [&](const char* key, const char* usual) {
    const auto at = serve.find(key);
    if (at == serve.end())
      return std::string(usual);
    return at->is_string() ? at->get<std::string>() : model::shown(*at);
  };
  const std::string kv = word("kv_type", "bf16");
  const auto type = model::kv_type_named(kv);
  if (!type)
    return failure{"serve.kv_type: is " + core::shown(kv)
                   + ", must be f32, bf16 or q8"};
  c.kv = *type;
  const std::string pooling = word("pooling", "last");
  if (pooling != "last" && pooling != "mean")
    return failure{"serve.pooling: is " + core::shown(pooling)
                   + ", must be last or mean"};
  c.pooled = pooling == "mean" ? core::pooling::mean : core::pooling::last;
  const std::string quantize = word("quantize", "stored");
  for (const kernels::weight_type t : weight_types)
    if (quantize == kernels::name_of(t))
      c.quantize = t;
  if (!c.quantize && quantize != "stored")
    return failure{"serve.quantize: is " + core::shown(quantize)
                   + ", must be stored, f32, bf16, q8 or q4"};
  return c;
}

std::uint64_t weight_bytes(const serve_config& c, std::uint32_t unit) {
  return model::unit_layout(c.model).unit_size(unit) * value_bytes_32(c) / 32;
}

/// Bytes of the experts of a block that this number of tokens does not need.
static std::uint64_t unread_bytes(const serve_config& c, std::uint64_t tokens) {
  const std::uint64_t experts = c.model.num_experts;
  const std::uint64_t read =
    std::min(experts, tokens * c.model.num_experts_per_tok);
  const std::uint64_t one = 3 * std::uint64_t(c.model.hidden_size)
                            * std::uint64_t(c.model.intermediate_size);
  return (experts - read) * one * value_bytes_32(c) / 32;
}

std::uint64_t block_cache_bytes(const serve_config& c) {
  const std::uint64_t pages = core::pages_for(c.cache_tokens);
  const core::window_pages windows = window_pages_of(c);
  const std::uint64_t blocks = c.model.num_hidden_layers;
  std::uint64_t sum = 0;
  for (std::uint64_t layer = 0; layer != blocks; ++layer)
    sum += windows.pages != 0 && model::window_of(c.model, layer) != 0
             ? windows.pages
             : pages;
  return (sum + blocks - 1) / blocks
         * model::paged_cache::page_bytes(c.model, 1, c.kv);
}

core::pass_costs pass_costs_of(const serve_config& c, std::uint64_t sequences,
                               std::uint64_t tokens, std::uint64_t context) {
  const model::unit_index head = model::unit_layout(c.model).head_unit();
  // A third of forward, B and W together. Logits are made of one token of each.
  const auto flops = [&](model::unit_index u, std::uint64_t count) {
    return count * model::unit_operations(c.model, u, context) / 3;
  };
  const std::uint64_t cached =
    core::pages_for(context) * model::paged_cache::page_bytes(c.model, 1, c.kv);
  core::pass_costs out;
  out.block_flops = flops(1, sequences * tokens);
  out.head_flops = flops(head, sequences);
  out.block_traffic_bytes = weight_bytes(c, 1)
                            - unread_bytes(c, sequences * tokens)
                            + sequences * cached;
  out.head_traffic_bytes = weight_bytes(c, head);
  out.boundary_bytes =
    4 * sequences * tokens * std::uint64_t(c.model.hidden_size);
  return out;
}

core::job_entry
serve_entry(const serve_config& c, std::string name, std::uint32_t pipelines) {
  const model::unit_index head = model::unit_layout(c.model).head_unit();
  core::job_entry e;
  e.name = std::move(name);
  e.kind = core::job_kind::serve;
  e.run_json = to_json(c);
  e.blocks = std::uint32_t(c.model.num_hidden_layers);
  e.microbatches = usual_passes;
  const core::pass_costs pass = pass_costs_of(c, usual_sequences, 1, c.context);
  e.block_flops = pass.block_flops;
  e.head_flops = pass.head_flops;
  e.block_state_bytes = weight_bytes(c, 1) + block_cache_bytes(c);
  e.embed_state_bytes = weight_bytes(c, 0);
  e.head_state_bytes = weight_bytes(c, head);
  e.block_traffic_bytes = weight_bytes(c, 1);
  e.head_traffic_bytes = weight_bytes(c, head);
  e.boundary_bytes = pass.boundary_bytes;
  // What a pass needs of memory while it runs: a few rows of the widest layer.
  e.activation_bytes =
    16 * c.pass_tokens * std::uint64_t(c.model.hidden_size) / usual_passes;
  if (c.follows != 0) // two versions may have requests at once
    for (std::uint64_t* state :
         {&e.block_state_bytes, &e.embed_state_bytes, &e.head_state_bytes})
      *state *= core::versions_max;
  e.want_replicas = 1;
  e.want_islands = pipelines;
  return e;
}

} // namespace shoal::runtime
