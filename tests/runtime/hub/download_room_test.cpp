// tests/runtime/hub/download_room_test.cpp -- downloads side by side, and the room on
// their disk.
#include "runtime/hub/download_room.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>

namespace shoal::hub {
BOOST_AUTO_TEST_SUITE(download_rooms)

namespace {

struct disk {
  std::uint64_t free = 0;
  std::string why; ///< of the last refusal

  bool takes(download_room& room, const download_room::lacking& files) {
    const auto ok =
      room.reserve(files, [&] { return model::result<std::uint64_t>(free); });
    why = ok ? std::string() : ok.message();
    return bool(ok);
  }
};

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;

} // namespace

BOOST_AUTO_TEST_CASE(of_two_downloads_the_second_one_gets_what_is_left) {
  disk d{100 * mebi, {}};
  download_room other("elsewhere");
  BOOST_TEST(d.takes(other, {{"z", 90 * mebi}}));
  std::optional<download_room> first("cache");
  download_room second("cache");
  BOOST_TEST(d.takes(*first, {{"a", 60 * mebi}}));
  BOOST_TEST(!d.takes(second, {{"b", 41 * mebi}}));
  for (const char* part :
       {"needs 41 MiB", "100 MiB are free", "60 MiB are reserved"})
    BOOST_TEST(d.why.find(part) != std::string::npos, d.why);
  BOOST_TEST(d.takes(second, {{"b", 40 * mebi}}));
  BOOST_TEST(!d.takes(second, {{"c", 1}}));
  // What the first one has written is not free any more.
  d.free = 50 * mebi;
  first->lacks("a", 10 * mebi);
  BOOST_TEST(!d.takes(second, {{"c", 1}}));
  first.reset();
  BOOST_TEST(d.takes(second, {{"c", 10 * mebi}}));
}

BOOST_AUTO_TEST_CASE(a_file_that_both_want_is_counted_once) {
  disk d{100, {}};
  download_room first("cache"), second("cache");
  BOOST_TEST(d.takes(first, {{"a", 80}}));
  BOOST_TEST(d.takes(second, {{"a", 80}, {"b", 20}}));
  BOOST_TEST(!d.takes(first, {{"c", 1}}));
}

/// The one that waits for it knew only what was lacking at first.
BOOST_AUTO_TEST_CASE(a_file_that_both_want_lacks_what_the_faster_one_lacks) {
  disk d{100, {}};
  download_room waits("cache"), downloads("cache"), third("cache");
  BOOST_TEST(d.takes(waits, {{"a", 80}}));
  BOOST_TEST(d.takes(downloads, {{"a", 80}}));
  downloads.lacks("a", 10);
  d.free = 30;
  BOOST_TEST(!d.takes(third, {{"b", 21}}));
  BOOST_TEST(d.why.find("10 B are reserved") != std::string::npos, d.why);
  BOOST_TEST(d.takes(third, {{"b", 20}}));
  d.free = 31;
  BOOST_TEST(d.takes(waits, {{"c", 1}}));
  d.free = 32;
  BOOST_TEST(d.takes(downloads, {{"d", 1}}));
}

BOOST_AUTO_TEST_CASE(what_is_not_known_refuses_nothing) {
  download_room room("cache");
  BOOST_TEST(bool(room.reserve({{"a", 80}}, [] {
    return model::result<std::uint64_t>(model::failure{"no such folder"});
  })));
  BOOST_TEST(bool(room.reserve({}, [] { return std::uint64_t{0}; })));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::hub
