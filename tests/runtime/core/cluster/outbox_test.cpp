// tests/runtime/core/cluster/outbox_test.cpp -- which actions wait for a disk,
// which pass, and the order in which records reach the disk.
#include "runtime/core/cluster/outbox.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace cluster_outbox {

using namespace shoal::core;
using namespace shoal::core::cluster;

namespace {

view view_of(epoch number, std::uint8_t shoal = 1) {
  view v;
  v.number = number;
  v.shoal[0] = shoal;
  return v;
}

history stored(epoch number) {
  history h;
  h.view = view_record{view_of(number), true, {}};
  return h;
}

persist vote(epoch base, std::uint64_t round) {
  vote_record r;
  r.shoal[0] = 1;
  r.base = base;
  r.promised.round = round;
  return {r};
}

persist seen(epoch number, std::uint8_t shoal = 1) {
  return {view_record{view_of(number, shoal), true, {}}};
}

send beat(epoch number, std::uint64_t sequence = 9, std::uint8_t shoal = 1) {
  return {{peer_id{2}}, heartbeat{view_of(1, shoal).shoal, number, sequence}};
}

send promised(std::uint64_t round) {
  promise p;
  p.ballot.round = round;
  return {{peer_id{2}}, p};
}

/// What comes out and is written, in a line.
std::string told(const actions& all) {
  std::string out;
  for (const action& a : all) {
    if (const auto* s = std::get_if<send>(&a)) {
      if (const auto* h = std::get_if<heartbeat>(&s->what))
        out += " beat" + std::to_string(h->number);
      else if (const auto* p = std::get_if<promise>(&s->what))
        out += " promise" + std::to_string(p->ballot.round);
      else if (std::holds_alternative<gossip>(s->what))
        out += " gossip";
    } else if (const auto* v = std::get_if<new_view>(&a)) {
      out += " view" + std::to_string(v->current.number);
    } else if (std::holds_alternative<need_tick_at>(a)) {
      out += " tick";
    }
  }
  return out;
}

std::string told(const std::optional<outbox::write>& w) {
  if (!w)
    return "none";
  const auto* r = std::get_if<record>(&*w);
  if (r == nullptr)
    return "erase";
  if (const auto* v = std::get_if<view_record>(r))
    return "view" + std::to_string(v->current.number);
  if (const auto* v = std::get_if<vote_record>(r))
    return "vote" + std::to_string(v->base) + "."
           + std::to_string(v->promised.round);
  return "keys";
}

struct fixture {
  outbox box{stored(5)};
  actions out;

  std::string take(action a) {
    out.clear();
    box.take(std::move(a), out);
    return told(out);
  }
  std::string written(bool ok = true) {
    out.clear();
    box.written(ok, out);
    return told(out);
  }
};

} // namespace

} // namespace cluster_outbox

BOOST_FIXTURE_TEST_SUITE(cluster_outbox, cluster_outbox::fixture)

BOOST_AUTO_TEST_CASE(without_a_record_on_its_way_all_passes) {
  BOOST_TEST(take(promised(1)) == " promise1");
  BOOST_TEST(take(beat(5)) == " beat5");
  BOOST_TEST(told(box.next()) == "none");
}

BOOST_AUTO_TEST_CASE(a_vote_is_stored_before_it_is_told) {
  BOOST_TEST(take(vote(5, 1)) == "");
  BOOST_TEST(take(promised(1)) == "");
  BOOST_TEST(told(box.next()) == "vote5.1");
  BOOST_TEST(told(box.next()) == "none"); // one at a time
  BOOST_TEST(take(promised(2)) == "");
  BOOST_TEST(written() == " promise1 promise2");
  BOOST_TEST(!box.holds());
}

BOOST_AUTO_TEST_CASE(heartbeats_pass_and_name_the_stored_view) {
  take(seen(6));
  BOOST_TEST(take(new_view{view_of(6), true}) == "");
  BOOST_TEST(take(beat(6)) == " beat5");
  BOOST_TEST(take(beat(6, 0)) == ""); // tells of a view, and nothing else
  BOOST_TEST(take(need_tick_at{7}) == " tick");
  gossip old;
  old.shoal[0] = 1;
  old.number = 5;
  BOOST_TEST(take(send{{peer_id{2}}, old}) == " gossip");
  old.number = 6;
  BOOST_TEST(take(send{{peer_id{2}}, old}) == "");
  BOOST_TEST(told(box.next()) == "view6");
  BOOST_TEST(written() == " view6 beat6 beat6 gossip");
}

BOOST_AUTO_TEST_CASE(nothing_is_sent_in_a_shoal_whose_view_is_not_stored) {
  take(seen(6, 2));
  BOOST_TEST(take(beat(6, 9, 2)) == "");
  BOOST_TEST(told(box.next()) == "view6");
  BOOST_TEST(written() == " beat6");
  outbox fresh{history{}};
  fresh.take(seen(1), out);
  out.clear();
  fresh.take(beat(1), out);
  BOOST_TEST(told(out) == "");
}

BOOST_AUTO_TEST_CASE(a_slow_disk_is_spared_what_is_overtaken) {
  take(vote(5, 1));
  take(promised(1));
  BOOST_TEST(told(box.next()) == "vote5.1");
  for (std::uint64_t round = 2; round < 9; ++round) {
    take(vote(5, round));
    take(promised(round));
  }
  BOOST_TEST(written() == " promise1");
  BOOST_TEST(told(box.next()) == "vote5.8");
  BOOST_TEST(written()
             == " promise2 promise3 promise4 promise5 promise6 promise7"
                " promise8");
}

BOOST_AUTO_TEST_CASE(a_vote_for_a_newer_view_never_precedes_that_view) {
  take(persist{key_record{}}); // being written meanwhile
  BOOST_TEST(told(box.next()) == "keys");
  take(vote(5, 1));
  take(promised(1));
  take(seen(6));
  take(vote(6, 2));
  take(promised(2));
  take(seen(7));
  take(new_view{view_of(7), true});
  take(vote(7, 3));
  take(seen(7)); // once more: it remembers another shoal
  take(promised(3));
  BOOST_TEST(written() == "");
  BOOST_TEST(told(box.next()) == "view7");
  BOOST_TEST(written() == " promise1 promise2 view7");
  BOOST_TEST(told(box.next()) == "vote7.3");
  BOOST_TEST(written() == " promise3");
  BOOST_TEST(!box.holds());
}

BOOST_AUTO_TEST_CASE(a_vote_that_counts_is_not_overtaken_by_its_view) {
  take(persist{key_record{}});
  BOOST_TEST(told(box.next()) == "keys");
  take(vote(5, 1));
  take(seen(5)); // it is stored already
  take(promised(1));
  written();
  BOOST_TEST(told(box.next()) == "vote5.1");
  BOOST_TEST(written() == "");
  BOOST_TEST(told(box.next()) == "view5");
  BOOST_TEST(written() == " promise1");
}

BOOST_AUTO_TEST_CASE(a_write_that_failed_is_done_again_and_withholds) {
  take(vote(5, 1));
  take(promised(1));
  BOOST_TEST(told(box.next()) == "vote5.1");
  BOOST_TEST(written(false) == "");
  BOOST_TEST(take(beat(5)) == " beat5");
  BOOST_TEST(told(box.next()) == "vote5.1");
  BOOST_TEST(written(false) == "");
  take(seen(6)); // others have decided
  take(new_view{view_of(6), true});
  BOOST_TEST(told(box.next()) == "view6");
  BOOST_TEST(written() == " promise1 view6");
}

BOOST_AUTO_TEST_CASE(waiting_messages_are_bounded) {
  take(vote(5, 1));
  for (std::size_t i = 0; i < held_sends_max + 10; ++i)
    take(promised(1));
  static_cast<void>(box.next());
  out.clear();
  box.written(true, out);
  BOOST_TEST(out.size() == held_sends_max);
}

BOOST_AUTO_TEST_CASE(a_history_is_erased_after_what_is_on_its_way) {
  take(vote(5, 1));
  BOOST_TEST(told(box.next()) == "vote5.1");
  take(erase_history{});
  take(new_view{view_of(9), false});
  BOOST_TEST(written() == "");
  BOOST_TEST(told(box.next()) == "erase");
  BOOST_TEST(written() == " view9");
}

BOOST_AUTO_TEST_SUITE_END()
