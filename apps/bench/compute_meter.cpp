// apps/bench/compute_meter.cpp -- measures computation against the machine's
// limits.
#include "apps/bench/compute_meter.hpp"

#include "apps/common/memory_size.hpp"
#include "kernels/backend.hpp"
#include "kernels/peaks.hpp"
#include "runtime/core/measure/median.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

namespace shoal::apps {

using kernels::peak;
using kernels::weight_type;

namespace {

using clock_type = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& call) {
  const auto start = clock_type::now();
  call();
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Alternating measurements of a value and its limit; their medians.
struct against {
  double value, limit;
};

/// Reports `what` before it begins, and each run in `unit`, scaled by `scale`.
struct told {
  std::string what, unit;
  double scale = 1;
};

against in_turns(const compute_options& o, const told& by,
                 const std::function<double()>& value,
                 const std::function<double()>& limit) {
  std::vector<double> values;
  double best = 0;
  o.say(by.what + ": warming up, then "
        + (o.runs == 1 ? "1 run" : std::to_string(o.runs) + " runs"));
  value();
  for (int run = 0; run != o.runs; ++run) {
    best = std::max(best, limit());
    values.push_back(value());
    best = std::max(best, values.back());
    char text[64];
    std::snprintf(text, sizeof text, ": run %d of %d: %.1f ", run + 1, o.runs,
                  values.back() / by.scale);
    o.say(by.what + text + by.unit);
  }
  return {core::median(values), std::max(best, limit())};
}

/// Values in [-1/16, 1/16): cheap, and without a pattern.
void fill_quickly(float* into, std::size_t count, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::size_t i = 0; i != count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    into[i] =
      static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-35f;
  }
}

kernels::packed_weight
random_weight(kernels::backend& on, weight_type type, std::size_t rows,
              std::size_t cols, std::uint64_t seed) {
  return on.pack_weight(type, rows, cols, [=](std::size_t row, float* into) {
    fill_quickly(into, cols, (seed << 24) + row);
  });
}

const model_shape& shape_of(const compute_options& o) {
  for (const model_shape& shape : model_shapes())
    if (shape.name == o.shape)
      return shape;
  throw std::runtime_error("no shape is called " + o.shape);
}

model::model_config config_of(const model_shape& s) {
  model::model_config c;
  c.model_type = s.family;
  c = model::family_of(c).usual;
  c.model_type = s.family;
  c.num_hidden_layers = s.layers;
  c.hidden_size = s.width;
  c.num_attention_heads = s.heads;
  c.num_key_value_heads = s.kv_heads;
  c.head_dim = s.width / s.heads;
  c.intermediate_size = s.hidden;
  c.vocab_size = s.vocabulary;
  c.tie_word_embeddings = s.tied;
  c.eos_token_ids.clear();
  return c;
}

/// A whole model with random weights of one type.
std::unique_ptr<model::inference_stage>
random_model(kernels::backend& on, const model_shape& shape, weight_type type) {
  const auto layout =
    std::make_shared<const model::unit_layout>(config_of(shape));
  std::vector<model::inference_unit> units;
  const model::family& kind = model::family_of(layout->config());
  std::uint64_t seed = 0;
  for (model::unit_index u = 0; u != layout->unit_count(); ++u) {
    std::vector<kernels::packed_weight> tensors;
    for (const model::tensor_info& t : layout->tensors_of(u)) {
      const bool vector = t.shape.size() == 1;
      // For inference every weight is [out, in].
      const std::size_t turned =
        kind.in_out_weights && u != 0 && u != layout->head_unit() ? 1 : 0;
      if (t.copy_of)
        tensors.push_back(units.front().matrix(0));
      else
        tensors.push_back(random_weight(
          on, vector ? weight_type::f32 : type, vector ? 1 : t.shape[turned],
          vector ? t.size : t.shape[1 - turned], ++seed));
    }
    units.emplace_back(layout, u, std::move(tensors));
  }
  return std::make_unique<model::inference_stage>(std::move(units), on);
}

/// The model for a measurement of prefill or decode.
struct measured_model {
  std::unique_ptr<model::inference_stage> stage;
  weight_type type; ///< of the matrices of blocks
  std::string name;
};

/// The models to measure, one at a time: each is destroyed before the next is
/// made.
std::vector<std::function<measured_model()>>
models_of(kernels::backend& on, const compute_options& o) {
  std::vector<std::function<measured_model()>> out;
  if (o.model.empty()) {
    for (const weight_type type : o.types)
      out.emplace_back([&on, &o, type] {
        return measured_model{random_model(on, shape_of(o), type), type,
                              o.shape + " " + kernels::name_of(type)};
      });
    return out;
  }
  std::vector<model::weight_choice> choices(o.types.begin(), o.types.end());
  if (choices.empty())
    choices.emplace_back(); // as stored
  for (const model::weight_choice& choice : choices)
    out.emplace_back([&on, &o, choice] {
      auto loaded = model::load_for_inference(o.model, choice, on);
      if (!loaded)
        throw std::runtime_error(loaded.message());
      const auto block = loaded->layout->tensors_of(1);
      const auto matrix = std::ranges::find_if(
        block, [](const model::tensor_info& t) { return t.shape.size() == 2; });
      const weight_type type =
        loaded->units[1].matrix(std::size_t(matrix - block.begin())).type();
      return measured_model{
        std::make_unique<model::inference_stage>(std::move(loaded->units), on),
        type, o.model + " " + kernels::name_of(type)};
    });
  return out;
}

/// A cache for this number of tokens of one sequence.
model::paged_cache cache_of(const measured_model& m, std::size_t tokens) {
  const auto most = m.stage->config().max_position_embeddings;
  if (tokens > most)
    throw std::runtime_error(m.name + ": has " + std::to_string(most)
                             + " positions; asked for "
                             + std::to_string(tokens));
  return {*m.stage, core::pages_for(tokens), model::usual_kv_type(*m.stage)};
}

std::string name_of(peak which) {
  const char* const type = which == peak::f32     ? "f32"
                           : which == peak::bf16  ? "bf16"
                           : which == peak::int16 ? "int16"
                                                  : "int8";
  return std::string(type) + " " + instruction_of(which);
}

/// 10^9 operations a second; multiplications and additions each count.
const char* unit_of(peak which) {
  return which == peak::f32 || which == peak::bf16 ? "GFLOP/s" : "GOP/s";
}

std::string called(const compute_options& o, weight_type type) {
  return o.shape + " " + kernels::name_of(type);
}

} // namespace

const std::vector<model_shape>& model_shapes() {
  static const std::vector<model_shape> shapes{
    {"tiny1b", 22, 2048, 32, 4, 5632, 32000, false},
    {"gpt2-124m", 12, 768, 12, 12, 3072, 50257, true, "gpt2"},
    {"llama-30m", 8, 512, 8, 8, 1376, 8192, true},
  };
  return shapes;
}

std::vector<compute_figure>
measure_memory(kernels::thread_team& team, const compute_options& o) {
  std::vector<compute_figure> out;
  kernels::read_meter memory;
  kernels::thread_team alone(1);
  std::vector<double> one, all;
  for (int run = 0; run != o.runs; ++run) {
    one.push_back(memory.measure(alone));
    all.push_back(memory.measure(team));
  }
  out.push_back({"read, 1 thread", 1, core::median(one) / 1e9, "GB/s", 0, ""});
  if (team.size() > 1)
    out.push_back({"read, " + std::to_string(team.size()) + " threads",
                   team.size(), core::median(all) / 1e9, "GB/s", 0, ""});
  const std::pair<peak, const char*> peaks[] = {{peak::f32, "f32"},
                                                {peak::bf16, "bf16"},
                                                {peak::int16, "int16"},
                                                {peak::int8, "int8"}};
  for (const auto& [which, name] : peaks) {
    std::vector<double> rates;
    for (int run = 0; run != o.runs; ++run)
      rates.push_back(measure_peak(team, which));
    const auto by = instruction_of(which);
    if (!by.empty())
      out.push_back({std::string(name) + " peak, " + by, team.size(),
                     core::median(rates) / 1e9, unit_of(which), 0, ""});
  }
  return out;
}

std::vector<compute_figure>
measure_gemm(kernels::thread_team& team, const compute_options& o) {
  const auto on = kernels::make_cpu_backend(team);
  std::vector<compute_figure> out;
  const auto measure = [&](std::size_t rows, std::size_t width,
                           const std::string& type, peak which,
                           const auto& product) {
    const double work = 2.0 * double(rows) * double(width) * double(width);
    std::vector<float> x(rows * width), y(rows * width);
    fill_quickly(x.data(), x.size(), 1);
    const auto by = std::to_string(width);
    const std::string what =
      std::to_string(rows) + " x " + by + " x " + by + " " + type;
    const auto [value, limit] = in_turns(
      o, {what, unit_of(which), 1e9},
      [&] {
        return work / seconds_of([&] {
                 product(
                   kernels::matrix_view<float>(y.data(), rows, width),
                   kernels::matrix_view<const float>(x.data(), rows, width));
               });
      },
      [&] { return measure_peak(team, which); });
    out.push_back({what, team.size(), value / 1e9, unit_of(which), limit / 1e9,
                   name_of(which)});
  };
  for (const std::size_t side : {512, 1024}) {
    std::vector<float> w(side * side);
    fill_quickly(w.data(), w.size(), 2);
    measure(side, side, "f32, trained", peak::f32, [&](auto y_TO, auto x_TI) {
      on->matmul(y_TO, x_TI, {w.data(), side, side});
    });
  }
  constexpr std::size_t width = 2048;
  for (const weight_type type : o.types) {
    const auto w = random_weight(*on, type, width, width, 2);
    measure(o.prompt, width, kernels::name_of(type), peak_of_products(type),
            [&](auto y_TO, auto x_TI) { on->packed_matmul(y_TO, x_TI, w); });
  }
  return out;
}

std::vector<compute_figure>
measure_prefill(kernels::thread_team& team, const compute_options& o) {
  const auto on = kernels::make_cpu_backend(team);
  std::vector<compute_figure> out;
  for (const auto& make : models_of(*on, o)) {
    const measured_model m = make();
    const auto words = m.stage->config().vocab_size;
    // Only the products of the blocks: the head is computed for the last token
    // only.
    const double work = 2 * double(m.stage->block_products());
    auto cache = cache_of(m, o.prompt);
    std::vector<model::token_id> ids(o.prompt);
    for (std::size_t i = 0; i != ids.size(); ++i)
      ids[i] = model::token_id(i * 7919 % words);
    std::vector<float> logits(words);
    const peak which = peak_of_products(m.type);
    const std::string what = m.name + ", prompt of " + std::to_string(o.prompt);
    const auto [value, limit] = in_turns(
      o, {what, "tokens/s"},
      [&] {
        const auto prompt = model::one_sequence(0, ids.size(), 1);
        return double(ids.size()) / seconds_of([&] {
                 cache.compute(prompt, ids, {}, {}, logits);
               });
      },
      [&] { return measure_peak(team, which) / work; });
    out.push_back(
      {what, team.size(), value, "tokens/s", limit, name_of(which)});
  }
  return out;
}

std::vector<compute_figure>
measure_decode(kernels::thread_team& team, const compute_options& o) {
  const auto on = kernels::make_cpu_backend(team);
  std::vector<compute_figure> out;
  kernels::read_meter memory;
  for (const auto& make : models_of(*on, o)) {
    const measured_model m = make();
    const auto words = m.stage->config().vocab_size;
    const auto bytes = double(m.stage->bytes_per_token());
    auto cache = cache_of(m, o.tokens);
    std::vector<float> logits(words);
    const auto [value, limit] = in_turns(
      o, {m.name, "tokens/s"},
      [&] {
        return double(o.tokens) / seconds_of([&] {
                 for (std::size_t t = 0; t != o.tokens; ++t) {
                   const auto id = model::token_id(t * 7919 % words);
                   cache.compute(model::one_sequence(t, 1, 1), {&id, 1}, {}, {},
                                 logits);
                 }
               });
      },
      [&] { return memory.measure(team) / bytes; });
    out.push_back(
      {m.name, team.size(), value, "tokens/s", limit, "memory read"});
  }
  return out;
}

namespace {

/// A model that is trained on the same tokens repeatedly.
class trained_model {
public:
  static constexpr std::size_t sequences = 4, length = 256;

  trained_model(kernels::backend& on, const model::model_config& config,
                kernels::factor_type factors)
    : on_(on), layout_(std::make_shared<const model::unit_layout>(config)) {
    std::vector<model::unit_state*> units;
    for (model::unit_index u = 0; u != layout_->unit_count(); ++u) {
      states_.push_back(std::make_unique<model::unit_state>(
        layout_, u, model::purpose::training));
      model::initialise(*states_.back(), 1);
      units.push_back(states_.back().get());
    }
    stage_ = std::make_unique<model::stage_model>(units, on_, factors);
    for (std::size_t i = 0; i != ids_.size(); ++i)
      ids_[i] = model::token_id(i * 7919 % config.vocab_size);
  }

  void step() {
    model::forward_work f;
    f.sequences = sequences;
    f.tokens = length;
    f.ids = f.targets = ids_;
    f.loss_scale = 1.0f / float(ids_.size());
    for (auto& state : states_)
      state->zero_gradients(on_);
    stage_->forward(f);
    stage_->input_gradient(0, {}, {});
    stage_->weight_gradient(0);
    if (const auto tied = layout_->tied()) {
      auto& first = *states_.front();
      auto& last = *states_.back();
      model::sum_tied(first.tensor(first.gradients(), tied->embedding),
                      last.tensor(last.gradients(), tied->head), on_);
    }
    kernels::adamw_options how;
    how.step = ++steps_;
    how.learning_rate = 1e-5;
    for (auto& state : states_)
      apply(*state, on_, how);
  }

  std::size_t tokens() const { return ids_.size(); }
  /// Operations for one token.
  double work() const {
    double sum = 0;
    for (model::unit_index u = 0; u != layout_->unit_count(); ++u)
      sum += double(unit_operations(layout_->config(), u, length));
    return sum;
  }

private:
  kernels::backend& on_;
  std::shared_ptr<const model::unit_layout> layout_;
  std::vector<std::unique_ptr<model::unit_state>> states_;
  std::unique_ptr<model::stage_model> stage_;
  std::vector<model::token_id> ids_ =
    std::vector<model::token_id>(sequences * length);
  std::uint64_t steps_ = 0;
};

} // namespace

std::vector<compute_figure>
measure_train(kernels::thread_team& team, const compute_options& o) {
  const auto on = kernels::make_cpu_backend(team);
  std::vector<compute_figure> out;
  for (const weight_type type : {weight_type::f32, weight_type::bf16}) {
    if (std::ranges::find(o.types, type) == o.types.end())
      continue;
    const bool rounded = type == weight_type::bf16;
    const std::string what = called(o, type) + ", 4 x 256";
    const auto config = config_of(shape_of(o));
    const auto parameters = model::unit_layout(config).parameter_count();
    // Parameters, gradients and two moments, four bytes each.
    o.say(what + ": " + std::to_string(parameters / 1'000'000)
          + " million parameters, " + memory_text(16 * parameters)
          + " with gradients and moments");
    trained_model trained(*on, config,
                          rounded ? kernels::factor_type::bf16
                                  : kernels::factor_type::f32);
    const peak which = peak_of_products(type);
    const auto [value, limit] = in_turns(
      o, {what, "tokens/s"},
      [&] {
        return double(trained.tokens()) / seconds_of([&] { trained.step(); });
      },
      [&] { return measure_peak(team, which) / trained.work(); });
    out.push_back(
      {what, team.size(), value, "tokens/s", limit, name_of(which)});
  }
  return out;
}

} // namespace shoal::apps
