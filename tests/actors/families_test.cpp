// tests/actors/families_test.cpp -- each model family on different layouts.
//
// Goal: a family is nothing but another block: stages change no bit of its
// losses, replicas agree to rounding.
#include "actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

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
  m.max_position_embeddings = sizes.max_position_embeddings;
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

run_record record_of(std::size_t peers, const run_config& run) {
  small_shoal s(peers, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  return s.record(0);
}

} // namespace

BOOST_AUTO_TEST_SUITE(families)

BOOST_DATA_TEST_CASE(a_run_of_any_family_travels_as_it_is, bdata::make(names()),
                     name) {
  const run_config run = family_run(name, 1, 1);
  const auto again = runtime::parse_run(runtime::to_json(run), "job");
  BOOST_REQUIRE_MESSAGE(again, (again ? "" : again.message()));
  BOOST_TEST((again->model == run.model));
}

BOOST_DATA_TEST_CASE(layouts_give_the_losses_of_one_peer, bdata::make(names()),
                     name) {
  const run_record want = record_of(1, family_run(name, 1, 1));
  BOOST_REQUIRE_EQUAL(want.losses.size(), std::size_t(steps));
  BOOST_TEST(want.state == "done");
  BOOST_TEST(want.losses.back() < want.losses.front());
  const run_record staged = record_of(2, family_run(name, 1, 2));
  BOOST_TEST(staged.losses == want.losses, boost::test_tools::per_element());
  BOOST_TEST(staged.norms == want.norms, boost::test_tools::per_element());
  const run_record replicated = record_of(2, family_run(name, 2, 1));
  BOOST_REQUIRE_EQUAL(replicated.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i) {
    BOOST_TEST(std::abs(replicated.losses[i] / want.losses[i] - 1) < 1e-5);
    BOOST_TEST(std::abs(replicated.norms[i] / want.norms[i] - 1) < 1e-5);
  }
}

BOOST_AUTO_TEST_SUITE_END()
