// tests/runtime/observe/training_operations_test.cpp -- in the product each
// operation equals the function of its name, to the bit.
#include "kernels/backend.hpp"
#include "runtime/core/training/data_order.hpp"
#include "runtime/observe/training_operations.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

namespace shoal::runtime {
BOOST_AUTO_TEST_SUITE(training_operations_)

namespace {

model::unit_state small_unit() {
  model::model_config c;
  c.vocab_size = 16;
  c.hidden_size = 8;
  c.intermediate_size = 8;
  c.num_hidden_layers = 1;
  c.num_attention_heads = 2;
  c.num_key_value_heads = 1;
  c.head_dim = 4;
  c.bos_token_id.reset();
  c.eos_token_ids.clear();
  return model::unit_state(std::make_shared<const model::unit_layout>(c), 1,
                           model::purpose::training);
}

bool same(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b);
}

} // namespace

BOOST_AUTO_TEST_CASE(units_begin_and_change_as_by_the_functions_of_the_model) {
  auto device = kernels::make_reference_backend();
  auto by_hand = small_unit(), by_operation = small_unit();
  model::initialise(by_hand, 7);
  plain_operations().initialise(by_operation, 7);
  BOOST_TEST(same(by_hand.parameters(), by_operation.parameters()));
  const std::vector<float> before(by_hand.parameters().begin(),
                                  by_hand.parameters().end());
  for (auto* unit : {&by_hand, &by_operation})
    std::ranges::fill(unit->gradients(), 0.5f);
  kernels::adamw_options options;
  options.step = 3;
  model::apply(by_hand, *device, options);
  plain_operations().apply(by_operation, *device, options);
  BOOST_TEST(!same(by_hand.parameters(), before));
  BOOST_TEST(same(by_hand.parameters(), by_operation.parameters()));
  BOOST_TEST(same(by_hand.second_moment(), by_operation.second_moment()));
}

BOOST_AUTO_TEST_CASE(samples_are_those_of_the_data_order) {
  const core::data_order order(7, 100, 4);
  for (std::uint64_t step = 1; step <= 30; ++step)
    for (std::uint32_t index = 0; index < 4; ++index)
      BOOST_TEST(plain_operations().sample(order, step, index)
                 == order.sample(step, index));
}

BOOST_AUTO_TEST_CASE(state_is_copied_once_and_read_once) {
  auto unit = small_unit();
  int copied = 0;
  plain_operations().copy_in(unit, [&] { ++copied; });
  BOOST_TEST(copied == 1);
  int read = 0;
  const auto good = plain_operations().load(unit, [&]() -> model::status {
    ++read;
    return model::done{};
  });
  BOOST_TEST(bool(good));
  const auto bad = plain_operations().load(unit, [&]() -> model::status {
    ++read;
    return model::failure{"the file is damaged"};
  });
  BOOST_TEST(!bad);
  BOOST_TEST(read == 2);
}

BOOST_AUTO_TEST_CASE(a_step_is_the_cores) {
  const core::island_place place = test::make_place(1, 1);
  core::job_core job = test::started(place, 1);
  const auto out =
    plain_operations().step(job, test::make_prepared(place, 1, 1, 1), 0);
  BOOST_TEST(test::all<core::job_action::apply>(out).size() == 1u);
  BOOST_TEST((job.now_in() == core::job_core::phase::applying));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
