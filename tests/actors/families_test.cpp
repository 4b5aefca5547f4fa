// tests/actors/families_test.cpp -- each model family on different layouts.
//
// Goal: a family only differs in its block. Stages change no bit of its losses
// and of the trained model's output; replicas agree to rounding and give the
// same output.
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/model/decode/generate.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "tests/actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>

BOOST_AUTO_TEST_SUITE(families)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

constexpr std::string_view prompt = "abejq"; // as some_text() begins
constexpr std::size_t greedy_tokens = 16;

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const model::family& f : model::families())
    out.emplace_back(f.model_type);
  return out;
}

/// A small run with what the family has and a Llama has not.
run_config family_run(const std::string& name, std::int64_t replicas,
                      std::int64_t stages) {
  run_config run = small_run(replicas, stages);
  const model::model_config sizes = run.model;
  for (const model::family& f : model::families())
    if (f.model_type == name)
      run.model = f.usual;
  model::model_config& m = run.model;
  m.model_type = name;
  m.vocab_size = sizes.vocab_size;
  m.hidden_size = sizes.hidden_size;
  m.intermediate_size = sizes.intermediate_size;
  m.num_hidden_layers = sizes.num_hidden_layers;
  m.num_attention_heads = sizes.num_attention_heads;
  const bool rotary = model::family_of(m).rotary;
  m.num_key_value_heads = rotary ? sizes.num_key_value_heads : 2;
  m.head_dim = sizes.head_dim;
  m.max_position_embeddings = prompt.size() + greedy_tokens;
  m.bos_token_id.reset();
  m.eos_token_ids.clear();
  if (m.num_experts != 0) {
    m.num_experts = 3;
    m.num_experts_per_tok = 2;
    m.router_aux_loss_coef = 0.1;
  }
  if (m.sliding_window != 0)
    m.sliding_window = 3;
  if (model::family_of(m).windows == model::family::window::alternate)
    m.sliding_layers = {true, false, true, false};
  if (model::family_of(m).windows == model::family::window::upper)
    m.sliding_layers = {false, false, false, true};
  return run;
}

/// A run, and what the model that it left says.
struct trained {
  run_record record;
  std::vector<model::token_id> ids; ///< greedy, after the prompt
  std::vector<float> logits_TV;     ///< by which each of them was chosen

  /// How far the best of a row is above the second, at least.
  float margin() const {
    float least = HUGE_VALF;
    const std::size_t words = logits_TV.size() / ids.size();
    for (std::size_t t = 0; t < ids.size(); ++t) {
      std::vector<float> row(&logits_TV[t * words],
                             &logits_TV[t * words] + words);
      std::ranges::partial_sort(row, row.begin() + 2, std::greater<>());
      least = std::min(least, row[0] - row[1]);
    }
    return least;
  }
};

/// The largest difference of two logits of the same place.
float furthest(const trained& a, const trained& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.logits_TV.size(); ++i)
    most = std::max(most, std::abs(a.logits_TV[i] - b.logits_TV[i]));
  return most;
}

/// Copies the run's last checkpoint from the peers that hold its files.
void fetch(const small_shoal& s, std::size_t peers,
           const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  for (std::size_t n = 0; n < peers; ++n)
    for (const auto& [name, file] : s.checkpoint(n, std::uint64_t(steps)))
      if (fs::exists(file))
        fs::copy_file(file, to / name, fs::copy_options::overwrite_existing);
}

/// Generates after the prompt with the model in a directory.
void generate_from(const std::filesystem::path& directory, trained& out) {
  kernels::thread_team team{1};
  const auto device = kernels::make_cpu_backend(team);
  auto loaded = model::load_for_inference(directory, {}, *device);
  BOOST_REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.message()));
  model::inference_stage stage(std::move(loaded->units), *device);
  std::vector<model::token_id> ids;
  for (const char c : prompt)
    ids.push_back(static_cast<unsigned char>(c));
  model::generate_options options;
  options.max_tokens = greedy_tokens;
  options.temperature = 0;
  const auto made = model::generate(stage, nullptr, ids, options);
  BOOST_REQUIRE(made);
  BOOST_REQUIRE_EQUAL(made->ids.size(), greedy_tokens);
  out.ids = made->ids;
  ids.insert(ids.end(), out.ids.begin(), out.ids.end() - 1);
  const std::size_t words = loaded->config.vocab_size;
  std::vector<float> all(ids.size() * words);
  model::paged_cache(stage, core::pages_for(ids.size()), model::kv_type::f32)
    .compute(model::one_sequence(0, ids.size(), ids.size()), ids, {}, {}, all);
  out.logits_TV.assign(all.end() - std::ptrdiff_t(greedy_tokens * words),
                       all.end());
}

trained train(std::size_t peers, const run_config& run) {
  small_shoal s(peers, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  trained out;
  out.record = s.record(0);
  const scratch folder("shoal-families");
  fetch(s, peers, folder.path());
  generate_from(folder.path(), out);
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(a_run_of_any_family_travels_as_it_is, bdata::make(names()),
                     name) {
  const run_config run = family_run(name, 1, 1);
  const auto again = runtime::parse_run(runtime::to_json(run), "job");
  BOOST_REQUIRE_MESSAGE(again, (again ? "" : again.message()));
  BOOST_TEST((again->model == run.model));
}

// 1,200 tensors in a block and 72,000 in all: votes do not name each of them.
BOOST_AUTO_TEST_CASE(a_job_of_400_experts_in_60_blocks_commits_steps) {
  run_config run = family_run("qwen3_moe", 1, 2);
  run.model.num_hidden_layers = 60;
  run.model.num_experts = 400;
  run.model.hidden_size = 8;
  run.model.intermediate_size = 2;
  run.steps = 2;
  run.global_batch_size = 2;
  run.validation_freq = 100;
  small_shoal s(2, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.record(0).state == "done");
  BOOST_TEST(s.record(0).losses.size() == 2u);
}

BOOST_DATA_TEST_CASE(layouts_give_the_losses_and_tokens_of_one_peer,
                     bdata::make(names()), name) {
  const trained want = train(1, family_run(name, 1, 1));
  const auto& losses = want.record.losses;
  const auto& norms = want.record.norms;
  BOOST_REQUIRE_EQUAL(losses.size(), std::size_t(steps));
  BOOST_TEST(want.record.state == "done");
  BOOST_TEST(losses.back() < losses.front());
  const trained staged = train(2, family_run(name, 1, 2));
  BOOST_TEST(staged.record.losses == losses, boost::test_tools::per_element());
  BOOST_TEST(staged.record.norms == norms, boost::test_tools::per_element());
  BOOST_TEST(staged.ids == want.ids, boost::test_tools::per_element());
  BOOST_TEST((staged.logits_TV == want.logits_TV)); // the last bit

  const trained replicated = train(2, family_run(name, 2, 1));
  BOOST_REQUIRE_EQUAL(replicated.record.losses.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    BOOST_TEST(std::abs(replicated.record.losses[i] / losses[i] - 1) < 1e-5);
    BOOST_TEST(std::abs(replicated.record.norms[i] / norms[i] - 1) < 1e-5);
  }
  // With these seeds the second best token is much further off than what the
  // sums of replicas change, on any processor: rounding does not decide.
  BOOST_REQUIRE_EQUAL(replicated.logits_TV.size(), want.logits_TV.size());
  BOOST_TEST(want.margin() > 10 * furthest(replicated, want));
  BOOST_TEST(replicated.ids == want.ids, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
