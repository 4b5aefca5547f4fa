// tests/runtime/model/pass_test.cpp -- passes, segment by segment.
#include "kernels/layers/routing.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/pass.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>
#include <ostream>

BOOST_AUTO_TEST_SUITE(passes)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

constexpr std::size_t sequences = 2, tokens = 13, rows = sequences * tokens;

std::vector<token_id> ids_of(token_id seed) {
  std::vector<token_id> ids;
  for (token_id i = 0; i < token_id(rows); ++i)
    ids.push_back((i * i * 7 + seed * 11) % 61);
  return ids;
}

std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> out;
  for (const float value : values)
    out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

/// Two microbatches with their data at the border of two stages.
struct two_microbatches {
  explicit two_microbatches(const model_config& config, bool cut)
    : rig(config, 5,
          cut ? std::vector<unit_index>{2} : std::vector<unit_index>{}) {
    const std::size_t size = rows * config.hidden_size;
    for (std::size_t m = 0; m != 2; ++m) {
      hidden[m].resize(cut ? size : 0);
      gradient[m].resize(cut ? size : 0);
    }
  }

  stage_model& stage(std::size_t s) { return *rig.stages.at(s); }
  std::size_t stages() const { return rig.stages.size(); }

  std::unique_ptr<pass> forward(std::size_t s, std::size_t m) {
    forward_work work;
    work.microbatch = m;
    work.sequences = sequences;
    work.tokens = tokens;
    work.loss_scale = 1.0f / 50;
    if (stage(s).has_embedding())
      work.ids = ids[m];
    else
      work.hidden_in = hidden[m];
    if (stage(s).has_head())
      work.targets = targets[m];
    else
      work.hidden_out = hidden[m];
    return stage(s).begin_forward(work, results[m]);
  }
  std::unique_ptr<pass> input_gradient(std::size_t s, std::size_t m) {
    using in = std::span<const float>;
    using out = std::span<float>;
    return stage(s).begin_input_gradient(
      m, stage(s).has_head() ? in() : in(gradient[m]),
      stage(s).has_embedding() ? out() : out(gradient[m]));
  }
  std::unique_ptr<pass> weight_gradient(std::size_t s, std::size_t m) {
    return stage(s).begin_weight_gradient(
      m, [this](unit_index unit) { finished.push_back(unit); });
  }

  /// All that the passes have computed.
  std::vector<std::uint32_t> all_bits() const {
    std::vector<std::uint32_t> out;
    auto add = [&out](std::span<const float> values) {
      const auto more = bits(values);
      out.insert(out.end(), more.begin(), more.end());
    };
    for (std::size_t m = 0; m != 2; ++m) {
      add(hidden[m]);
      add(gradient[m]);
      const auto loss = std::bit_cast<std::uint64_t>(results[m].loss_sum);
      out.push_back(std::uint32_t(loss));
      out.push_back(std::uint32_t(loss >> 32));
    }
    for (const unit_state& unit : rig.units)
      add(unit.gradients());
    return out;
  }

  model_rig rig;
  std::vector<token_id> ids[2] = {ids_of(1), ids_of(2)};
  std::vector<token_id> targets[2] = {ids_of(3), ids_of(4)};
  std::vector<float> hidden[2], gradient[2];
  forward_result results[2];
  std::vector<unit_index> finished;
};

/// Runs passes in turn: one segment of the first, two of the second, and so on.
void weave(std::vector<std::unique_ptr<pass>> passes) {
  for (bool left = true; left;) {
    left = false;
    for (std::size_t k = 0; k != passes.size(); ++k)
      for (std::size_t i = 0; i <= k && !passes[k]->done(); ++i) {
        passes[k]->advance();
        left = true;
      }
  }
}

std::vector<std::unique_ptr<pass>>
both(std::unique_ptr<pass> a, std::unique_ptr<pass> b) {
  std::vector<std::unique_ptr<pass>> out;
  out.push_back(std::move(a));
  out.push_back(std::move(b));
  return out;
}

std::vector<std::uint32_t>
from_end_to_end(const model_config& config, bool cut) {
  two_microbatches t(config, cut);
  for (std::size_t m = 0; m != 2; ++m) {
    for (std::size_t s = 0; s != t.stages(); ++s)
      run(*t.forward(s, m));
    for (std::size_t s = t.stages(); s-- > 0;)
      run(*t.input_gradient(s, m));
    for (std::size_t s = t.stages(); s-- > 0;)
      run(*t.weight_gradient(s, m));
  }
  return t.all_bits();
}

/// Every pass rests between segments while another one runs: forward beside
/// forward and beside W, B beside B and beside W.
std::vector<std::uint32_t> woven(const model_config& config, bool cut) {
  two_microbatches t(config, cut);
  const std::size_t last = t.stages() - 1;
  for (std::size_t s = 0; s != t.stages(); ++s)
    weave(both(t.forward(s, 0), t.forward(s, 1)));
  weave(both(t.input_gradient(last, 0), t.input_gradient(last, 1)));
  if (cut) {
    weave(both(t.input_gradient(0, 0), t.weight_gradient(1, 0)));
    weave(both(t.weight_gradient(0, 0), t.input_gradient(0, 1)));
    weave(both(t.weight_gradient(0, 1), t.weight_gradient(1, 1)));
  } else {
    run(*t.weight_gradient(0, 0));
    run(*t.weight_gradient(0, 1));
  }
  BOOST_TEST(t.finished.size() == 2 * t.rig.units.size());
  return t.all_bits();
}

/// Answers every exchange later, and notes it: what devices would have to
/// exchange if each had only a part of every block.
struct recorder {
  struct note {
    exchange_point point;
    unit_index unit;
    friend bool operator==(const note&, const note&) = default;
  };
  std::vector<note> notes;
  std::size_t segments = 0;

  /// @param rows of a pass, @param width of the model
  void follow(pass& p, std::size_t rows, std::size_t width) {
    while (!p.done()) {
      const auto met = p.advance();
      ++segments;
      if (!met)
        continue;
      notes.push_back({met->point, met->unit});
      const std::size_t wanted =
        met->rows == nullptr ? rows : met->rows->rows();
      BOOST_TEST(met->x.rows == wanted);
      BOOST_TEST(met->x.cols == width);
      const bool of_experts = met->point >= exchange_point::expert_rows;
      BOOST_TEST((met->rows != nullptr) == of_experts);
      // Another holder would write the result here.
      for (std::size_t r = 0; r != met->x.rows; ++r)
        for (std::size_t c = 0; c != met->x.cols; ++c)
          met->x(r, c) = met->x(r, c) * 1.0f;
    }
  }
};

std::ostream& operator<<(std::ostream& to, const recorder::note& n) {
  return to << name_of(n.point) << " of unit " << n.unit;
}

using enum exchange_point;
using points = std::vector<exchange_point>;

const points forward_dense{attention_output, mlp_output};
const points forward_sparse{attention_output, expert_rows, expert_results,
                            mlp_output};
const points input_gradient_dense{mlp_input_gradient, attention_input_gradient};
const points input_gradient_sparse{expert_result_gradients,
                                   expert_row_gradients, mlp_input_gradient,
                                   attention_input_gradient};

std::vector<recorder::note>
in_order(const std::vector<unit_index>& blocks, const points& of_each) {
  std::vector<recorder::note> out;
  for (const unit_index unit : blocks)
    for (const exchange_point p : of_each)
      out.push_back({p, unit});
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(a_pass_may_rest_between_any_segments,
                     bdata::make(family_names()) * bdata::make({false, true}),
                     name, cut) {
  const model_config config = tiny_family(name);
  BOOST_TEST((woven(config, cut) == from_end_to_end(config, cut)));
}

BOOST_DATA_TEST_CASE(a_stage_tells_its_exchanges_in_order,
                     bdata::make({"llama", "gemma2", "mixtral"}), name) {
  const model_config config = tiny_family(name);
  const bool sparse = config.num_experts > 0;
  const std::size_t d = config.hidden_size;
  two_microbatches t(config, true); // units 0, 1 | 2, 3, 4
  recorder forward, b, w;
  forward.follow(*t.forward(0, 0), rows, d);
  forward.follow(*t.forward(1, 0), rows, d);
  b.follow(*t.input_gradient(1, 0), rows, d);
  b.follow(*t.input_gradient(0, 0), rows, d);
  w.follow(*t.weight_gradient(1, 0), rows, d);
  w.follow(*t.weight_gradient(0, 0), rows, d);
  BOOST_TEST(forward.notes
               == in_order({1, 2, 3}, sparse ? forward_sparse : forward_dense),
             boost::test_tools::per_element());
  BOOST_TEST(b.notes
               == in_order({3, 2, 1}, sparse ? input_gradient_sparse
                                             : input_gradient_dense),
             boost::test_tools::per_element());
  BOOST_TEST(w.notes.empty());
  // Of 3 blocks, the embedding and the head.
  BOOST_TEST(forward.segments == (sparse ? 3 * 5 : 3 * 3) + 2u);
  BOOST_TEST(w.segments == 3 * 2 + 2u);
}

BOOST_DATA_TEST_CASE(a_whole_model_exchanges_for_b_within_w,
                     bdata::make({"llama", "mixtral"}), name) {
  const model_config config = tiny_family(name);
  two_microbatches t(config, false);
  run(*t.forward(0, 0));
  const auto b = t.input_gradient(0, 0);
  BOOST_TEST(b->done());
  recorder w;
  w.follow(*t.weight_gradient(0, 0), rows, config.hidden_size);
  BOOST_TEST(w.notes
               == in_order({3, 2, 1}, config.num_experts > 0
                                        ? input_gradient_sparse
                                        : input_gradient_dense),
             boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_unit_is_final_before_the_next_segment,
                     bdata::make({false, true}), cut) {
  two_microbatches t(tiny_config(), cut);
  for (std::size_t s = 0; s != t.stages(); ++s)
    run(*t.forward(s, 0));
  for (std::size_t s = t.stages(); s-- > 0;)
    run(*t.input_gradient(s, 0));
  const auto w = t.weight_gradient(t.stages() - 1, 0);
  std::vector<std::vector<std::uint32_t>> finals;
  while (!w->done()) {
    w->advance();
    while (finals.size() < t.finished.size())
      finals.push_back(
        bits(t.rig.units[t.finished[finals.size()]].gradients()));
  }
  for (std::size_t i = 0; i != finals.size(); ++i)
    BOOST_TEST((bits(t.rig.units[t.finished[i]].gradients()) == finals[i]));
  BOOST_TEST(finals.size() == (cut ? 3u : 5u));
}

BOOST_AUTO_TEST_CASE(a_pass_that_is_dropped_costs_its_microbatch_only) {
  two_microbatches t(tiny_config(), true);
  {
    const auto dropped = t.forward(0, 0);
    dropped->advance();
    dropped->advance();
  }
  BOOST_TEST(t.stage(0).in_flight() == 0u);
  run(*t.forward(0, 0));
  run(*t.forward(1, 0));
  t.input_gradient(1, 0)->advance();
  for (std::size_t s = 0; s != 2; ++s) {
    t.stage(s).reset();
    BOOST_TEST(t.stage(s).activation_bytes() == 0u);
  }
  two_microbatches fresh(tiny_config(), true);
  for (two_microbatches* both : {&t, &fresh})
    for (std::size_t s = 0; s != 2; ++s)
      run(*both->forward(s, 0));
  BOOST_TEST(t.results[0].loss_sum == fresh.results[0].loss_sum);
}

namespace {

/// A sequence that grows by steps of some tokens.
struct sequence {
  sequence(inference_stage& stage, token_id seed)
    : ids(ids_of(seed)), cache(stage, core::pages_for(rows), kv_type::bf16),
      logits(rows * stage.config().vocab_size),
      width(stage.config().vocab_size) {}

  std::unique_ptr<pass> next(std::size_t count) {
    const std::size_t first = std::exchange(position, position + count);
    return cache.begin_batch(
      one_sequence(first, count, count), std::span(ids).subspan(first, count),
      {}, {}, std::span(logits).subspan(first * width, count * width));
  }

  std::vector<token_id> ids;
  paged_cache cache;
  std::vector<float> logits;
  std::size_t width;
  std::size_t position = 0;
};

} // namespace

BOOST_DATA_TEST_CASE(cached_steps_of_two_sequences_may_be_woven,
                     bdata::make(family_names()), name) {
  model_rig rig(tiny_family(name), 5);
  inference_stage stage(rig.whole());
  sequence alone[2] = {{stage, 1}, {stage, 2}};
  sequence woven[2] = {{stage, 1}, {stage, 2}};
  for (const std::size_t count : {7, 1, 1, 4}) {
    for (sequence& s : alone)
      run(*s.next(count));
    weave(both(woven[0].next(count), woven[1].next(count)));
  }
  for (std::size_t k = 0; k != 2; ++k)
    BOOST_TEST((bits(woven[k].logits) == bits(alone[k].logits)));
}

BOOST_DATA_TEST_CASE(a_cached_step_tells_its_exchanges_in_order,
                     bdata::make({"llama", "gemma2", "mixtral"}), name) {
  const model_config config = tiny_family(name);
  model_rig rig(config, 5);
  inference_stage stage(rig.whole());
  sequence plain(stage, 1), recorded(stage, 1);
  for (const std::size_t count : {7, 1}) {
    recorder r;
    r.follow(*recorded.next(count), count, config.hidden_size);
    run(*plain.next(count));
    BOOST_TEST(r.notes
                 == in_order({1, 2, 3}, config.num_experts > 0 ? forward_sparse
                                                               : forward_dense),
               boost::test_tools::per_element());
  }
  BOOST_TEST((bits(recorded.logits) == bits(plain.logits)));
}

BOOST_AUTO_TEST_SUITE_END()
