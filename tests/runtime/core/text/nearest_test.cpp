// tests/runtime/core/text/nearest_test.cpp -- suggestions for mistyped words.
#include "runtime/core/text/nearest.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(nearest_words)

using namespace shoal::core;

BOOST_AUTO_TEST_CASE(a_change_is_one_letter_or_two_swapped) {
  BOOST_TEST(edit_distance("", "") == 0u);
  BOOST_TEST(edit_distance("", "abc") == 3u);
  BOOST_TEST(edit_distance("steps", "steps") == 0u);
  BOOST_TEST(edit_distance("stesp", "steps") == 1u); // swapped
  BOOST_TEST(edit_distance("tarin", "train") == 1u);
  BOOST_TEST(edit_distance("node", "nodee") == 1u); // added
  BOOST_TEST(edit_distance("ndoe", "node") == 1u);
  BOOST_TEST(edit_distance("kitten", "sitting") == 3u);
}

BOOST_AUTO_TEST_CASE(the_nearest_known_word_is_meant_if_it_is_near) {
  const std::vector<std::string_view> known{"name", "join", "peers"};
  BOOST_TEST(nearest("nmae", known, 1) == "name");
  BOOST_TEST(nearest("port", known, 1).empty());
  BOOST_TEST(did_you_mean("nmae", known) == "; did you mean 'name'?");
  BOOST_TEST(did_you_mean("jion", known, "--") == "; did you mean '--join'?");
  BOOST_TEST(did_you_mean("something-else", known).empty());
  BOOST_TEST(did_you_mean("x", {}).empty());
  // "did you mean 'a'?" of every short word.
  BOOST_TEST(did_you_mean("zz", {"a", "b"}).empty());
  BOOST_TEST(did_you_mean("node", {"name", "key"}).starts_with("; "));
}

BOOST_AUTO_TEST_SUITE_END()
