// tests/runtime/core/training/known_checkpoints_test.cpp -- what a peer knows of
// checkpoints.
#include "runtime/core/training/job/state/known_checkpoints.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_known_checkpoints)

namespace {

checkpoint_ref of_step(std::uint64_t step, epoch since = 2) {
  checkpoint_ref c;
  c.step = step;
  c.manifest[0] = std::uint8_t(step);
  c.since = since;
  return c;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_newest_stays) {
  known_checkpoints k;
  k.hold(of_step(10), peer(1));
  BOOST_TEST((k.newest() == of_step(10)));
  k.hold(of_step(20), peer(1));
  k.hold(of_step(5), peer(1));
  BOOST_TEST((k.newest() == of_step(20)));
  BOOST_TEST(k.held().size() == 3u);
  k.drop(of_step(5));
  k.drop(of_step(20));
  BOOST_TEST((k.held()
              == std::map<checkpoint_ref, part_set>{{of_step(10), {}},
                                                    {of_step(20), {}}}));
}

BOOST_AUTO_TEST_CASE(it_knows_of_which_parts_the_store_has_files) {
  known_checkpoints k;
  const part_set all(part_range{0, 8}), low(part_range{0, 4});
  BOOST_TEST(!k.has(of_step(10), {}));
  k.hold(of_step(10), peer(1), part_set(part_range{4, 6}));
  BOOST_TEST(k.has(of_step(10), low));
  BOOST_TEST(!k.has(of_step(10), all));
  k.hold(of_step(10), peer(1));
  BOOST_TEST(k.has(of_step(10), all));
}

BOOST_AUTO_TEST_CASE(what_is_held_was_published) {
  known_checkpoints k;
  k.hold(of_step(10), peer(1));
  k.hear(of_step(10), {peer(3), peer(2)});
  BOOST_TEST(
    (k.holders(of_step(10), peer(1)) == std::vector{peer(2), peer(3)}));
  BOOST_TEST(k.holders(of_step(11), peer(1)).empty());
  k.hear({}, {peer(2)}); // of a checkpoint that failed
  BOOST_TEST(k.heard().size() == 1u);
}

BOOST_AUTO_TEST_CASE(one_that_is_given_up_is_gone_until_it_is_made_again) {
  known_checkpoints k;
  k.hold(of_step(10), peer(1));
  k.hold(of_step(20), peer(1));
  BOOST_TEST(k.give_up(of_step(20)));
  BOOST_TEST(!k.give_up(of_step(20)));
  BOOST_TEST((k.newest() == of_step(10)));
  BOOST_TEST(k.held().size() == 1u);
  BOOST_TEST(k.heard().size() == 1u);
  k.hear(of_step(20), {peer(2)});
  BOOST_TEST(k.heard().size() == 1u);
  BOOST_TEST(!k.is_given_up(of_step(20, 3)));
  k.hear(of_step(20, 3), {peer(2)});
  BOOST_TEST(k.heard().size() == 2u);
}

/// One after the other, since no disk has any of them whole; all stores together
/// may have that many.
BOOST_AUTO_TEST_CASE(as_many_are_given_up_as_a_seal_can_name) {
  known_checkpoints k;
  for (std::uint64_t step = checkpoints_told_max; step > 0; --step)
    BOOST_TEST(k.give_up(of_step(step)));
  for (std::uint64_t step = checkpoints_told_max; step > 0; --step)
    BOOST_TEST(!k.give_up(of_step(step)));
}

BOOST_AUTO_TEST_CASE(without_an_older_one_nothing_is_held) {
  known_checkpoints k;
  k.hold(of_step(10), peer(1));
  (void)k.give_up(of_step(10));
  BOOST_TEST((k.newest() == checkpoint_ref{}));
}

BOOST_AUTO_TEST_CASE(of_each_kind_only_the_newest_are_kept) {
  known_checkpoints k;
  for (std::uint64_t step = 1; step <= 30; ++step)
    k.hold(of_step(step), peer(1));
  BOOST_TEST(k.held().size() == known_checkpoints::held_max);
  BOOST_TEST(k.newest().step == 30u);
  BOOST_TEST(k.heard().size() == known_checkpoints::heard_max);
  for (std::uint64_t step = 31; step <= 60; ++step)
    (void)k.give_up(of_step(step));
  BOOST_TEST(k.given_up().size() == known_checkpoints::given_up_max);
  BOOST_TEST((k.given_up().back() == of_step(60)));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
