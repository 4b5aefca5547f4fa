// tests/runtime/node/vote_file_test.cpp -- votes survive, damage is noticed.
#include "node/swarm.hpp"
#include "runtime/vote_file.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

namespace shoal::runtime {

namespace cl = core::cluster;

BOOST_AUTO_TEST_SUITE(vote_files)

BOOST_AUTO_TEST_CASE(an_empty_directory_has_no_history) {
  tests::swarm s;
  auto history = vote_file(s.root).load();
  BOOST_TEST(!history.view);
  BOOST_TEST(!history.vote);
}

BOOST_AUTO_TEST_CASE(the_newest_records_come_back) {
  tests::swarm s;
  vote_file votes(s.root);
  for (core::epoch number : {1, 2, 3}) {
    cl::view_record view;
    view.current.number = number;
    view.seated = true;
    cl::vote_record vote;
    vote.base = number;
    BOOST_TEST(!votes.write(view));
    BOOST_TEST(!votes.write(vote));
  }
  auto history = vote_file(s.root).load();
  BOOST_TEST_REQUIRE((history.view && history.vote));
  BOOST_TEST(history.view->current.number == 3U);
  BOOST_TEST(history.vote->base == 3U);
  BOOST_TEST(!votes.erase());
  BOOST_TEST(!vote_file(s.root).load().view);
}

BOOST_AUTO_TEST_CASE(a_damaged_or_cut_file_is_an_error_and_no_empty_history) {
  tests::swarm s;
  vote_file votes(s.root);
  BOOST_TEST(!votes.write(cl::vote_record{}));
  auto file = s.root / "vote.record";
  auto size = std::filesystem::file_size(file);
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(size) - 1);
    out.put('\x7f');
  }
  BOOST_CHECK_THROW(votes.load(), node_error);
  std::filesystem::resize_file(file, size - 1);
  BOOST_CHECK_THROW(votes.load(), node_error);
  std::filesystem::resize_file(file, 3);
  BOOST_CHECK_THROW(votes.load(), node_error);
}

BOOST_AUTO_TEST_CASE(a_peer_that_keeps_nothing_writes_nothing) {
  vote_file votes("");
  BOOST_TEST(!votes.write(cl::vote_record{}));
  BOOST_TEST(!votes.load().vote);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
