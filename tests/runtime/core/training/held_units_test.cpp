// tests/runtime/core/training/held_units_test.cpp -- the state that is here.
#include "runtime/core/training/job/state/held_units.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::test {

BOOST_AUTO_TEST_SUITE(job_held_units)

using namespace shoal::core;
using units = std::vector<std::uint32_t>;

namespace {

part_set parts(std::initializer_list<part_index> all) {
  part_set out;
  for (const part_index p : all)
    out.add(p);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_load_voids_what_was_held_until_it_is_complete) {
  held_units h;
  h.set(1, {5, 2});
  h.begin_loads(42);
  h.load(1, {4, 3});
  BOOST_TEST(!h.versions().contains(1));
  BOOST_TEST(h.loads(1));
  BOOST_TEST(!h.loaded(41, 1)); // of another assignment
  BOOST_TEST(!h.loaded(42, 2)); // not awaited
  BOOST_TEST(h.loaded(42, 1));
  BOOST_TEST(h.loading() == 0u);
  BOOST_TEST(h.is_at(1, {4, 3}));
  BOOST_TEST(!h.is_at(1, {5, 2}));
  BOOST_TEST(!h.is_at(2, {4, 3}));
}

BOOST_AUTO_TEST_CASE(only_what_nothing_needs_is_spare) {
  held_units h;
  for (std::uint32_t u = 0; u < 5; ++u)
    h.set(u, {3, 2});
  BOOST_TEST((h.take_spare(parts({1, 2, 4})) == units{0, 3}));
  BOOST_TEST(h.versions().size() == 3u);
  BOOST_TEST(h.take_spare(parts({1, 2, 4})).empty()); // once
}

// The shell may have memory for it.
BOOST_AUTO_TEST_CASE(a_broken_off_load_is_spare_although_not_held) {
  held_units h;
  h.begin_loads(42);
  h.load(3, {4, 3});
  h.break_off();
  BOOST_TEST(h.loading() == 0u);
  BOOST_TEST(!h.loaded(42, 3)); // too late
  BOOST_TEST((h.take_spare(parts({1})) == units{3}));
  BOOST_TEST(h.take_spare(parts({1})).empty());
}

BOOST_AUTO_TEST_CASE(a_seal_names_versions_gradients_and_digests) {
  held_units h;
  h.set(1, {4, 2});
  h.set(2, {4, 2});
  h.hashed({{2, 99}, {7, 98}}); // 7 is not held
  h.set(2, {5, 2});             // the digest is of what was hashed
  const auto sealed = h.sealed({1});
  BOOST_REQUIRE(sealed.size() == 2u);
  BOOST_TEST((sealed[0].unit == 1 && sealed[0].prepared));
  BOOST_TEST((sealed[0].hashed == state_version{}));
  BOOST_TEST((sealed[1].applied == state_version{5, 2}));
  BOOST_TEST(!sealed[1].prepared);
  BOOST_TEST((sealed[1].hashed == state_version{4, 2}));
  BOOST_TEST(sealed[1].digest == 99u);
}

BOOST_AUTO_TEST_CASE(a_digest_is_forgotten_with_its_unit) {
  held_units h;
  h.set(1, {4, 2});
  h.hashed({{1, 99}});
  h.forget(1);
  h.set(1, {4, 2});
  BOOST_TEST((h.sealed({})[0].hashed == state_version{}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
