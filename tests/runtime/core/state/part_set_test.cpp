// tests/runtime/core/state/part_set_test.cpp -- sets of parts, against a set of
// numbers.
#include "runtime/core/state/part_set.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <set>

namespace shoal::test {

BOOST_AUTO_TEST_SUITE(part_sets)

using namespace shoal::core;
using parts = std::vector<part_index>;

BOOST_AUTO_TEST_CASE(runs_that_touch_become_one) {
  part_set s(part_range{2, 4});
  s.add(part_range{6, 8});
  s.add(part_range{5, 5}); // nothing
  BOOST_TEST(s.runs().size() == 2u);
  s.add(part_range{4, 6});
  BOOST_TEST((s.runs() == std::vector<part_range>{{2, 8}}));
  s.remove(part_range{3, 5});
  BOOST_TEST((s.runs() == std::vector<part_range>{{2, 3}, {5, 8}}));
  BOOST_TEST((s.list() == parts{2, 5, 6, 7}));
}

BOOST_AUTO_TEST_CASE(an_empty_set_has_and_lacks_nothing) {
  const part_set none, some(part_range{0, 2});
  BOOST_TEST(none.list().empty());
  BOOST_TEST(!none.contains(0));
  BOOST_TEST(!none.overlaps({0, 9}));
  BOOST_TEST(none.includes(none));
  BOOST_TEST(some.includes(none));
  BOOST_TEST(!none.includes(some));
  BOOST_TEST(!some.overlaps({1, 1}));
}

BOOST_AUTO_TEST_CASE(it_behaves_as_a_set_of_numbers) {
  constexpr part_index most = 24;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&] {
      const part_index first = random() % most;
      return part_range{first, first + part_index(random() % 6)};
    };
    part_set s, other;
    std::set<part_index> numbers, others;
    for (int step = 0; step < 12; ++step) {
      const part_range r = draw();
      const bool adds = random() % 3 != 0;
      adds ? s.add(r) : s.remove(r);
      for (part_index p = r.first; p < r.last; ++p)
        adds ? void(numbers.insert(p)) : void(numbers.erase(p));
      const part_range o = draw();
      other.add(o);
      for (part_index p = o.first; p < o.last; ++p)
        others.insert(p);
    }
    BOOST_TEST((s.list() == parts(numbers.begin(), numbers.end())));
    BOOST_TEST(s.size() == numbers.size());
    for (std::size_t i = 0; i < s.runs().size(); ++i) {
      BOOST_TEST(!s.runs()[i].empty());
      BOOST_TEST((i == 0 || s.runs()[i - 1].last < s.runs()[i].first));
    }
    const part_range r = draw();
    const auto inside = std::ranges::count_if(
      numbers, [&](part_index p) { return r.contains(p); });
    BOOST_TEST(s.count(r) == inside);
    BOOST_TEST(s.overlaps(r) == (inside > 0));
    for (part_index p = 0; p < most + 6; ++p)
      BOOST_TEST(s.contains(p) == numbers.contains(p));
    BOOST_TEST(s.includes(other) == std::ranges::includes(numbers, others));
    part_set both = s, without = s;
    both.add(other);
    without.remove(other);
    BOOST_TEST(both.includes(other));
    BOOST_TEST(both.size()
                 + std::uint32_t(std::ranges::count_if(
                   others, [&](part_index p) { return s.contains(p); }))
               == s.size() + other.size());
    for (const part_index p : without)
      BOOST_TEST((numbers.contains(p) && !others.contains(p)));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
