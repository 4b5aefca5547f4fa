// tests/transport/shm/liar_test.cpp -- a peer that lies about where bytes
// are.
//
// The test itself plays the peer: it makes a directory, a channel and an arena
// by hand and writes frames that no node would.
#include "tests/conformance/held.hpp"
#include "tests/transport/shm/exposing.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/layout.hpp"
#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"

#include <unistd.h>

#include <limits>
#include <new>

BOOST_AUTO_TEST_SUITE(shm_liar)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

constexpr std::size_t arena_size = std::size_t{256} << 10;
constexpr std::size_t part = std::size_t{64} << 10;

/// A node, and a peer of it that the test plays.
class liar {
public:
  /// `claimed`: the size that it says its arena has.
  explicit liar(std::uint64_t claimed = arena_size)
    : node_address_(*introduced::parse_address(node.local_address())) {
    std::array<std::uint32_t, 2> way{};
    std::memcpy(way.data(), node_address_.way.data(), sizeof way);
    bell_ = shm::open_bell(node_address_.pid, way[1]);
    mine_ = new (directory_.bytes().data()) shm::directory;
    mine_->token = token;
    mine_->arena_bytes = claimed;
    mine_->arena_descriptor = std::uint64_t(memory->descriptor());
    introduced::node_address me = node_address_;
    me.peer = id;
    me.token = token;
    way = {std::uint32_t(directory_.descriptor()),
           std::uint32_t(own_bell_.descriptor())};
    const auto bytes = std::as_bytes(std::span(way));
    me.way.assign(bytes.begin(), bytes.end());
    node.connect(format_address(me));
    answer();
    BOOST_REQUIRE(notes.wait([&] { return heard.ups[id] == 1; }));
  }
  ~liar() {
    node.close();
    ::close(bell_);
  }

  void say(const shm::frame& f) {
    writer_.put(f, {});
    head->written.store(writer_.written(), std::memory_order_release);
    shm::ring_bell(bell_);
  }
  void end() {
    head->closed.store(1, std::memory_order_release);
    shm::ring_bell(bell_);
  }
  /// A frame that says where a transfer is.
  static shm::frame
  place(std::uint64_t offset, std::uint64_t total, std::uint64_t slot = 3) {
    shm::frame f;
    f.kind = shm::frame_kind::bulk_at;
    f.transfer = 5;
    f.offset = offset;
    f.total = total;
    f.slot = slot;
    f.plan = 1;
    return f;
  }
  bool maps_our_arena() const { return theirs_->reads != 0; }

  static constexpr std::uint64_t token = 77, connection = 1234;
  const peer_id id{9};
  board notes;
  recorder heard{notes};
  std::shared_ptr<shm::arena> memory = std::make_shared<shm::arena>(arena_size);
  shm::fabric node{[] {
                     introduced::config c;
                     c.self[0] = 1;
                     return c;
                   }(),
                   heard};
  shm::channel_head* head = nullptr; ///< of our channel

private:
  /// Finds the node's channel and says that we hear it.
  void answer() {
    std::uint32_t descriptor = 0;
    std::memcpy(&descriptor, node_address_.way.data(), sizeof descriptor);
    const auto seen =
      shm::view::open(node_address_.pid, descriptor, sizeof(shm::directory));
    BOOST_REQUIRE(seen);
    const auto& all =
      *reinterpret_cast<const shm::directory*>(seen->bytes().data());
    const shm::directory_entry* entry = nullptr;
    BOOST_REQUIRE(until([&] {
      for (const auto& e : all.entries)
        if (e.to.load(std::memory_order_acquire) == token)
          entry = &e;
      return entry != nullptr;
    }));
    their_channel_ = *shm::view::open(node_address_.pid, entry->descriptor,
                                      sizeof(shm::channel_head));
    theirs_ =
      reinterpret_cast<const shm::channel_head*>(their_channel_.bytes().data());
    head = new (channel_.bytes().data()) shm::channel_head;
    head->from = token;
    head->to = node_address_.token;
    head->connection = connection;
    head->hears = entry->connection.load();
    writer_ = shm::ring_writer(
      channel_.bytes().subspan(shm::ring_offset, shm::ring_bytes));
    mine_->entries[0].connection = connection;
    mine_->entries[0].descriptor = std::uint64_t(channel_.descriptor());
    mine_->entries[0].to.store(node_address_.token, std::memory_order_release);
    shm::ring_bell(bell_);
  }

  introduced::node_address node_address_;
  int bell_ = -1;
  shm::bell own_bell_;
  shm::segment directory_{sizeof(shm::directory)};
  shm::segment channel_{shm::ring_offset + shm::ring_bytes};
  shm::view their_channel_;
  shm::directory* mine_ = nullptr;
  const shm::channel_head* theirs_ = nullptr;
  shm::ring_writer writer_;
};

/// Posts a receive for the frame, and expects that the peer is cast out.
void refused(liar& l, const shm::frame& f) {
  std::vector<std::byte> got(part, std::byte{42});
  outcome in(l.notes);
  BOOST_REQUIRE(!l.node.post_receive(l.id, {1, 0, 0}, got, in.done()));
  l.say(f);
  BOOST_REQUIRE(l.notes.wait([&] { return l.heard.downs[l.id] == 1; }));
  BOOST_REQUIRE(in.wait());
  BOOST_TEST(in.result == errc::peer_lost);
  BOOST_TEST((got == std::vector<std::byte>(part, std::byte{42})));
}

} // namespace

BOOST_AUTO_TEST_CASE(exposed_bytes_are_read) {
  liar l;
  arena_bytes bytes(l.memory, part);
  const auto sent = pattern(part, 1);
  std::ranges::copy(sent, bytes.span().begin());
  std::vector<std::byte> got(part);
  outcome in(l.notes);
  BOOST_REQUIRE(!l.node.post_receive(l.id, {1, 0, 0}, got, in.done()));
  l.head->exposed[3] = 5;
  l.say(liar::place(l.memory->offset_of(bytes.span()).value(), part));
  BOOST_REQUIRE(in.wait());
  BOOST_TEST(!in.result);
  BOOST_TEST((got == sent));
}

BOOST_AUTO_TEST_CASE(a_place_outside_of_its_memory_ends_the_connection) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  auto nameless = liar::place(0, part);
  nameless.transfer = 0;
  for (const auto& f :
       {liar::place(arena_size - part + 1, part), liar::place(arena_size, part),
        liar::place(most, part), liar::place(most - part + 1, part),
        liar::place(0, arena_size + 1), liar::place(0, most),
        liar::place(0, part, shm::exposed_max), liar::place(0, part, most),
        nameless})
    BOOST_TEST_CONTEXT("offset " << f.offset << ", " << f.total
                                 << " bytes, slot " << f.slot) {
      liar l;
      l.head->exposed[3] = f.transfer;
      refused(l, f);
    }
}

// For any announced size: an arena that cannot be mapped completely is not
// mapped.
BOOST_AUTO_TEST_CASE(an_arena_smaller_than_announced_is_not_mapped) {
  for (const std::uint64_t claimed :
       {std::uint64_t{0}, std::uint64_t{arena_size} + 1,
        std::uint64_t{shm::arena_bytes_max} + 1,
        std::numeric_limits<std::uint64_t>::max()})
    BOOST_TEST_CONTEXT("it says " << claimed) {
      liar l(claimed);
      BOOST_TEST(!l.maps_our_arena());
      l.head->exposed[3] = 5;
      refused(l, liar::place(0, part));
    }
}

// What is not exposed, or another transfer, is not taken for this one.
BOOST_AUTO_TEST_CASE(bytes_that_are_not_exposed_are_discarded) {
  for (const std::uint64_t other : {0u, 4u}) {
    liar l;
    std::vector<std::byte> got(part), next(part);
    outcome in(l.notes), after(l.notes);
    BOOST_REQUIRE(!l.node.post_receive(l.id, {1, 0, 0}, got, in.done()));
    BOOST_REQUIRE(!l.node.post_receive(l.id, {1, 0, 1}, next, after.done()));
    l.head->exposed[3] = other;
    l.say(liar::place(0, part));
    auto f = liar::place(0, part, 4); // behind it, and not held up by it
    f.transfer = 6;
    f.sequence = 1;
    l.head->exposed[4] = 6;
    l.say(f);
    BOOST_REQUIRE(after.wait());
    BOOST_TEST(!after.result);
    BOOST_TEST(in.runs == 0);
    l.end();
    BOOST_REQUIRE(in.wait());
    BOOST_TEST(in.result == errc::peer_lost);
  }
}

BOOST_AUTO_TEST_SUITE_END()
