// apps/model/cmd_model.cpp -- generate, eval, init: one model on this machine.
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/common/report.hpp"
#include "apps/model/text_grammar.hpp"
#include "apps/submit/run_file.hpp"
#include "apps/terminal/slow_work.hpp"
#include "apps/train/model_folder.hpp"
#include "apps/train/out_folder.hpp"
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/mapped_file.hpp"
#include "runtime/host/host_limits.hpp"
#include "runtime/model/decode/evaluate.hpp"
#include "runtime/model/decode/generate.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <thread>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

/// The CPU with this number of threads; 0: as many as this process may use.
struct local_device {
  explicit local_device(int threads)
    : team(threads > 0
             ? unsigned(threads)
             : unsigned(runtime::usable_threads(runtime::read_host_limits()))),
      backend(kernels::make_cpu_backend(team)) {}
  kernels::thread_team team;
  std::unique_ptr<kernels::backend> backend;
};

model::weight_choice choice_of(const std::string& quantize) {
  using enum kernels::weight_type;
  for (const auto type : {bf16, q8, q4})
    if (quantize == name_of(type))
      return type;
  return std::nullopt;
}

void warn_of_unused(const std::filesystem::path& folder) {
  if (const auto unused = model::unused_tensors(folder); !unused.empty())
    std::cerr << "shoal: " << unused << "\n";
}

/// Why the tokenizer that lies beside a model cannot be used, or nothing: there
/// is none, or it can.
template <class Directory>
std::string
damaged_tokenizer(const std::filesystem::path& folder, const Directory& model) {
  std::error_code error;
  return model.tokenizer
             || !std::filesystem::exists(folder / "tokenizer.json", error)
           ? std::string()
           : "the model's tokenizer cannot be used: " + model.no_text;
}

/// Null if there is none. Reports the settings of its file that are not
/// supported.
template <class Directory>
const model::tokenizer* tokenizer_of(const Directory& directory) {
  if (!directory.tokenizer)
    return nullptr;
  for (const std::string& notice : directory.tokenizer->notices())
    std::cerr << "shoal: " << notice << "\n";
  return &*directory.tokenizer;
}

const char* name_of(model::finish_reason r) {
  switch (r) {
  case model::finish_reason::none:
    return "none";
  case model::finish_reason::length:
    return "length";
  case model::finish_reason::stop:
    return "stop";
  case model::finish_reason::aborted:
    return "aborted";
  }
  return "none";
}

/// The reason as text. @param full the model has no position for another token
const char* why_ended(model::finish_reason r, bool full) {
  switch (r) {
  case model::finish_reason::length:
    return full ? "stopped: the model's context is full"
                : "stopped: --max-tokens reached";
  case model::finish_reason::stop:
    return "the text is at its end";
  case model::finish_reason::none:
  case model::finish_reason::aborted:
    break;
  }
  return "aborted";
}

model::result<std::vector<model::token_id>>
prompt_of(const generate_command& o, const model::inference_directory& m) {
  std::vector<model::token_id> ids;
  if (!o.prompt_ids.empty()) {
    const json list = model::parse_json<json>("[" + o.prompt_ids + "]");
    if (!list.is_array() || list.empty())
      return model::failure{"--prompt-ids is '" + o.prompt_ids
                            + "'; expected ids such as 5,6,7"};
    for (const json& id : list) {
      if (!id.is_number_unsigned()
          || id.get<std::uint64_t>() >= m.config.vocab_size)
        return model::failure{"--prompt-ids: " + model::shown(id)
                              + " is not below the vocabulary's "
                              + std::to_string(m.config.vocab_size)};
      ids.push_back(id.get<model::token_id>());
    }
    return ids;
  }
  if (!m.tokenizer)
    return model::failure{"the model has no tokenizer: use --prompt-ids ("
                          + m.no_text + ")"};
  auto encoded = model::text_encoder(*m.tokenizer).encode(*o.prompt);
  if (!encoded)
    return model::failure{"--prompt: " + encoded.message()};
  ids = std::move(*encoded);
  if (ids.empty())
    return model::failure{
      "--prompt is empty, and this model's tokenizer has no "
      "token for the beginning of a text: give at least "
      "one character"};
  return ids;
}

} // namespace

namespace {

/// The flag's value, else that of the model's maker, else our default.
template <class Value, class Flag>
Value first_of(const std::optional<Flag>& flag,
               const std::optional<Value>& said, Value usual) {
  return flag ? static_cast<Value>(*flag) : said.value_or(usual);
}

model::generate_options
options_of(const generate_command& o, const model::generation_defaults& said) {
  model::generate_options out;
  out.max_tokens = first_of(o.max_tokens, said.max_tokens, std::size_t(128));
  out.temperature = first_of(o.temperature, said.temperature, 0.8f);
  out.top_k = first_of(o.top_k, said.top_k, 0u);
  out.top_p = first_of(o.top_p, said.top_p, 1.0f);
  out.min_p = first_of(o.min_p, said.min_p, 0.0f);
  out.repetition_penalty =
    first_of(o.repetition_penalty, said.repetition_penalty, 1.0f);
  out.eos_token_ids = said.eos_token_ids;
  out.seed = o.seed;
  out.stop = o.stop;
  return out;
}

const runtime::json_table<model::generated_token>& token_table() {
  using t = const model::generated_token&;
  static const runtime::json_table<model::generated_token> table{
    {"event", "text", "", "`token`", [](t) { return json("token"); }},
    {"id", "whole number", "", "of the token", [](t v) { return json(v.id); }},
    {"logprob", "number", "nats",
     "of the model, before temperature and filters",
     [](t v) { return json(v.logprob); }},
    {"text", "text", "",
     "that can be printed now; empty while a character or a stop text may be "
     "half there",
     [](t v) { return json(v.text); }}};
  return table;
}

/// The result of a generation.
struct generation {
  const model::generated& is;
  std::size_t prompt_tokens;
  bool context_full; ///< the model has no position for another token
  double prefill_s;
  double tokens_per_s;
};

const runtime::json_table<generation>& generation_table() {
  using g = const generation&;
  static const runtime::json_table<generation> table{
    {"event", "text", "", "`done`", [](g) { return json("done"); }},
    {"finish_reason", "text", "",
     "`length`, `stop` (end of text, or --stop) or `aborted` (nobody reads)",
     [](g v) { return json(name_of(v.is.finish)); }},
    {"context_full", "true or false", "",
     "whether the model has no position for another token",
     [](g v) { return json(v.context_full); }},
    {"prompt_tokens", "whole number", "tokens", "of the prompt",
     [](g v) { return json(v.prompt_tokens); }},
    {"tokens", "whole number", "tokens", "that were generated",
     [](g v) { return json(v.is.ids.size()); }},
    {"ids", "list of whole numbers", "", "their ids",
     [](g v) { return json(v.is.ids); }},
    {"logprobs", "list of numbers", "nats", "one for each",
     [](g v) { return json(v.is.logprobs); }},
    {"text", "text", "", "all of it", [](g v) { return json(v.is.text); }},
    {"prefill_seconds", "number", "s", "until the first token",
     [](g v) { return json(v.prefill_s); }},
    {"tokens_per_s", "number", "tokens/s", "from the first token on",
     [](g v) { return json(v.tokens_per_s); }}};
  return table;
}

} // namespace

std::vector<runtime::event_text> generate_events() {
  return {{"token", "one more token", runtime::texts_of(token_table())},
          {"done", "no token follows", runtime::texts_of(generation_table())}};
}

int run_generate(const generate_command& given) {
  if (given.prompt.has_value() != given.prompt_ids.empty())
    return fail(given.prompt ? "--prompt excludes --prompt-ids"
                             : "generate needs --prompt or --prompt-ids",
                exit_usage);
  const auto found = model_in(given.model);
  if (!found)
    return fail(found.message());
  generate_command o = given;
  o.model = *found;
  const auto said = model::load_generation_config(o.model);
  if (!said)
    return fail(said.message());
  auto options = options_of(o, *said);
  if (auto good = model::check(options); !good)
    return fail(good.message(), exit_usage);
  model::explain_truncation();
  local_device on(o.threads);
  auto m =
    model::load_for_inference(o.model, choice_of(o.quantize), *on.backend);
  if (!m)
    return fail(m.message());
  warn_of_unused(o.model);
  const model::tokenizer* const tokenizer = tokenizer_of(*m);
  if (const std::string why = damaged_tokenizer(o.model, *m);
      o.prompt && !why.empty())
    return fail(why);
  auto prompt = prompt_of(o, *m);
  if (!prompt)
    return fail(prompt.message(), exit_usage);
  if (auto fits = model::check_prompt(m->config, *prompt); !fits)
    return fail(fits.message());
  auto grammar = grammar_of(o, tokenizer, m->config.vocab_size);
  if (!grammar)
    return fail(grammar.message(), exit_usage);
  options.only = *std::move(grammar);
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  auto first = began;
  std::size_t count = 0;
  // A file gets the model's bytes; a terminal gets only safe text.
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const auto shown = [terminal](const std::string& text) {
    return terminal ? core::shown(text, core::line_ends::kept) : text;
  };
  if (!o.json && o.prompt)
    std::cout << shown(*o.prompt) << std::flush;
  model::inference_stage stage(std::move(m->units), *on.backend);
  auto result = model::generate(
    stage, tokenizer, *prompt, options,
    [&](const model::generated_token& t) {
      if (count++ == 0)
        first = clock::now();
      if (o.json)
        std::cout << model::json_text(runtime::written(token_table(), t))
                  << "\n";
      else if (tokenizer != nullptr)
        std::cout << shown(t.text) << std::flush;
      else
        std::cout << (count > 1 ? "," : "") << t.id << std::flush;
      return bool(std::cout);
    },
    model::kv_type_named(o.kv_type));
  if (!result)
    return fail(result.message());
  const auto seconds = [](auto d) {
    return std::chrono::duration<double>(d).count();
  };
  const double prefill = seconds(first - began);
  const double decode = seconds(clock::now() - first);
  const bool full =
    result->finish == model::finish_reason::length
    && prompt->size() + result->ids.size() >= m->config.max_position_embeddings;
  const double rate = count > 1 && decode > 0 ? double(count - 1) / decode : 0;
  if (o.json) {
    std::cout << model::json_text(runtime::written<generation>(
      generation_table(), {*result, prompt->size(), full, prefill, rate}))
              << "\n";
  } else {
    std::cout << std::endl; // before the following lines on stderr
    std::fprintf(stderr, "[%s from a %zu-token prompt, %.0f tokens/s; %s]\n",
                 core::count_text(result->ids.size(), "token").c_str(),
                 prompt->size(), rate, why_ended(result->finish, full));
  }
  return exit_done;
}

namespace {

/// The result of an evaluation, and its settings.
struct evaluated {
  model::evaluation found;
  std::uint64_t window = 0;   ///< tokens
  double bits_per_byte = 0;   ///< NaN: unknown
  double bits_per_weight = 0; ///< of the matrices
};

/// Number of tokens per window: as in training, if that is known, so that the
/// loss equals the one shown in training.
model::result<std::uint64_t>
eval_window(const eval_command& o, const model::model_config& config) {
  const std::uint64_t most = config.max_position_embeddings;
  const std::uint64_t trained = config.notes.seq_len;
  if (o.window.value_or(0) > most)
    return model::failure{"--window is " + std::to_string(*o.window)
                          + ", but the model's max_position_embeddings is "
                          + std::to_string(most)};
  if (o.window)
    return *o.window;
  const std::uint64_t window =
    std::min(most, trained < 2 ? model::window_usual : trained);
  std::cerr << "shoal: windows of " << window << " tokens, "
            << (trained >= 2    ? "as in training"
                : window < most ? "fewer than the model's "
                                    + std::to_string(most) + " positions"
                                : "as many as the model has positions")
            << " (--window N: others)\n";
  return window;
}

/// Shows the progress of slow work on stderr.
model::watch watch_on(slow_work& slow) {
  return [&slow](std::string_view what, std::uint64_t n, std::uint64_t all) {
    slow.at(what, n, all);
    return true;
  };
}

/// The sequences of --data. Reports what is left out.
model::result<model::text_sequences>
sequences_of(const eval_command& o, const model::model_config& config,
             const model::tokenizer* by, const std::string& no_text,
             std::uint64_t window) {
  model::reading_report report;
  slow_work slow;
  model::sequence_limits limits;
  limits.documents = o.limit.value_or(limits.documents);
  limits.windows = o.chunks.value_or(limits.windows);
  limits.window = window;
  if (by != nullptr
      && (config.notes.seq_len == 0 || config.notes.end_of_text)) {
    auto ends = model_ends(*by, config, o.model);
    if (!ends)
      return ends.why();
    limits.ends = *std::move(ends);
  }
  auto sequences = model::read_sequences(o.data, config, by, no_text, limits,
                                         &report, watch_on(slow));
  slow.settle();
  for (const std::string& notice : model::notices_of(report))
    std::cerr << "shoal: " << notice << "\n";
  return sequences;
}

/// Evaluates with either kind of stage.
template <class Stage>
evaluated evaluate_on(Stage& stage, const model::text_sequences& text,
                      std::uint64_t window, double bits_per_weight) {
  slow_work slow;
  const auto found = model::evaluate(stage, text.all, window, watch_on(slow));
  return {found, window, model::bits_per_byte(found, text.tokens, text.bytes),
          bits_per_weight};
}

/// With the arithmetic of training.
model::result<evaluated>
evaluate_floats(const eval_command& o, kernels::backend& device) {
  auto m = model::load_directory(o.model);
  if (!m)
    return m.why();
  warn_of_unused(o.model);
  if (const auto files = model::find_files(o.data); !files)
    return files.why();
  const auto window = eval_window(o, m->config);
  if (!window)
    return window.why();
  const auto sequences =
    sequences_of(o, m->config, tokenizer_of(*m), m->no_text, *window);
  if (!sequences) {
    const std::string why = damaged_tokenizer(o.model, *m);
    return why.empty() ? sequences.why() : model::failure{why};
  }
  std::vector<model::unit_state*> units;
  for (model::unit_state& u : m->units)
    units.push_back(&u);
  model::stage_model stage(std::move(units), device);
  return evaluate_on(stage, *sequences, *window, 8 * sizeof(float));
}

double bits_per_weight(const std::vector<model::inference_unit>& units) {
  double bits = 0;
  double weights = 0;
  for (const model::inference_unit& unit : units) {
    const auto tensors = unit.layout().tensors_of(unit.unit());
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].shape.size() == 2) {
        bits += 8 * double(unit.matrix(i).bytes());
        weights += double(tensors[i].size);
      }
  }
  return bits / weights;
}

/// With the arithmetic of generation.
model::result<evaluated>
evaluate_packed(const eval_command& o, kernels::backend& device) {
  auto m = model::load_for_inference(o.model, choice_of(o.quantize), device);
  if (!m)
    return m.why();
  warn_of_unused(o.model);
  if (const auto files = model::find_files(o.data); !files)
    return files.why();
  const auto window = eval_window(o, m->config);
  if (!window)
    return window.why();
  const auto sequences =
    sequences_of(o, m->config, tokenizer_of(*m), m->no_text, *window);
  if (!sequences) {
    const std::string why = damaged_tokenizer(o.model, *m);
    return why.empty() ? sequences.why() : model::failure{why};
  }
  const double bits = bits_per_weight(m->units);
  model::inference_stage stage(std::move(m->units), device);
  return evaluate_on(stage, *sequences, *window, bits);
}

const runtime::json_table<evaluated>& eval_table() {
  using e = const evaluated&;
  static const runtime::json_table<evaluated> table{
    {"loss", "number or null", "nats", "mean over the tokens",
     [](e v) { return json(v.found.loss); }},
    {"perplexity", "number or null", "", "e to the power of the loss",
     [](e v) { return json(v.found.perplexity); }},
    {"bits_per_byte", "number or null", "bits",
     "for a byte of the text, by which models with other tokenizers compare; "
     "null: the model has no tokenizer",
     [](e v) { return json(v.bits_per_byte); }},
    {"tokens", "whole number", "tokens", "that were predicted",
     [](e v) { return json(v.found.tokens); }},
    {"window", "whole number", "tokens", "that were read together, at most",
     [](e v) { return json(v.window); }},
    {"stride", "whole number", "tokens",
     "from one window to the next: as many, so windows do not overlap",
     [](e v) { return json(v.window); }},
    {"bits_per_weight", "number", "bits", "of the matrices",
     [](e v) { return json(v.bits_per_weight); }}};
  return table;
}

void print(const evaluated& v) {
  std::printf("loss %.6f nats  perplexity %.4f", core::printable(v.found.loss),
              core::printable(v.found.perplexity));
  if (!std::isnan(v.bits_per_byte))
    std::printf("  %.4f bits per byte", v.bits_per_byte);
  std::printf("\n%llu tokens predicted, in windows of at most %llu that do not "
              "overlap (stride %llu); weights of %.2f bits\n",
              (unsigned long long)v.found.tokens, (unsigned long long)v.window,
              (unsigned long long)v.window, v.bits_per_weight);
}

} // namespace

std::vector<runtime::field_text> eval_fields() {
  return runtime::texts_of(eval_table());
}

int run_eval(const eval_command& given) {
  const auto found = model_in(given.model);
  if (!found)
    return fail(found.message());
  eval_command o = given;
  o.model = *found;
  model::explain_truncation();
  local_device on(o.threads);
  const auto outcome = o.quantize.empty() ? evaluate_floats(o, *on.backend)
                                          : evaluate_packed(o, *on.backend);
  if (!outcome)
    return fail(outcome.message());
  const model::evaluation& e = outcome->found;
  if (e.tokens == 0)
    return fail("--data has no sequence of two tokens or more");
  if (o.json)
    std::cout << model::json_text(runtime::written(eval_table(), *outcome))
              << "\n";
  else
    print(*outcome);
  if (!std::isfinite(e.loss))
    return fail("the loss is no number: the run has diverged that made "
                + o.model.string() + ", or its weights are damaged");
  return exit_done;
}

int run_init(const init_options& o) {
  int code = exit_usage;
  auto run = load_run_without_text(o.run, &code);
  if (!run)
    return fail(run.message(), code);
  if (run->data_tokenizer == "bpe")
    return fail("data.tokenizer = \"bpe\" is trained on text, and `init` reads "
                "none: `shoal train --tokenizer bpe` makes the tokenizer and a "
                "model for it",
                exit_usage);
  out_request request;
  request.folder = o.out;
  request.what = out_request::purpose::new_model;
  request.run = *run;
  request.overwrite = o.overwrite;
  // Its lock is released when the command ends; the model stays.
  const auto folder = out_folder::open(std::move(request));
  if (!folder)
    return fail(folder.message());
  auto layout = std::make_shared<const model::unit_layout>(run->model);
  std::vector<model::unit_state> units;
  slow_work slow;
  for (model::unit_index u = 0; u < layout->unit_count(); ++u) {
    slow.at("making weights", u, layout->unit_count());
    units.emplace_back(layout, u, model::purpose::serving);
    model::initialise(units.back(), std::uint64_t(run->seed));
  }
  model::save_options options;
  options.byte_tokenizer = run->data_tokenizer == "bytes";
  if (auto claimed = (*folder)->claim({}); !claimed)
    return fail(claimed.message());
  for (const std::string& notice : (*folder)->take_notices())
    std::printf("%s\n", notice.c_str());
  slow.at("writing weights", 0, 1);
  const auto saved =
    model::save_directory((*folder)->path(), *layout,
                          std::span<const model::unit_state>(units), options);
  slow.settle();
  if (!saved)
    return fail(saved.message());
  std::printf("%s: %llu parameters\n", o.out.c_str(),
              (unsigned long long)layout->parameter_count());
  return exit_done;
}

} // namespace shoal::apps
