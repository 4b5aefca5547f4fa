// tests/runtime/wire/old_views_test.cpp -- views that earlier versions stored.
#include "runtime/wire/convert.hpp"
#include "runtime/wire/reflect.hpp"
#include "tests/runtime/wire/random_message.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime::codec {

BOOST_AUTO_TEST_SUITE(old_views)

/// As it was written before jobs had islands: the fields of the only place
/// beside that of the job.
static std::string
written_before_islands(core::job_id job, const core::island_place& place) {
  wire::IslandPlace fields;
  put(fields, place);
  wire::Assignment of_job;
  of_job.set_job(job);
  return of_job.SerializeAsString() + fields.SerializeAsString();
}

BOOST_AUTO_TEST_CASE(an_assignment_from_before_islands_is_one_island) {
  std::size_t read = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const core::assignment& a :
         tests::random_message(seed).view().previous)
      for (core::island_place place : a.islands) {
        place.part_keepers.clear();
        wire::Assignment message;
        BOOST_TEST_REQUIRE(
          message.ParseFromString(written_before_islands(a.job, place)));
        core::assignment out;
        checks c;
        get(message, out, c);
        BOOST_TEST(!c.error);
        BOOST_TEST((out == core::assignment{a.job, {place}}));
        ++read;
      }
  BOOST_TEST(read > 100u);
}

/// As it was written before seats: the member in field 1.
template <class Message>
static Message
written_before_seats(const Message& now, const core::member_id& who) {
  wire::MemberId member;
  put(member, who);
  const std::string of_member = member.SerializeAsString();
  Message out;
  BOOST_TEST_REQUIRE(out.ParseFromString(now.SerializeAsString() + '\x0a'
                                         + char(of_member.size()) + of_member));
  return out;
}

BOOST_AUTO_TEST_CASE(a_member_from_before_seats_is_its_first_device) {
  std::size_t stages = 0, holders = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const core::assignment& a :
         tests::random_message(seed).view().previous)
      for (const core::island_place& place : a.islands) {
        for (const core::replica_place& r : place.replicas)
          for (core::stage_place s : r.stages) {
            wire::StagePlace now;
            put(now, s);
            now.clear_shards();
            core::stage_place out;
            checks c;
            get(written_before_seats(now, s.lead()), out, c);
            BOOST_TEST(!c.error);
            s.shards = {{s.lead()}};
            BOOST_TEST((out == s));
            ++stages;
          }
        for (core::holder_place f : place.followers) {
          wire::HolderPlace now;
          put(now, f);
          now.clear_where();
          core::holder_place out;
          checks c;
          get(written_before_seats(now, f.where.member), out, c);
          BOOST_TEST(!c.error);
          f.where.device = 0;
          BOOST_TEST((out == f));
          ++holders;
        }
      }
  BOOST_TEST(stages > 100u);
  BOOST_TEST(holders > 10u);
}

BOOST_AUTO_TEST_CASE(a_stage_without_members_is_refused) {
  core::stage_place out;
  checks c;
  get(wire::StagePlace{}, out, c);
  BOOST_TEST(bool(c.error));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_place_are_refused) {
  wire::Assignment message;
  // Field 3, a replica, of 2 bytes that are no message.
  BOOST_TEST_REQUIRE(
    message.ParseFromString(std::string("\x1a\x02\xff\xff", 4)));
  core::assignment out;
  checks c;
  get(message, out, c);
  BOOST_TEST(bool(c.error));
}

BOOST_AUTO_TEST_CASE(a_job_from_before_kinds_trains_on_one_island) {
  wire::JobEntry old;
  put(old, core::job_entry{});
  old.clear_kind();
  old.clear_want_islands();
  core::job_entry out;
  checks c;
  get(old, out, c);
  BOOST_TEST(!c.error);
  BOOST_TEST((out.kind == core::job_kind::train));
  BOOST_TEST(out.want_islands == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime::codec
