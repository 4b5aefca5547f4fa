// apps/plan/served_plan.cpp -- pipelines in numbers and in rows.
#include "apps/plan/served_plan.hpp"

#include "apps/common/memory_size.hpp"
#include "apps/plan/plan_words.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/jobs/plan_json.hpp"
#include "runtime/jobs/unheld_roles.hpp"

#include <algorithm>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using runtime::json_table;

namespace {

struct served_stage {
  std::string peer;
  const core::stage_place* is = nullptr;
  std::uint64_t weights = 0, cache = 0, needs = 0, has = 0;
};

struct served_pipeline {
  std::string why_waiting;
  std::vector<served_stage> stages;
  double first_token = 0;    ///< s
  double one_stream = 0;     ///< tokens/s
  double all_streams = 0;    ///< tokens/s
  std::uint64_t streams = 0; ///< that make the latter
};

std::uint64_t prompt_of(const planned_serving& p) {
  return std::min(planned_prompt, p.model.context);
}

double seconds(core::nanoseconds ns) {
  return double(std::max<core::nanoseconds>(ns, 1)) / 1e9;
}

void set_times(const planned_serving& p, const core::island_place& at,
               served_pipeline& out) {
  const core::job_entry* job = core::find_job(p.view, p.place.job);
  const auto times = [&](std::uint64_t sequences, std::uint64_t tokens) {
    return core::times_of_pass(
      p.view, *job, at,
      runtime::pass_costs_of(p.model, sequences, tokens, prompt_of(p)));
  };
  const std::uint64_t stages = out.stages.size();
  // A long prompt is computed in pieces, one behind the other.
  const std::uint64_t piece = std::min(prompt_of(p), p.model.pass_tokens);
  const std::uint64_t pieces = (prompt_of(p) + piece - 1) / piece;
  const core::pass_times prompt = times(1, piece);
  out.first_token =
    seconds(prompt.through + core::nanoseconds(pieces - 1) * prompt.apart);
  out.one_stream = 1 / seconds(times(1, 1).through);
  out.streams = std::clamp<std::uint64_t>(
    p.model.cache_tokens / prompt_of(p), 1,
    std::min(p.model.streams_max, runtime::usual_sequences * stages));
  const std::uint64_t passes = std::min(stages, out.streams);
  const core::pass_times many = times(out.streams / passes, 1);
  out.streams = out.streams / passes * passes;
  out.all_streams =
    double(out.streams)
    / seconds(std::max(many.through, core::nanoseconds(passes) * many.apart));
}

std::vector<served_pipeline> pipelines_of(const planned_serving& p) {
  const auto has = core::memory_for_jobs(p.view, p.view.previous);
  std::vector<served_pipeline> out;
  for (const core::island_place& at : p.place.islands) {
    served_pipeline& line = out.emplace_back();
    line.why_waiting = at.why_waiting;
    if (at.replicas.empty())
      continue;
    const auto& stages = at.replicas.front().stages;
    const core::prediction need = core::predict(p.view, p.place.job, at);
    for (const core::stage_place& s : stages) {
      served_stage& to = line.stages.emplace_back();
      to.peer = name_of(p.view, s.lead());
      to.is = &s;
      const std::uint64_t blocks = s.last_block - s.first_block;
      to.weights = blocks * runtime::weight_bytes(p.model, 1);
      if (&s == &stages.front())
        to.weights += runtime::weight_bytes(p.model, 0);
      if (&s == &stages.back())
        to.weights += runtime::weight_bytes(
          p.model, std::uint32_t(p.model.model.num_hidden_layers) + 1);
      to.cache = blocks * runtime::block_cache_bytes(p.model);
      for (const auto& n : need.members)
        if (n.where == s.lead())
          to.needs = n.bytes;
      if (const auto own = has.find(s.lead().peer); own != has.end())
        to.has = own->second;
    }
    set_times(p, at, line);
  }
  return out;
}

const json_table<served_stage>& served_stage_table() {
  using s = const served_stage&;
  static const json_table<served_stage> table{
    {"peer", "text", "", "name of the peer that computes this stage",
     [](s v) { return json(v.peer); }},
    {"first_layer", "whole number", "", "counted from 0",
     [](s v) { return json(v.is->first_block); }},
    {"last_layer", "whole number", "", "included",
     [](s v) { return json(std::int64_t{v.is->last_block} - 1); }},
    {"weights_bytes", "whole number", "bytes", "of its weights",
     [](s v) { return json(v.weights); }},
    {"cache_bytes", "whole number", "bytes", "of its part of the KV cache",
     [](s v) { return json(v.cache); }},
    {"needs_bytes", "whole number", "bytes",
     "that the peer needs for the pipeline: these, and what passes need",
     [](s v) { return json(v.needs); }},
    {"has_bytes", "whole number", "bytes",
     "that jobs may use there; 0: not known", [](s v) { return json(v.has); }}};
  return table;
}

const json_table<served_pipeline>& pipeline_table() {
  using l = const served_pipeline&;
  static const json_table<served_pipeline> table{
    {"waiting", "text or null", "", "why it runs nowhere",
     [](l v) { return v.stages.empty() ? json(v.why_waiting) : json(); }},
    {"stages", "list of objects", "", "in the order of the layers",
     [](l v) {
       json out = json::array();
       for (const served_stage& s : v.stages)
         out.push_back(runtime::written(served_stage_table(), s));
       return out;
     },
     runtime::texts_of(served_stage_table())},
    {"first_token_seconds", "number", "s",
     "predicted from a prompt to its first token",
     [](l v) { return json(v.first_token); }},
    {"stream_tokens_per_s", "number", "tokens/s",
     "predicted for a stream that is alone",
     [](l v) { return json(v.one_stream); }},
    {"tokens_per_s", "number", "tokens/s", "predicted for all its streams",
     [](l v) { return json(v.all_streams); }},
    {"streams", "whole number", "", "streams, of that prediction",
     [](l v) { return json(v.streams); }}};
  return table;
}

struct whole {
  const planned_serving& is;
  const std::vector<served_pipeline>& lines;
};

const json_table<whole>& served_whole_table() {
  using w = const whole&;
  static const json_table<whole> table{
    {"pipelines", "list of objects", "",
     "copies of the model that serve side by side",
     [](w v) {
       json out = json::array();
       for (const served_pipeline& line : v.lines)
         out.push_back(runtime::written(pipeline_table(), line));
       return out;
     },
     runtime::texts_of(pipeline_table())},
    {"parameters", "whole number", "", "of the model",
     [](w v) { return json(v.is.parameters); }},
    {"context", "whole number", "tokens", "of a prompt and its completion",
     [](w v) { return json(v.is.model.context); }},
    {"cache_tokens", "whole number", "tokens",
     "that the KV cache of a pipeline holds",
     [](w v) { return json(v.is.model.cache_tokens); }},
    {"kv_type", "text", "", "data type of the KV cache",
     [](w v) { return json(kernels::name_of(v.is.model.kv)); }},
    {"quantize", "text or null", "",
     "type to which weights are converted; null: as stored",
     [](w v) {
       return v.is.model.quantize ? json(kernels::name_of(*v.is.model.quantize))
                                  : json();
     }},
    {"prompt_tokens", "whole number", "tokens",
     "of the prompt of the predictions",
     [](w v) { return json(prompt_of(v.is)); }},
    {"tokens_per_s", "number", "tokens/s", "predicted for all pipelines",
     [](w v) {
       double sum = 0;
       for (const served_pipeline& line : v.lines)
         sum += line.all_streams;
       return json(sum);
     }},
    {"unheld", "list of objects", "", "wishes that the plan does not fulfil",
     [](w v) { return runtime::unheld_json(v.is.view, v.is.place); },
     runtime::unheld_fields()},
    {"idle", "list of objects", "", "peers without work for the model",
     [](w v) { return runtime::idle_json(v.is.view, v.is.place); },
     runtime::idle_fields()}};
  return table;
}

constexpr std::size_t peer_wide = 16;

std::string layers_text(const core::stage_place& s) {
  if (s.first_block >= s.last_block)
    return "-";
  const std::string first = std::to_string(s.first_block);
  return s.first_block + 1 == s.last_block
           ? first
           : first + "-" + std::to_string(s.last_block - 1);
}

std::string stage_rows(const std::vector<served_pipeline>& lines) {
  std::string out = text("%-16s %8s %5s %7s %9s %9s %19s\n", "PEER", "PIPELINE",
                         "STAGE", "LAYERS", "WEIGHTS", "CACHE", "NEEDS / HAS");
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::size_t s = 0; s < lines[i].stages.size(); ++s) {
      const served_stage& at = lines[i].stages[s];
      out +=
        text("%-16s %8zu %5zu %7s %9s %9s %19s\n",
             core::shown(at.peer, peer_wide).c_str(), i, s,
             layers_text(*at.is).c_str(), memory_text(at.weights).c_str(),
             memory_text(at.cache).c_str(),
             (memory_text(at.needs) + " / " + memory_text(at.has)).c_str());
    }
  return out;
}

/// "8.1 ms", "0.43 s", "12 s".
std::string time_text(double s) {
  if (s < 0.1)
    return text("%.3g ms", 1000 * s);
  return s < 10 ? text("%.2f s", s) : text("%.0f s", s);
}

/// "6.3 tokens/s", "303 tokens/s".
std::string tokens_text(double per_s) {
  return text(per_s < 100 ? "%.1f tokens/s" : "%.0f tokens/s", per_s);
}

std::string speed_rows(const std::vector<served_pipeline>& lines) {
  std::string out = text("%-8s %16s %22s %24s\n", "PIPELINE", "FIRST TOKEN",
                         "ONE STREAM", "ALL STREAMS");
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (const served_pipeline& at = lines[i]; !at.stages.empty())
      out +=
        text("%-8zu %16s %22s %24s\n", i, time_text(at.first_token).c_str(),
             tokens_text(at.one_stream).c_str(),
             (tokens_text(at.all_streams) + " of " + std::to_string(at.streams))
               .c_str());
  return out;
}

} // namespace

json served_plan_json(const planned_serving& p) {
  return runtime::written<whole>(served_whole_table(), {p, pipelines_of(p)});
}

std::vector<runtime::field_text> served_plan_fields() {
  return runtime::texts_of(served_whole_table());
}

std::string served_plan_table(const planned_serving& p) {
  const std::vector<served_pipeline> lines = pipelines_of(p);
  std::size_t placed = 0;
  double all = 0;
  for (const served_pipeline& line : lines) {
    placed += line.stages.empty() ? 0 : 1;
    all += line.all_streams;
  }
  std::string out = wrapped(core::large_text(double(p.parameters))
                            + " parameters served on " + core::shown(p.where)
                            + ": " + core::count_text(placed, "pipeline"));
  out += wrapped(
    "weights "
    + std::string(p.model.quantize ? kernels::name_of(*p.model.quantize)
                  : p.model.stored_bytes == 2 ? "of 16 bits"
                                              : "of 32 bits")
    + text("; context of %llu tokens; each pipeline has a cache of %llu "
           "tokens in %s",
           (unsigned long long)p.model.context,
           (unsigned long long)p.model.cache_tokens,
           kernels::name_of(p.model.kv)));
  out += wrapped("predicted: " + tokens_text(all)
                 + " in all; first tokens are those of prompts of "
                 + core::count_text(prompt_of(p), "token"));
  for (const core::unheld_wish& w : runtime::unheld_of(p.view, p.place))
    out += wrapped("not as asked: " + core::to_text(w));
  return out + idle_lines(p.view, p.place) + "\n" + speed_rows(lines) + "\n"
         + stage_rows(lines);
}

} // namespace shoal::apps
