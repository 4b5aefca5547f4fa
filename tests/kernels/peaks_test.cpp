// tests/kernels/peaks_test.cpp -- which limit figures of speed are set against.
#include "kernels/cpu/isa/features.hpp"
#include "kernels/cpu/product/panels.hpp"
#include "kernels/peaks.hpp"
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(peaks)

namespace {

using kernels::peak;
using kernels::peak_of_products;
using kernels::weight_type;

} // namespace

BOOST_AUTO_TEST_CASE(the_limit_is_that_of_the_path_that_runs) {
  for_each_backend([](kernels::backend& on) {
    if (on.name() == "reference")
      return;
    const auto [vnni, bf16, amx] = kernels::cpu::usable_features();
    static_cast<void>(amx); // multiplies in training only
    const bool i16 = kernels::cpu::has_i16_products();
    BOOST_TEST((peak_of_products(weight_type::f32) == peak::f32));
    BOOST_TEST(
      (peak_of_products(weight_type::bf16) == (bf16 ? peak::bf16 : peak::f32)));
    for (const auto type : {weight_type::q8, weight_type::q4})
      BOOST_TEST((peak_of_products(type)
                  == (vnni  ? peak::int8
                      : i16 ? peak::int16
                            : peak::f32)));
  });
}

BOOST_AUTO_TEST_CASE(a_limit_has_an_instruction_and_is_above_0) {
  kernels::thread_team team(1);
  for_each_backend([&](kernels::backend&) {
    for (const auto which : {peak::f32, peak::bf16, peak::int16, peak::int8})
      BOOST_TEST((kernels::measure_peak(team, which) > 0)
                 == !kernels::instruction_of(which).empty());
    for (const auto type : {weight_type::f32, weight_type::bf16,
                            weight_type::q8, weight_type::q4})
      BOOST_TEST(
        !kernels::instruction_of(kernels::peak_of_products(type)).empty());
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
