// tests/runtime/model/units_test.cpp -- layout and state of units.
#include "runtime/model/random_normal.hpp"
#include "runtime/model/units.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <memory_resource>
#include <numeric>
#include <set>

BOOST_AUTO_TEST_SUITE(units)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

void check_layout(const model_config& config) {
  const bool tied = config.tie_word_embeddings;
  const unit_layout layout(config);
  std::set<std::string> names;
  std::size_t seen = 0;
  std::uint64_t parameters = 0;
  for (unit_index u = 0; u < layout.unit_count(); ++u) {
    BOOST_TEST(layout.first_tensor(u) == seen);
    std::size_t at = 0;
    for (const tensor_info& t : layout.tensors_of(u)) {
      BOOST_TEST(t.unit == u);
      BOOST_TEST(t.offset == at);
      BOOST_TEST(t.size
                 == std::accumulate(t.shape.begin(), t.shape.end(),
                                    std::size_t(1), std::multiplies<>()));
      BOOST_TEST(names.insert(t.name).second);
      BOOST_TEST(*layout.find(t.name) == seen);
      const slice whole = layout.whole(static_cast<tensor_index>(seen));
      BOOST_TEST(whole.last == t.shape[0]);
      at += t.size;
      parameters += t.copy_of ? 0 : t.size;
      ++seen;
    }
    BOOST_TEST(layout.unit_size(u) == at);
  }
  BOOST_TEST(seen == layout.tensors().size());
  const std::uint64_t counted = tensor_count(config);
  BOOST_TEST(counted >= seen); // q, k and v may be one weight and one bias
  BOOST_TEST(counted <= seen + 4 * config.num_hidden_layers);
  BOOST_TEST(layout.parameter_count() == parameters);
  BOOST_TEST(layout.tied().has_value() == tied);
  BOOST_TEST(!layout.find("lm_head.bias").has_value());
}

} // namespace

BOOST_DATA_TEST_CASE(every_tensor_is_in_one_unit_once,
                     bdata::make({false, true}), tied) {
  check_layout(tiny_config(tied));
}

BOOST_DATA_TEST_CASE(every_tensor_of_a_family_is_in_one_unit_once,
                     bdata::make(family_names()), name) {
  check_layout(tiny_family(name));
}

BOOST_DATA_TEST_CASE(norms_begin_as_no_change_and_biases_as_nothing,
                     bdata::make(family_names()), name) {
  const auto layout = std::make_shared<unit_layout>(tiny_family(name));
  const float norm = 1 - family_of(layout->config()).norm_offset;
  for (unit_index u = 0; u < layout->unit_count(); ++u) {
    unit_state unit(layout, u, purpose::serving);
    initialise(unit, 7);
    for (const tensor_info& t : layout->tensors_of(u)) {
      if (t.shape.size() != 1)
        continue;
      const bool bias = t.name.ends_with(".bias");
      BOOST_TEST_CONTEXT(t.name)
      BOOST_TEST(unit.parameters()[t.offset] == (bias ? 0 : norm));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_window_makes_attention_cheaper) {
  model_config config = tiny_family("gemma2");
  const auto weights = [&] {
    model_config none = config;
    none.sliding_window = 0;
    return unit_operations(none, 1, 1);
  }();
  const auto some = unit_operations(config, 1, 1000) - weights;
  config.sliding_window = 0;
  config.sliding_layers.clear();
  const auto all = unit_operations(config, 1, 1000) - weights;
  BOOST_TEST(some < all);
  BOOST_TEST(some > all / 3); // one block of three has no window
}

BOOST_AUTO_TEST_CASE(initial_values_depend_on_seed_and_name_alone) {
  const auto layout = std::make_shared<unit_layout>(tiny_config());
  unit_state a(layout, 2, purpose::serving);
  unit_state b(layout, 2, purpose::training);
  unit_state other_unit(layout, 3, purpose::serving);
  initialise(a, 7);
  initialise(b, 7);
  initialise(other_unit, 7);
  BOOST_TEST(std::ranges::equal(a.parameters(), b.parameters()));
  BOOST_TEST(!std::ranges::equal(a.parameters(), other_unit.parameters()));
  initialise(b, 8);
  BOOST_TEST(!std::ranges::equal(a.parameters(), b.parameters()));
  BOOST_TEST(a.parameters()[0] == 1.0f); // a norm
}

/// Counts memory that is allocated and not freed yet.
class counting_memory final : public std::pmr::memory_resource {
public:
  std::size_t bytes = 0;

private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    bytes += size;
    return std::pmr::new_delete_resource()->allocate(size, alignment);
  }
  void do_deallocate(void* p, std::size_t size, std::size_t align) override {
    bytes -= size;
    std::pmr::new_delete_resource()->deallocate(p, size, align);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

BOOST_AUTO_TEST_CASE(gradients_lie_in_the_memory_that_is_given) {
  const auto layout = std::make_shared<unit_layout>(tiny_config());
  const auto memory = std::make_shared<counting_memory>();
  std::weak_ptr<counting_memory> watched = memory;
  {
    unit_state unit(layout, 1, purpose::training, memory);
    BOOST_TEST(memory->bytes == unit.size() * sizeof(float));
    BOOST_TEST(std::ranges::count(unit.gradients(), 0.0f)
               == std::ptrdiff_t(unit.size()));
    const unit_state moved = std::move(unit);
    BOOST_TEST(memory->bytes == moved.size() * sizeof(float));
    BOOST_TEST(watched.use_count() == 2);
  }
  BOOST_TEST(memory->bytes == 0u);
  BOOST_TEST(watched.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(tied_units_begin_equal) {
  const auto layout = std::make_shared<unit_layout>(tiny_config(true));
  unit_state first(layout, 0, purpose::serving);
  unit_state last(layout, layout->head_unit(), purpose::serving);
  initialise(first, 3);
  initialise(last, 3);
  BOOST_TEST(std::ranges::equal(
    first.parameters(), last.tensor(last.parameters(), layout->tied()->head)));
}

BOOST_AUTO_TEST_CASE(a_copy_counts_nothing_in_the_norm) {
  const auto layout = std::make_shared<unit_layout>(tiny_config(true));
  unit_state last(layout, layout->head_unit(), purpose::training);
  std::ranges::fill(last.gradients(), 1.0f);
  const auto device = kernels::make_reference_backend();
  const auto sums = sums_of_squares(last, *device);
  BOOST_REQUIRE(sums.size() == 2u);
  BOOST_TEST(sums[0] == 20.0);
  BOOST_TEST(sums[1] == 0.0);
}

BOOST_AUTO_TEST_CASE(clipping_is_that_of_pytorch) {
  BOOST_TEST(clip_scale(0.5, 1.0) == 1.0f);
  BOOST_TEST(clip_scale(4.0, 1.0) == static_cast<float>(1 / (4 + 1e-6)));
  BOOST_TEST(clip_scale(4.0, 0.0) == 1.0f);
}

// The known answers of Philox 4x32-10 by its authors (counter and key all 0,
// and all ones).
BOOST_AUTO_TEST_CASE(philox_gives_the_known_answers) {
  const std::array<std::uint32_t, 4> zeros = {0x6627e8d5, 0xe169c58d,
                                              0xbc57ac4c, 0x9b00dbd8};
  const std::array<std::uint32_t, 4> ones = {0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                             0x6d5451fd};
  const std::uint32_t f = 0xffffffff;
  BOOST_TEST((philox({0, 0, 0, 0}, {0, 0}) == zeros));
  BOOST_TEST((philox({f, f, f, f}, {f, f}) == ones));
}

BOOST_AUTO_TEST_CASE(normal_numbers_are_normal_and_addressed) {
  std::vector<float> values(100'001);
  fill_normal(values, stream_key(1, "x"), 2.0);
  std::array<double, 4> moments{};
  for (const double v : values)
    for (int k = 0; k < 4; ++k)
      moments[k] += std::pow(v / 2, k + 1) / static_cast<double>(values.size());
  BOOST_TEST(std::abs(moments[0]) < 0.015);
  BOOST_TEST(std::abs(moments[1] - 1) < 0.02);
  BOOST_TEST(std::abs(moments[2]) < 0.05);
  BOOST_TEST(std::abs(moments[3] - 3) < 0.12);
  std::vector<float> part(101);
  fill_normal(part, stream_key(1, "x"), 2.0, 501);
  BOOST_TEST(std::equal(part.begin(), part.end(), values.begin() + 501));
}

BOOST_AUTO_TEST_CASE(portable_log_is_log) {
  for (double x = 1e-30; x < 1e30; x *= 1.37)
    BOOST_TEST(std::abs(portable_log(x) - std::log(x))
               <= 1e-14 * std::max(1.0, std::abs(std::log(x))));
}

BOOST_AUTO_TEST_SUITE_END()
