// tests/runtime/model/stage_model_test.cpp -- stages: bits and gradients.
#include "kernels/cpu/isa/features.hpp"
#include "runtime/model/stage_model.hpp"
#include "tests/runtime/model/fixture.hpp"
#include "tests/support/tolerance.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>

BOOST_AUTO_TEST_SUITE(stage_model_suite)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

/// Two sequences of 13 tokens, with one target that is ignored.
struct sample {
  std::vector<token_id> ids;
  std::vector<token_id> targets;

  explicit sample(token_id seed) {
    for (token_id i = 0; i < 26; ++i) {
      ids.push_back((i * i * 7 + seed) % 61);
      targets.push_back((i * 5 + seed * 3) % 61);
    }
    targets[4] = -1;
  }
};

std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> out;
  for (const float value : values)
    out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

using kernels::factor_type;

/// Trains some steps of two microbatches. @returns losses and parameters.
struct trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<std::uint32_t> parameters;

  trained(const model_config& config, std::vector<unit_index> cuts,
          unsigned threads, factor_type factors = factor_type::f32,
          std::uint64_t steps = 4, const logits_budget& logits = {}) {
    model_rig rig(config, 5, std::move(cuts), threads, factors, logits);
    for (std::uint64_t step = 1; step <= steps; ++step) {
      rig.zero_gradients();
      double loss = 0;
      for (token_id m = 0; m < 2; ++m) {
        const sample s(static_cast<token_id>(step) * 2 + m);
        loss += rig.train(s.ids, s.targets, 2, 1.0f / 50);
      }
      losses.push_back(loss);
      kernels::adamw_options options;
      options.step = step;
      norms.push_back(rig.step(options, 0.5));
    }
    for (const auto& unit : rig.units) {
      const auto part = bits(unit.parameters());
      parameters.insert(parameters.end(), part.begin(), part.end());
    }
  }

  bool operator==(const trained&) const = default;
};

const std::vector<unit_index> layouts[] = {{2}, {1}, {4}, {1, 2, 3, 4}, {3, 4}};

void check_differences(model_config config) {
  // The loss jumps where a token changes its experts: here it uses all. The
  // balance of routers is no part of the reported loss.
  config.num_experts_per_tok = config.num_experts;
  config.router_aux_loss_coef = 0;
  const bool tied = config.tie_word_embeddings;
  model_rig rig(config, 9, {2});
  // Norms of 1 and biases of 0 would hide missing terms.
  for (auto& unit : rig.units)
    for (const tensor_info& t : rig.layout->tensors_of(unit.unit()))
      if (t.shape.size() == 1)
        for (std::size_t i = 0; i < t.size; ++i)
          unit.parameters()[t.offset + i] +=
            0.2f * std::sin(static_cast<float>(i + t.offset));
  const sample s(3);
  rig.train(s.ids, s.targets, 2, 1.0f);
  if (const auto pair = rig.layout->tied())
    sum_tied(rig.units[0].tensor(rig.units[0].gradients(), pair->embedding),
             rig.units[4].tensor(rig.units[4].gradients(), pair->head),
             *rig.device);
  for (tensor_index t = 0; t < rig.layout->tensors().size(); ++t) {
    const tensor_info& info = rig.layout->tensors()[t];
    if (info.copy_of)
      continue;
    auto& unit = rig.units[info.unit];
    auto values = unit.tensor(unit.parameters(), t);
    const auto gradients = unit.tensor(unit.gradients(), t);
    double largest = 0;
    for (const float g : gradients)
      largest = std::max<double>(largest, std::abs(g));
    // A copy of a tied tensor moves with its original.
    std::span<float> copy;
    if (tied && t == 0)
      copy = rig.units[4].tensor(rig.units[4].parameters(),
                                 rig.layout->tied()->head);
    const auto& ids = s.ids;
    const auto& targets = s.targets;
    for (std::size_t i = 0; i < values.size(); i += values.size() / 5 + 1) {
      const float before = values[i];
      auto loss_at = [&](float value) {
        values[i] = value;
        if (!copy.empty())
          copy[i] = value;
        return rig.loss(ids, targets, 2);
      };
      const float step = difference_step / 4;
      const double slope = (loss_at(before + step) - loss_at(before - step))
                           / (double(before + step) - double(before - step));
      loss_at(before);
      BOOST_TEST_CONTEXT(info.name << " [" << i << "]") {
        BOOST_TEST(std::abs(slope - gradients[i])
                   <= 10 * difference_tolerance * (largest + 0.1));
      }
    }
  }
}

} // namespace

BOOST_DATA_TEST_CASE(cutting_into_stages_changes_no_bit,
                     bdata::make({false, true}), tied) {
  const trained whole(tiny_config(tied), {}, 1);
  for (const auto& cuts : layouts)
    BOOST_TEST((trained(tiny_config(tied), cuts, 1) == whole));
}

BOOST_DATA_TEST_CASE(cutting_a_family_changes_no_bit,
                     bdata::make(family_names()), name) {
  const trained whole(tiny_family(name), {}, 1);
  for (const auto& cuts : layouts)
    BOOST_TEST((trained(tiny_family(name), cuts, 1) == whole));
}

BOOST_DATA_TEST_CASE(the_number_of_threads_changes_no_bit,
                     bdata::make(family_names()), name) {
  model_config config = tiny_family(name);
  config.hidden_size = 64; // large enough to be shared among threads
  config.head_dim = 16;
  config.intermediate_size = 160;
  const trained one(config, {}, 1);
  for (const unsigned threads : {2u, 3u})
    BOOST_TEST((trained(config, {2}, threads) == one));
}

BOOST_AUTO_TEST_CASE(nothing_changes_a_bit_of_bf16_products) {
  model_config config = tiny_family("llama");
  config.hidden_size = 64;
  config.head_dim = 16;
  config.intermediate_size = 160;
  const trained one(config, {}, 1, factor_type::bf16);
  for (const unsigned threads : {1u, 2u, 3u})
    BOOST_TEST((trained(config, {2}, threads, factor_type::bf16) == one));
}

// A factor that is rounded to bf16 is off by at most 2^-9 of itself. Losses of
// 20 steps stay within 2^-6 of those in fp32; were the master weights rounded,
// too, the small steps of AdamW would be lost.
BOOST_DATA_TEST_CASE(losses_with_bf16_products_follow_those_of_floats,
                     bdata::make({"llama", "gpt2"}), name) {
  const trained exact(tiny_family(name), {}, 1, factor_type::f32, 20);
  const trained rounded(tiny_family(name), {}, 1, factor_type::bf16, 20);
  for (std::size_t i = 0; i != exact.losses.size(); ++i)
    BOOST_TEST(std::abs(rounded.losses[i] - exact.losses[i])
               <= 0x1p-6 * exact.losses[i]);
  if (kernels::cpu::usable_features().bf16)
    BOOST_TEST((rounded.losses != exact.losses));
  BOOST_TEST(exact.losses.back() < exact.losses.front());
}

/// Blocks of this number of rows, for any microbatch.
logits_budget in_blocks(const model_config& config, std::uint64_t rows) {
  return {0, rows * config.vocab_size};
}

BOOST_DATA_TEST_CASE(logits_in_blocks_give_the_gradients_of_all_at_once,
                     bdata::make(family_names()), name) {
  const model_config config = tiny_family(name);
  const sample s(3);
  model_rig all(config, 5);
  const double loss = all.train(s.ids, s.targets, 2, 0.5f);
  for (const std::uint64_t rows : {1, 5, 13, 26, 100}) {
    model_rig some(config, 5, {}, 1, factor_type::f32, in_blocks(config, rows));
    BOOST_TEST(some.train(s.ids, s.targets, 2, 0.5f) == loss,
               boost::test_tools::tolerance(1e-6));
    BOOST_TEST(some.loss(s.ids, s.targets, 2) == loss,
               boost::test_tools::tolerance(1e-6));
    for (unit_index u = 0; u < all.units.size(); ++u)
      BOOST_TEST(
        relative_error(some.units[u].gradients(), all.units[u].gradients())
        <= 1e-5);
  }
}

BOOST_DATA_TEST_CASE(cuts_and_threads_change_no_bit_of_logits_in_blocks,
                     bdata::make({"llama", "gemma2"}), name) {
  const model_config config = tiny_family(name);
  const auto budget = in_blocks(config, 5);
  const trained whole(config, {}, 1, factor_type::f32, 4, budget);
  for (const auto& cuts : layouts)
    BOOST_TEST(
      (trained(config, cuts, 2, factor_type::f32, 4, budget) == whole));
}

BOOST_AUTO_TEST_CASE(logits_in_blocks_are_never_all_there) {
  model_config config = tiny_config();
  config.vocab_size = 5000;
  const std::uint64_t all = 26 * config.vocab_size; // floats
  const auto budget = in_blocks(config, 4);
  const sample s(1);
  model_rig rig(config, 1, {}, 1, factor_type::f32, budget);
  rig.loss(s.ids, s.targets, 2);
  BOOST_TEST(rig.whole().activation_bytes() < sizeof(float) * all / 3);
  rig.train(s.ids, s.targets, 2, 1.0f);
  const std::size_t held = rig.whole().activation_bytes() / sizeof(float);
  BOOST_TEST(held < all / 2);
  std::uint64_t expected = 0;
  for (unit_index u = 0; u < rig.layout->unit_count(); ++u)
    expected += activation_size(config, u, 26, budget);
  BOOST_TEST(held <= expected + expected / 2);
  model_rig kept(config, 1);
  kept.train(s.ids, s.targets, 2, 1.0f);
  BOOST_TEST(kept.whole().activation_bytes() > sizeof(float) * all);
}

BOOST_AUTO_TEST_CASE(the_budget_of_logits_is_what_it_says) {
  const logits_budget usual;
  BOOST_TEST(usual.keeps(1024, 50257)); // GPT-2, 4 x 256
  BOOST_TEST(!usual.keeps(2048, 50257));
  BOOST_TEST(usual.block_rows(1u << 20, 50257) == 320u);
  BOOST_TEST(usual.block_rows(1u << 17, 128256) == 128u); // Llama 3
  BOOST_TEST(usual.block_rows(10, 128256) == 10u);
  BOOST_TEST(usual.block_rows(1000, vocabulary_max) == 1u);
  model_config config = tiny_config();
  config.vocab_size = 128256;
  const auto floats = activation_size(config, 4, 1u << 17);
  BOOST_TEST(floats < (1u << 17) * 100ull + (1u << 24)); // of 16.8e9
}

BOOST_AUTO_TEST_CASE(interleaved_microbatches_give_the_gradients_of_separate) {
  const sample first(1);
  const sample second(2);
  model_rig apart(tiny_config());
  apart.train(first.ids, first.targets, 2, 0.5f);
  apart.train(second.ids, second.targets, 2, 0.5f);
  model_rig woven(tiny_config());
  stage_model& stage = woven.whole();
  for (const auto* s : {&first, &second}) {
    forward_work work;
    work.microbatch = s == &first ? 1 : 2;
    work.sequences = 2;
    work.tokens = 13;
    work.ids = s->ids;
    work.targets = s->targets;
    work.loss_scale = 0.5f;
    BOOST_TEST(stage.forward(work).predicted == 25u);
  }
  stage.input_gradient(2, {}, {});
  stage.input_gradient(1, {}, {});
  stage.weight_gradient(1);
  std::vector<unit_index> order;
  stage.weight_gradient(2, [&](unit_index unit) { order.push_back(unit); });
  const std::vector<unit_index> expected = {4, 3, 2, 1, 0};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
  BOOST_TEST(stage.in_flight() == 0u);
  for (unit_index u = 0; u < 5; ++u)
    BOOST_TEST(
      (bits(apart.units[u].gradients()) == bits(woven.units[u].gradients())));
}

BOOST_DATA_TEST_CASE(gradients_are_those_of_finite_differences,
                     bdata::make({false, true}), tied) {
  check_differences(tiny_config(tied));
}

BOOST_DATA_TEST_CASE(gradients_of_a_family_are_those_of_finite_differences,
                     bdata::make(family_names()), name) {
  check_differences(tiny_family(name));
}

BOOST_AUTO_TEST_CASE(memory_is_used_again) {
  model_rig rig(tiny_config());
  const sample s(1);
  rig.train(s.ids, s.targets, 2, 1.0f);
  const std::size_t after_one = rig.whole().activation_bytes();
  for (int i = 0; i < 5; ++i)
    rig.train(s.ids, s.targets, 2, 1.0f);
  BOOST_TEST(rig.whole().activation_bytes() == after_one);
  rig.whole().reset();
  BOOST_TEST(rig.whole().activation_bytes() == 0u);
}

BOOST_DATA_TEST_CASE(activation_size_is_what_a_microbatch_keeps,
                     bdata::make(family_names()), name) {
  model_rig rig(tiny_family(name), 1, {1});
  model_rig alone(tiny_family(name));
  const sample s(1);
  std::vector<float> hidden(26 * rig.layout->config().hidden_size);
  forward_work work;
  work.sequences = 2;
  work.tokens = 13;
  work.ids = s.ids;
  work.targets = s.targets;
  alone.whole().forward(work);
  alone.whole().input_gradient(0, {}, {});
  work.targets = {};
  work.hidden_out = hidden;
  rig.stages[0]->forward(work);
  work.ids = {};
  work.hidden_out = {};
  work.hidden_in = hidden;
  work.targets = s.targets;
  rig.stages[1]->forward(work);
  rig.stages[1]->input_gradient(0, {}, hidden);
  rig.stages[0]->input_gradient(0, hidden, {});
  std::uint64_t expected = 0;
  for (unit_index u = 0; u < rig.layout->unit_count(); ++u)
    expected += activation_size(rig.layout->config(), u, 26);
  const std::size_t bytes =
    rig.stages[0]->activation_bytes() + rig.stages[1]->activation_bytes();
  const double held = static_cast<double>(bytes) / sizeof(float);
  // The whole model takes B and W of a unit together.
  BOOST_TEST(alone.whole().activation_bytes() < bytes);
  BOOST_TEST_MESSAGE(name << ": held " << held << ", predicted " << expected);
  BOOST_TEST(held <= 1.5 * static_cast<double>(expected));
  BOOST_TEST(held >= 0.75 * static_cast<double>(expected));
}

BOOST_AUTO_TEST_CASE(losses_of_tokens_add_up) {
  model_rig rig(tiny_config());
  const sample s(1);
  std::vector<float> losses(26);
  forward_work work;
  work.sequences = 2;
  work.tokens = 13;
  work.ids = s.ids;
  work.targets = s.targets;
  work.keep = false;
  work.losses_out = losses;
  const auto result = rig.whole().forward(work);
  double sum = 0;
  for (const float loss : losses)
    sum += loss;
  BOOST_TEST(sum == result.loss_sum);
  BOOST_TEST(losses[4] == 0.0f); // ignored
  BOOST_TEST(rig.whole().in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(ids_are_checked_against_the_vocabulary) {
  const model_config config = tiny_config();
  BOOST_TEST(valid_ids(config, std::vector<token_id>{0, 60}));
  BOOST_TEST(!valid_ids(config, std::vector<token_id>{61}));
  BOOST_TEST(!valid_ids(config, std::vector<token_id>{-1}));
  BOOST_TEST(valid_ids(config, std::vector<token_id>{-1}, true));
  BOOST_TEST(!valid_ids(config, std::vector<token_id>{-2}, true));
}

BOOST_AUTO_TEST_SUITE_END()
