// tests/transport/shm/exposed_process_test.cpp -- deaths while bulk is read.
//
// The other end is a process of its own, killed while this one's thread stands
// in the middle of a read, or while it reads.
#include "tests/conformance/held.hpp"
#include "tests/conformance/process.hpp"
#include "tests/transport/shm/exposing.hpp"
#include "transport/shm/fabric.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

BOOST_AUTO_TEST_SUITE(shm_exposed_processes)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

const char* const child_variable = "SHOAL_SHM_EXPOSED_CHILD";
constexpr std::size_t arena_size = std::size_t{1} << 30;
constexpr std::uint32_t many = 8;

shm::config config_of(std::uint8_t who) {
  shm::config c;
  c.self[0] = who;
  c.instance = who;
  return c;
}

/// Connects, then does what each text from the parent says and answers, until
/// it is killed or the parent closes the socket.
void be_child() {
  const peer_id parent = config_of(1).self;
  board notes;
  recorder heard(notes);
  const auto memory = std::make_shared<shm::arena>(arena_size);
  std::vector<std::vector<std::byte>> got(many);
  std::deque<outcome> done;
  const arena_bytes bytes(memory, mid_read::large_bytes);
  std::ranges::copy(pattern(bytes.span().size(), 3), bytes.span().begin());
  shm::fabric node(config_of(2), heard, memory);
  write_text(child_socket, node.local_address());
  node.connect(read_text(child_socket));
  (void)notes.wait([&] { return heard.ups[parent] > 0; });
  std::uint64_t sent = 0;
  const auto send = [&](bulk_tag tag, std::size_t size) {
    (void)node.send_bulk(parent, tag, bytes.span().first(size),
                         done.emplace_back(notes).done());
    sent += size;
  };
  for (auto order = read_text(child_socket); !order.empty();
       order = read_text(child_socket)) {
    if (order == "message") {
      (void)node.send(parent, as_bytes("x"));
      ++sent;
    } else if (order == "send") {
      send(mid_read::small_tag, mid_read::small_bytes);
      send(mid_read::large_tag, mid_read::large_bytes);
    } else if (order == "receive") {
      for (std::uint32_t i = 0; i < many; ++i) {
        got[i].resize(mid_read::large_bytes);
        (void)node.post_receive(parent, {2, 0, i}, got[i],
                                done.emplace_back(notes).done());
      }
    }
    (void)until([&] { return node.traffic_with(parent).sent_bytes >= sent; });
    write_text(child_socket, "done");
  }
  node.close();
}

struct child_entry {
  child_entry() {
    if (std::getenv(child_variable) != nullptr) {
      be_child();
      _exit(0);
    }
  }
};

class child : public child_process {
public:
  child() : child_process(child_variable, "1") {}
  void order(const char* text) {
    write_text(socket(), text);
    BOOST_REQUIRE(read_text(socket()) == "done");
  }
};

struct survivor {
  void meet(child& c) {
    node.connect(read_text(c.socket()));
    write_text(c.socket(), node.local_address());
    BOOST_REQUIRE(notes.wait([&] { return heard.ups[peer] > 0; }));
  }
  void lose(child& c) {
    c.kill();
    BOOST_REQUIRE(notes.wait([&] { return heard.downs[peer] > 0; }));
    BOOST_TEST(heard.why_down == errc::peer_lost);
  }

  const peer_id peer = config_of(2).self;
  std::shared_ptr<shm::arena> memory = std::make_shared<shm::arena>(arena_size);
  board notes;
  recorder heard{notes};
  shm::fabric node{config_of(1), heard, memory};
};

/// What this process maps of others and itself, and has open.
std::pair<std::size_t, std::size_t> holdings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("/memfd:shoal") != line.npos;
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return {count, std::size_t(std::distance(begin(open), end(open)))};
}

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(child_entry);

// What it has exposed stays readable: the read ends whole, or not at all.
BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_of_a_read_ends_it_once) {
  survivor s;
  const auto before = holdings();
  {
    child c;
    mid_read middle(s.notes);
    s.meet(c);
    middle.post(s.node, s.peer, s.heard);
    c.order("message");
    middle.wait_first();
    c.order("send");
    middle.wait_small();
    c.order("message");
    middle.wait_middle();
    c.kill();
    middle.go_on();
    BOOST_REQUIRE(s.notes.wait([&] { return s.heard.downs[s.peer] > 0; }));
    BOOST_TEST(middle.in.runs == 1); // before down
    BOOST_TEST((!middle.in.result || middle.in.result == errc::peer_lost));
    if (!middle.in.result)
      BOOST_TEST((middle.got == pattern(mid_read::large_bytes, 3)));
    std::ranges::fill(middle.got, std::byte{7}); // no process writes there now
    s.node.drop(s.peer);
    BOOST_TEST(s.node.send(s.peer, as_bytes("x")) == errc::peer_lost);
    BOOST_TEST((std::ranges::count(middle.got, std::byte{7})
                == static_cast<std::ptrdiff_t>(middle.got.size())));
  }
  BOOST_TEST((holdings() == before)); // nothing of it is left here
}

BOOST_AUTO_TEST_CASE(a_reader_killed_in_the_middle_ends_every_send) {
  for (const std::size_t finished : {0u, 1u, 3u}) {
    survivor s;
    const arena_bytes bytes(s.memory, mid_read::large_bytes);
    std::deque<outcome> out;
    child c;
    s.meet(c);
    c.order("receive");
    for (std::uint32_t i = 0; i < many; ++i)
      BOOST_REQUIRE(!s.node.send_bulk(s.peer, {2, 0, i}, bytes.span(),
                                      out.emplace_back(s.notes).done()));
    BOOST_REQUIRE(s.notes.wait([&] {
      return static_cast<std::size_t>(
               std::ranges::count_if(out, [](auto& o) { return o.runs > 0; }))
             >= finished;
    }));
    s.lose(c);
    for (auto& o : out) {
      BOOST_TEST(o.runs == 1); // before down
      BOOST_TEST((!o.result || o.result == errc::peer_lost));
    }
  }
}

// It may continue later, and read memory that has changed.
BOOST_AUTO_TEST_CASE(a_reader_that_hangs_is_dropped_at_once) {
  survivor s;
  arena_bytes bytes(s.memory, mid_read::large_bytes);
  std::deque<outcome> out;
  child c;
  s.meet(c);
  c.order("receive");
  c.stop();
  for (std::uint32_t i = 0; i < many; ++i)
    BOOST_REQUIRE(!s.node.send_bulk(s.peer, {2, 0, i}, bytes.span(),
                                    out.emplace_back(s.notes).done()));
  s.node.drop(s.peer);
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard.downs[s.peer] > 0; }));
  for (auto& o : out) {
    BOOST_TEST(o.runs == 1);
    BOOST_TEST(o.result == errc::peer_lost);
  }
  bytes.scribble();
  c.go_on();
}

BOOST_AUTO_TEST_SUITE_END()
