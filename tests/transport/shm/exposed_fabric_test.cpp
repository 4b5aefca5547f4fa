// tests/transport/shm/exposed_fabric_test.cpp -- bulk that is read where it
// lies.
//
// The fabric suite with all bulk in arenas; then the moments that matter, in
// the middle of a read, where the reader's thread is held by what it calls.
#include "tests/conformance/held.hpp"
#include "tests/conformance/introduced.hpp"
#include "tests/transport/shm/exposing.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/layout.hpp"

#include <boost/test/data/test_case.hpp>

BOOST_AUTO_TEST_SUITE(shm_exposed_fabric)

class factory {
public:
  shoal::transport::conformance::made
  make(shoal::transport::fabric_handler& handler,
       shoal::transport::limits queue) {
    using namespace shoal::transport;
    shm::config c;
    c.self[0] = ++count_;
    c.instance = count_;
    c.queue = queue;
    const auto memory = std::make_shared<shm::arena>(std::size_t{2} << 30);
    auto exposes = std::make_unique<conformance::exposing>(
      std::make_unique<shm::fabric>(c, handler, memory), memory);
    return {std::make_unique<conformance::introduced_fabric>(
              *all_, std::move(exposes)),
            c.self};
  }
  /// Shared memory's suite has one.
  std::string unreachable() { return {}; }

private:
  std::unique_ptr<shoal::transport::conformance::directory> all_ =
    std::make_unique<shoal::transport::conformance::directory>();
  std::uint8_t count_ = 0;
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(shm_exposed)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

enum class action { cancel, drop, close };
std::ostream& operator<<(std::ostream& out, action a) {
  return out << (a == action::cancel ? "cancel"
                 : a == action::drop ? "drop"
                                     : "close");
}

/// A sender with an arena, and a receiver.
struct two_nodes {
  two_nodes() {
    sender.connect(receiver.local_address());
    receiver.connect(sender.local_address());
    BOOST_REQUIRE(notes.wait(
      [&] { return !heard_sender.ups.empty() && !heard.ups.empty(); }));
  }
  ~two_nodes() {
    sender.close();
    receiver.close();
  }
  static introduced::config settings(std::uint8_t who) {
    introduced::config s;
    s.self[0] = who;
    return s;
  }
  /// Waits until the sender's thread has sent this much.
  void sent(std::uint64_t bytes) {
    BOOST_REQUIRE(until(
      [&] { return sender.traffic_with(receiver_id).sent_bytes >= bytes; }));
  }

  const peer_id sender_id = settings(1).self, receiver_id = settings(2).self;
  std::shared_ptr<shm::arena> memory =
    std::make_shared<shm::arena>(std::size_t{1} << 30);
  board notes;
  recorder heard_sender{notes}, heard{notes};
  shm::fabric sender{settings(1), heard_sender, memory};
  shm::fabric receiver{settings(2), heard};
};

} // namespace

// Nothing is copied before: what the sender has changed meanwhile arrives.
BOOST_AUTO_TEST_CASE(bytes_in_an_arena_are_read_in_place) {
  for (const std::size_t size : {std::size_t{64} << 10, std::size_t{3} << 20}) {
    two_nodes t;
    held stop(t.notes);
    arena_bytes bytes(t.memory, size);
    std::vector<std::byte> got(size);
    outcome in(t.notes), out(t.notes);
    BOOST_REQUIRE(
      !t.receiver.post_receive(t.sender_id, {7, 0, 0}, got, in.done()));
    t.heard.on_message = [&](auto&, auto) { stop.enter(); };
    BOOST_REQUIRE(!t.sender.send(t.receiver_id, as_bytes("x")));
    stop.wait();
    BOOST_REQUIRE(
      !t.sender.send_bulk(t.receiver_id, {7, 0, 0}, bytes.span(), out.done()));
    t.sent(size + 1);
    bytes.scribble();
    stop.release();
    BOOST_REQUIRE((in.wait() && out.wait()));
    BOOST_TEST((!in.result && !out.result));
    BOOST_TEST((std::ranges::count(got, std::byte{0x5a})
                == static_cast<std::ptrdiff_t>(size)));
  }
}

// In the middle of a read whichever end gives up has its memory at once, and
// the other takes nothing for whole that may be scribbled over.
BOOST_DATA_TEST_CASE(a_read_that_is_given_up_counts_as_nothing,
                     boost::unit_test::data::make({action::cancel, action::drop,
                                                   action::close})
                       * boost::unit_test::data::make({true, false}),
                     what, by_sender) {
  if (what == action::close && !by_sender)
    return; // its thread is held
  two_nodes t;
  mid_read middle(t.notes);
  arena_bytes small(t.memory, middle.small_bytes);
  arena_bytes large(t.memory, middle.large_bytes);
  const auto sent = pattern(middle.large_bytes, 3);
  std::ranges::copy(sent, large.span().begin());
  outcome out(t.notes), small_out(t.notes);

  middle.post(t.receiver, t.sender_id, t.heard);
  BOOST_REQUIRE(!t.sender.send(t.receiver_id, as_bytes("x")));
  middle.wait_first();
  BOOST_REQUIRE(!t.sender.send_bulk(t.receiver_id, middle.small_tag,
                                    small.span(), small_out.done()));
  BOOST_REQUIRE(!t.sender.send_bulk(t.receiver_id, middle.large_tag,
                                    large.span(), out.done()));
  t.sent(1 + middle.small_bytes + middle.large_bytes);
  middle.wait_small();
  BOOST_REQUIRE(!t.sender.send(t.receiver_id, as_bytes("x")));
  t.sent(2 + middle.small_bytes + middle.large_bytes);
  middle.wait_middle();
  BOOST_TEST((middle.got.front() == sent.front()));
  BOOST_TEST((middle.got.back() == std::byte{}));

  const auto ending = what == action::cancel ? errc::canceled : errc::peer_lost;
  fabric& who = by_sender ? t.sender : t.receiver;
  if (what == action::cancel)
    who.cancel(middle.large_tag.plan);
  else if (what == action::drop)
    who.drop(by_sender ? t.receiver_id : t.sender_id);
  else
    who.close();
  if (by_sender) { // while the reader stands in the middle
    BOOST_REQUIRE(out.wait());
    BOOST_TEST(out.result == (what == action::close ? errc::canceled : ending));
    large.scribble();
  }
  middle.go_on();
  BOOST_REQUIRE(middle.in.wait());
  BOOST_TEST(middle.in.result == ending);
  std::ranges::fill(middle.got, std::byte{0x77});
  BOOST_REQUIRE(out.wait());
  if (what == action::cancel) { // everything else continues
    BOOST_TEST(out.result == errc::canceled);
    outcome in(t.notes), again(t.notes);
    std::vector<std::byte> more(sent.size());
    std::ranges::copy(sent, large.span().begin());
    BOOST_REQUIRE(
      !t.receiver.post_receive(t.sender_id, {8, 0, 0}, more, in.done()));
    BOOST_REQUIRE(!t.sender.send_bulk(t.receiver_id, {8, 0, 0}, large.span(),
                                      again.done()));
    BOOST_REQUIRE((in.wait() && again.wait()));
    BOOST_TEST((!in.result && !again.result && more == sent));
  }
  t.receiver.close();
  BOOST_TEST((std::ranges::count(middle.got, std::byte{0x77})
              == static_cast<std::ptrdiff_t>(middle.got.size())));
  BOOST_TEST((out.runs == 1 && middle.in.runs == 1));
}

// Given up when its place is known and nothing of it has been read; then it is
// read to its end in one turn, before the end of it or of the link is seen.
BOOST_DATA_TEST_CASE(a_read_that_comes_too_late_is_discarded,
                     boost::unit_test::data::make({action::cancel, action::drop,
                                                   action::close}),
                     what) {
  constexpr std::size_t size = std::size_t{128} << 10;
  two_nodes t;
  mid_read late(t.notes, size);
  const arena_bytes small(t.memory, late.small_bytes);
  arena_bytes large(t.memory, size);
  outcome out(t.notes), small_out(t.notes);
  late.post(t.receiver, t.sender_id, t.heard);
  BOOST_REQUIRE(!t.sender.send(t.receiver_id, as_bytes("x")));
  late.wait_first();
  BOOST_REQUIRE(!t.sender.send_bulk(t.receiver_id, late.small_tag, small.span(),
                                    small_out.done()));
  BOOST_REQUIRE(!t.sender.send_bulk(t.receiver_id, late.large_tag, large.span(),
                                    out.done()));
  t.sent(1 + late.small_bytes + size);
  late.wait_small();
  if (what == action::cancel)
    t.sender.cancel(late.large_tag.plan);
  else if (what == action::drop)
    t.sender.drop(t.receiver_id);
  else
    t.sender.close();
  BOOST_REQUIRE(out.wait());
  BOOST_TEST((out.result == errc::canceled || out.result == errc::peer_lost));
  large.scribble();
  late.skip_middle();
  BOOST_REQUIRE(late.in.wait());
  BOOST_REQUIRE(small_out.wait());
  BOOST_TEST(late.in.result
             == (what == action::cancel ? errc::canceled : errc::peer_lost));
}

// More than there are slots: what has none goes by the ring.
BOOST_AUTO_TEST_CASE(more_transfers_than_slots_arrive_all) {
  auto settings = two_nodes::settings(1);
  settings.queue.bulk_sends = shm::exposed_max + 100;
  settings.commands_max = 2 * settings.queue.bulk_sends;
  auto other = settings;
  other.self[0] = 2;
  board notes;
  recorder heard_a(notes), heard_b(notes);
  const auto memory = std::make_shared<shm::arena>(std::size_t{1} << 30);
  shm::fabric a(settings, heard_a, memory), b(other, heard_b);
  a.connect(b.local_address());
  b.connect(a.local_address());
  BOOST_REQUIRE(
    notes.wait([&] { return !heard_a.ups.empty() && !heard_b.ups.empty(); }));
  const std::size_t size = shm::arena::allocation_bytes_min;
  arena_bytes bytes(memory, size);
  const auto sent = pattern(size, 1);
  std::ranges::copy(sent, bytes.span().begin());
  const auto count = static_cast<std::uint32_t>(settings.queue.bulk_sends);
  std::vector<std::vector<std::byte>> got(count, std::vector<std::byte>(size));
  std::deque<outcome> in, out;
  held stop(notes);
  heard_b.on_message = [&](auto&, auto) { stop.enter(); };
  BOOST_REQUIRE(!a.send(other.self, as_bytes("x")));
  stop.wait();
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE(!b.post_receive(settings.self, {1, 0, i}, got[i],
                                  in.emplace_back(notes).done()));
    BOOST_REQUIRE(!a.send_bulk(other.self, {1, 0, i}, bytes.span(),
                               out.emplace_back(notes).done()));
  }
  stop.release();
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE((in[i].wait() && out[i].wait()));
    BOOST_REQUIRE((!in[i].result && !out[i].result && got[i] == sent));
  }
  a.close();
  b.close();
}

BOOST_AUTO_TEST_SUITE_END()
