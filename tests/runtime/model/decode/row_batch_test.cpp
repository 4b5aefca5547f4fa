// tests/runtime/model/decode/row_batch_test.cpp -- rows of many sequences through
// a stage.
//
// Goal: a row has the logits of its sequence alone, bit by bit (rule R-1 of
// kernels/README.md). Method: each sequence token by token in a cache of its own
// gives what is expected; then the same tokens go in batches of several sequences,
// prompts beside single tokens, in scattered and in shared pages.
#include "runtime/model/decode/generate.hpp"
#include "tests/runtime/model/decode/inference_rig.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <cstring>
#include <map>
#include <numeric>
#include <ostream>

namespace shoal::kernels {

std::ostream& operator<<(std::ostream& out, kv_type type) {
  return out << name_of(type);
}
std::ostream& operator<<(std::ostream& out, weight_type type) {
  return out << name_of(type);
}

} // namespace shoal::kernels

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(row_batches)

using namespace model;
namespace bdata = boost::unit_test::data;

namespace {

const kv_type kv_types[] = {kv_type::f32, kv_type::bf16, kv_type::q8};

/// A piece of a sequence in a batch.
struct batch_piece {
  std::size_t sequence, rows, logits;
};

/// Sequences that go through a pipeline in batches.
class batched {
public:
  batched(std::vector<std::vector<token_id>> texts, pipeline& through,
          std::size_t vocabulary)
    : texts_(std::move(texts)), through_(through), vocabulary_(vocabulary) {
    std::size_t page = 3;
    for (const auto& text : texts_) {
      const auto count = core::pages_for(text.size());
      pages_.push_back(scattered(count, page, step, pages_max));
      page += count * step;
    }
    positions_.resize(texts_.size());
  }

  /// A sequence begins with pages that another one has filled with its tokens.
  void share(std::size_t sequence, std::size_t with, std::size_t pages) {
    std::copy_n(pages_[with].begin(), pages, pages_[sequence].begin());
    positions_[sequence] = pages * core::page_tokens;
  }

  /// Keeps the logits, by sequence and position.
  void compute(const std::vector<batch_piece>& pieces) {
    row_batch batch;
    std::vector<token_id> ids;
    std::vector<std::pair<std::size_t, std::size_t>> wanted;
    for (const batch_piece& p : pieces) {
      const auto first = positions_[p.sequence], last = first + p.rows;
      const auto& pages = pages_[p.sequence];
      batch.sequences.push_back(
        {first,
         p.rows,
         {pages.begin(), pages.begin() + std::ptrdiff_t(core::pages_for(last))},
         p.logits});
      for (auto t = first; t != last; ++t) {
        ids.push_back(texts_[p.sequence][t]);
        if (t + p.logits >= last)
          wanted.emplace_back(p.sequence, t);
      }
      positions_[p.sequence] = last;
    }
    const auto logits = through_.compute(batch, ids);
    BOOST_REQUIRE_EQUAL(logits.size(), wanted.size() * vocabulary_);
    for (std::size_t i = 0; i != wanted.size(); ++i)
      got_[wanted[i]].assign(logits.begin() + std::ptrdiff_t(i * vocabulary_),
                             logits.begin()
                               + std::ptrdiff_t((i + 1) * vocabulary_));
  }

  /// @param expected by sequence: the logits of all its tokens
  void check(const std::vector<std::vector<float>>& expected) const {
    for (const auto& [where, logits] : got_) {
      const auto [sequence, position] = where;
      const float* const alone =
        expected[sequence].data() + position * vocabulary_;
      BOOST_TEST(std::memcmp(logits.data(), alone, vocabulary_ * sizeof(float))
                   == 0,
                 "sequence " << sequence << ", position " << position);
    }
  }
  std::size_t rows_with_logits() const { return got_.size(); }

  static constexpr std::size_t pages_max = 103, step = 41;

private:
  std::vector<std::vector<token_id>> texts_;
  pipeline& through_;
  std::size_t vocabulary_;
  std::vector<std::vector<core::page_id>> pages_;
  std::vector<std::size_t> positions_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<float>> got_;
};

std::vector<std::vector<token_id>>
texts_for(const model_config& config,
          std::initializer_list<std::size_t> sizes) {
  std::vector<std::vector<token_id>> out;
  for (const std::size_t size : sizes) {
    std::vector<token_id> ids(size);
    for (std::size_t i = 0; i != size; ++i)
      ids[i] = static_cast<token_id>((i * i + (3 + out.size()) * i + 5)
                                     % config.vocab_size);
    out.push_back(std::move(ids));
  }
  return out;
}

std::vector<std::vector<float>>
alone(inference_rig& rig, const std::vector<std::vector<token_id>>& texts,
      kv_type kv) {
  std::vector<std::vector<float>> out;
  for (const auto& ids : texts)
    out.push_back(rig.logits(ids, 1, kv));
  return out;
}

/// Prompts in pieces beside sequences that generate; the last one begins with a
/// page of the first.
void run_mixed(batched& b) {
  b.compute({{0, 17, 0}, {1, 5, 1}});
  b.compute({{2, 30, 30}, {1, 1, 1}, {0, 3, 1}});
  b.share(3, 0, 1);
  b.compute({{0, 1, 1}, {3, 9, 1}, {1, 1, 1}});
  b.compute({{0, 14, 2}});
  b.compute({{3, 2, 2}, {2, 1, 1}, {1, 20, 20}, {0, 1, 1}});
}

} // namespace

BOOST_DATA_TEST_CASE(a_row_has_the_logits_of_its_sequence_alone,
                     bdata::make(golden_families) * bdata::make(kv_types), name,
                     kv) {
  inference_rig rig(golden_folder() / name);
  auto texts = texts_for(rig.config, {36, 27, 31, 27});
  std::copy_n(texts[0].begin(), core::page_tokens, texts[3].begin());
  const auto expected = alone(rig, texts, kv);
  for (const std::vector<unit_index>& cuts :
       {std::vector<unit_index>{}, std::vector<unit_index>{2}}) {
    pipeline stages(rig.units, cuts, *rig.device, batched::pages_max, kv);
    batched b(texts, stages, rig.config.vocab_size);
    run_mixed(b);
    BOOST_TEST_CONTEXT("stages " << cuts.size() + 1)
    b.check(expected);
    BOOST_TEST(b.rows_with_logits() == 62u);
  }
}

BOOST_DATA_TEST_CASE(small_weights_give_a_row_the_logits_of_its_sequence,
                     bdata::make({kernels::weight_type::bf16,
                                  kernels::weight_type::q8,
                                  kernels::weight_type::q4}),
                     type) {
  inference_rig rig(golden_folder() / "tiny_mixtral", type);
  inference_rig two(golden_folder() / "tiny_mixtral", type, 2);
  auto texts = texts_for(rig.config, {36, 27, 31, 27});
  std::copy_n(texts[0].begin(), core::page_tokens, texts[3].begin());
  const auto expected = alone(rig, texts, kv_type::bf16);
  for (inference_rig* r : {&rig, &two}) {
    pipeline stages(r->units, {}, *r->device, batched::pages_max);
    BOOST_TEST(stages.cache().type() == kv_type::bf16);
    batched b(texts, stages, r->config.vocab_size);
    run_mixed(b);
    b.check(expected);
  }
}

BOOST_DATA_TEST_CASE(a_batch_may_be_larger_than_a_part, kv_types, kv) {
  temporary_folder folder;
  auto config = tiny_config();
  config.max_position_embeddings = 800;
  save_random(folder / "m", config);
  inference_rig rig(folder / "m");
  const auto texts = texts_for(config, {600, 9, 700});
  const auto expected = alone(rig, texts, kv);
  pipeline stages(rig.units, {1, 3}, *rig.device, batched::pages_max, kv);
  batched b(texts, stages, config.vocab_size);
  b.compute({{1, 8, 8}, {0, 520, 100}, {2, 30, 0}});
  b.compute({{2, 600, 0}, {1, 1, 1}, {0, 80, 80}});
  b.compute({{2, 70, 70}});
  b.check(expected);
  BOOST_TEST(b.rows_with_logits() == 259u);
}

BOOST_AUTO_TEST_CASE(a_batch_without_logits_writes_none) {
  inference_rig rig(golden_folder() / "tiny_llama");
  pipeline stages(rig.units, {}, *rig.device, 2);
  const auto ids = some_ids(rig.config, 20);
  BOOST_TEST(stages.compute(one_sequence(0, 20, 0), ids).empty());
}

BOOST_AUTO_TEST_CASE(batches_that_break_a_rule_are_refused) {
  inference_rig rig(golden_folder() / "tiny_llama");
  const std::size_t most = rig.config.max_position_embeddings;
  pipeline stages(rig.units, {}, *rig.device, 20);
  const auto accepts = [&](std::vector<row_batch::sequence> sequences) {
    return stages.cache().accepts({std::move(sequences)});
  };
  std::vector<core::page_id> all(core::pages_for(most));
  std::iota(all.begin(), all.end(), 0U);
  BOOST_TEST(accepts({{0, 1, {19}, 1}}));
  BOOST_TEST(accepts({{most - 1, 1, all, 1}}));
  BOOST_TEST(accepts({{16, 3, {7, 0}, 3}, {17, 1, {7, 2}, 0}})); // 7 is shared
  BOOST_TEST(!accepts({}));
  BOOST_TEST(!accepts({{0, 0, {0}, 0}}));    // no rows
  BOOST_TEST(!accepts({{0, 1, {20}, 1}}));   // no such page
  BOOST_TEST(!accepts({{0, 1, {0}, 2}}));    // more logits than rows
  BOOST_TEST(!accepts({{0, 17, {0}, 0}}));   // too few pages
  BOOST_TEST(!accepts({{most, 1, {0}, 1}})); // no such position
  BOOST_TEST(!accepts({{most - 1, 2, all, 1}}));
  BOOST_TEST(!accepts({{1, ~std::size_t{0}, all, 1}}));
  BOOST_TEST(!accepts({{~std::size_t{0}, 2, all, 1}}));
  BOOST_TEST(!accepts({{0, 1, {3}, 1}, {16, 1, {0, 3}, 1}})); // one page twice
  BOOST_TEST(!accepts({{0, 20, {3, 3}, 1}}));
}

// Mistral has windows in all blocks, Gemma 2 in every other one.
BOOST_DATA_TEST_CASE(a_cache_of_windows_gives_the_same_logits,
                     bdata::make({"tiny_mistral", "tiny_gemma2", "tiny_qwen2",
                                  "tiny_llama3"})
                       * bdata::make(kv_types),
                     name, kv) {
  inference_rig rig(golden_folder() / name);
  const auto texts = texts_for(rig.config, {120, 101});
  const auto expected = alone(rig, texts, kv);
  const std::size_t V = rig.config.vocab_size, rows = 20;
  const std::size_t each = paged_cache::window_pages_for(rig.config, rows);
  BOOST_TEST((each == 0) == (std::string_view(name) == "tiny_llama3"));
  BOOST_TEST(each <= 3u); // of 8
  pipeline stages(rig.units, {2}, *rig.device, 16, kv, 2 * each);
  std::size_t position[] = {0, 0};
  for (const std::size_t count : {20, 1, 20, 3, 1, 20, 16, 20}) {
    row_batch batch;
    std::vector<token_id> ids;
    for (const std::size_t s : {0, 1}) {
      // The second one has pages above those of the first, and always one row
      // less.
      const std::size_t n = std::max<std::size_t>(1, count - s);
      auto one = one_sequence(position[s], n, n, each).sequences.front();
      for (core::page_id& page : one.pages)
        page += static_cast<core::page_id>(8 * s);
      for (core::page_id& page : one.window_pages)
        page += static_cast<core::page_id>(each * s);
      batch.sequences.push_back(one);
      const auto& text = texts[s];
      ids.insert(ids.end(), text.begin() + std::ptrdiff_t(position[s]),
                 text.begin() + std::ptrdiff_t(position[s] + n));
    }
    const auto logits = stages.compute(batch, ids);
    std::size_t row = 0;
    for (const std::size_t s : {0, 1}) {
      const std::size_t n = batch.sequences[s].rows;
      BOOST_TEST(std::memcmp(&logits[row * V], &expected[s][position[s] * V],
                             n * V * sizeof(float))
                   == 0,
                 "sequence " << s << " from position " << position[s]);
      position[s] += n;
      row += n;
    }
  }
  BOOST_TEST(position[0] == 101u);
}

BOOST_AUTO_TEST_CASE(blocks_with_a_window_need_memory_only_for_it) {
  inference_rig rig(golden_folder() / "tiny_gemma2"); // blocks 0 and 2 of 3
  const paged_cache cache(*rig.stage, 1000, kv_type::bf16, 4);
  BOOST_TEST(cache.bytes()
             == 1008 * paged_cache::page_bytes(rig.config, 1, kv_type::bf16));
  row_batch batch = one_sequence(100, 1, 1, 4);
  BOOST_TEST(cache.accepts(batch));
  batch.sequences[0].window_pages[0] = 1000; // not seen from position 100
  BOOST_TEST(cache.accepts(batch));
  batch.sequences[0].window_pages[6] = 4;
  BOOST_TEST(!cache.accepts(batch));
  batch.sequences[0].window_pages.clear();
  BOOST_TEST(!cache.accepts(batch));
}

// Longer than a window and than a batch: the ring of pages goes round.
BOOST_AUTO_TEST_CASE(long_texts_of_models_with_windows_are_those_without_ring) {
  temporary_folder folder;
  auto config = tiny_family("mistral");
  config.max_position_embeddings = 1400;
  config.sliding_window = 40;
  save_random(folder / "m", config);
  inference_rig rig(folder / "m");
  const auto ids = some_ids(config, 1300);
  generate_options options;
  options.temperature = 0;
  options.max_tokens = 60;
  options.stop_at_eos = false;
  const auto made = generate(*rig.stage, nullptr, ids, options);
  BOOST_REQUIRE(made);
  auto all = ids;
  all.insert(all.end(), made->ids.begin(), made->ids.end() - 1);
  const auto logits = rig.logits(all, all.size());
  for (std::size_t i = 0; i != made->ids.size(); ++i) {
    const auto row = std::span(logits).subspan(
      (ids.size() - 1 + i) * config.vocab_size, config.vocab_size);
    BOOST_TEST(token_id(std::ranges::max_element(row) - row.begin())
               == made->ids[i]);
  }
}

BOOST_AUTO_TEST_CASE(a_cache_takes_the_bytes_of_its_pages) {
  inference_rig rig(golden_folder() / "tiny_mixtral");
  const auto layers = rig.config.num_hidden_layers;
  for (const kv_type kv : kv_types) {
    const paged_cache cache(*rig.stage, 7, kv);
    BOOST_TEST(cache.bytes()
               == 7 * paged_cache::page_bytes(rig.config, layers, kv));
  }
  BOOST_TEST(paged_cache::page_bytes(rig.config, 1, kv_type::bf16)
             < paged_cache::page_bytes(rig.config, 1, kv_type::f32));
}

BOOST_DATA_TEST_CASE(smaller_caches_give_near_logits, golden_families, name) {
  inference_rig rig(golden_folder() / name);
  const auto ids = some_ids(rig.config, 60);
  const auto exact = rig.logits(ids, 60, kv_type::f32);
  const auto error = [&](kv_type kv) {
    return relative_error(rig.logits(ids, 60, kv), exact);
  };
  const double bf16 = error(kv_type::bf16), q8 = error(kv_type::q8);
  BOOST_TEST_MESSAGE(name << ": logits differ by " << bf16 << " with keys and "
                          << "values in bf16, by " << q8 << " in q8");
  // A slight change may make a router choose other experts.
  const bool experts = rig.config.num_experts > 0;
  BOOST_TEST(bf16 > 0);
  BOOST_TEST(bf16 < 1e-2);
  BOOST_TEST(q8 > 0);
  BOOST_TEST(q8 < (experts ? 0.3 : 3e-2));
}

BOOST_AUTO_TEST_CASE(the_type_of_the_cache_follows_the_weights) {
  const auto usual = [](const char* model, weight_choice choice) {
    return usual_kv_type(*inference_rig(golden_folder() / model, choice).stage);
  };
  using kernels::weight_type;
  BOOST_TEST(usual("tiny_llama", {}) == kv_type::f32);
  BOOST_TEST(usual("tiny_llama", weight_type::q8) == kv_type::bf16);
  BOOST_TEST(usual("tiny_bf16", {}) == kv_type::bf16);
  BOOST_TEST(usual("tiny_bf16", weight_type::f32) == kv_type::f32);
  for (const kv_type kv : kv_types)
    BOOST_TEST((kv_type_named(kernels::name_of(kv)) == kv));
  BOOST_TEST(!kv_type_named("q4"));
  BOOST_TEST(!kv_type_named(""));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
