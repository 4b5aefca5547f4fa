// tests/conformance/ucx_rdma_process_test.cpp -- deaths of peers over verbs.
//
// The child is this program started again with SHOAL_RDMA_CHILD set to what it
// shall do; the two exchange addresses over a socket. It is killed or stopped
// at a moment that the exchange itself defines, never after a time. Devices as
// ucx_rdma_test.cpp.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "tests/conformance/rdma_devices.hpp"
#include "transport/paired/address.hpp"
#include "transport/ucx/fabric.hpp"

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

constexpr std::size_t bulk_bytes = 8u << 20;
constexpr std::uint32_t bulk_count = 6;
const char* const child_variable = "SHOAL_RDMA_CHILD";

ucx::config config_of(std::uint8_t who) {
  ucx::config c;
  c.over = ucx::medium::rdma;
  c.devices = rdma_devices()[who % rdma_devices().size()];
  c.self[0] = who;
  c.instance = who;
  // Longer than ud keeps trying unless told otherwise.
  c.hello_timeout = std::chrono::seconds(40);
  return c;
}

/// The child's whole life: connects, does what it is told, until it is killed
/// or the parent closes the socket.
void be_child(std::string_view what) {
  const peer_id parent = config_of(1).self;
  board notes;
  recorder heard(notes);
  std::vector<std::vector<std::byte>> memory(bulk_count);
  std::deque<outcome> done;
  ucx::fabric node(config_of(2), heard);
  write_text(child_socket, node.local_address());
  node.connect(read_text(child_socket));
  (void)notes.wait([&] { return heard.ups[parent] > 0; });
  for (std::uint32_t i = 0; i < bulk_count; ++i) {
    memory[i] = pattern(bulk_bytes, i);
    done.emplace_back(notes);
    if (what == "receive")
      (void)node.post_receive(parent, {1, 0, i}, memory[i], done[i].done());
  }
  (void)node.send(parent, as_bytes("ready"));
  if (what == "send")
    (void)read_text(child_socket); // the parent has posted
  for (std::uint32_t i = 0; i < bulk_count && what == "send"; ++i)
    (void)node.send_bulk(parent, {1, 0, i}, memory[i], done[i].done());
  (void)read_text(child_socket); // until the parent has seen enough
  node.close();
}

struct child_entry {
  child_entry() {
    if (const auto what = std::getenv(child_variable)) {
      be_child(what);
      _exit(0);
    }
  }
};

class child : public child_process {
public:
  explicit child(const char* what) : child_process(child_variable, what) {}
};

/// The surviving node, and what it has under way with a child.
struct survivor {
  survivor() : heard(notes), node(config_of(1), heard) {}

  /// Connects. What is `far` is said to be on another machine, so that UCX
  /// alone can notice its end.
  void meet(child& c, bool far) {
    auto address = paired::parse_address(read_text(c.socket()));
    BOOST_REQUIRE(address.has_value());
    if (far)
      address->host.boot_id = "another";
    const std::size_t before = heard.received;
    node.connect(paired::format_address(*address));
    write_text(c.socket(), node.local_address());
    BOOST_REQUIRE(notes.wait([&] { return heard.received > before; }));
  }
  void send_all() {
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      memory.push_back(pattern(bulk_bytes, i));
      BOOST_REQUIRE(!node.send_bulk(peer, {1, 0, i}, memory.back(),
                                    all.emplace_back(notes).done()));
    }
  }
  void receive_all() {
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      memory.emplace_back(bulk_bytes);
      BOOST_REQUIRE(!node.post_receive(peer, {1, 0, i}, memory.back(),
                                       all.emplace_back(notes).done()));
    }
  }
  void wait_for(std::size_t finished) {
    BOOST_REQUIRE(notes.wait([&] {
      return static_cast<std::size_t>(std::count_if(
               all.begin(), all.end(), [](auto& o) { return o.runs > 0; }))
             >= finished;
    }));
  }
  /// Down, everything has ended, and its memory is ours.
  void wait_end() {
    BOOST_REQUIRE(notes.wait([&] { return heard.downs[peer] > 0; }));
    for (auto& o : all) {
      BOOST_TEST(o.runs == 1); // before down
      BOOST_TEST((!o.result || o.result == errc::peer_lost));
    }
    BOOST_TEST(node.send(peer, as_bytes("x")) == errc::peer_lost);
    for (auto& bytes : memory)
      std::fill(bytes.begin(), bytes.end(), std::byte{7});
  }

  const peer_id peer = config_of(2).self;
  board notes;
  recorder heard;
  std::deque<outcome> all;
  std::deque<std::vector<std::byte>> memory;
  ucx::fabric node;
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(child_entry);

BOOST_AUTO_TEST_SUITE(ucx_rdma_processes,
                      *boost::unit_test::precondition(have_rdma))

BOOST_AUTO_TEST_CASE(an_idle_peer_that_is_killed_is_down_and_may_return) {
  for (const bool far : {false, true}) {
    survivor s;
    child c("idle");
    s.meet(c, far);
    s.receive_all();
    c.kill();
    s.wait_end();
    s.notes.post([&] { s.heard.downs.clear(); });
    child again("idle");
    s.meet(again, far);
    BOOST_TEST(s.heard.order == "udu");
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_in_the_middle_ends_every_send) {
  for (const bool far : {false, true})
    for (const std::size_t finished : {0u, 2u}) {
      survivor s;
      child c("receive");
      s.meet(c, far);
      s.send_all();
      s.wait_for(finished);
      c.kill();
      s.wait_end();
    }
}

BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_ends_every_receive) {
  for (const bool far : {false, true})
    for (const std::size_t finished : {0u, 2u}) {
      survivor s;
      child c("send");
      s.meet(c, far);
      s.receive_all();
      write_text(c.socket(), "posted");
      s.wait_for(finished);
      c.kill();
      s.wait_end();
    }
}

// Nobody answers; UCX notices it while the endpoint has not connected.
BOOST_AUTO_TEST_CASE(the_address_of_a_dead_process_fails_and_can_be_closed) {
  for (const bool wait : {false, true}) {
    survivor s;
    child c("idle");
    auto address = paired::parse_address(read_text(c.socket()));
    BOOST_REQUIRE(address.has_value());
    address->host.boot_id = "another";
    c.kill();
    s.node.connect(paired::format_address(*address));
    if (wait)
      BOOST_REQUIRE(s.notes.wait([&] { return !s.heard.failed.empty(); }));
    child next("idle");
    s.meet(next, true);
    BOOST_TEST(s.heard.ups.size() == 1u);
  }
}

// One that is stopped does not answer, and may go on later.
BOOST_AUTO_TEST_CASE(a_peer_that_hangs_is_dropped_at_once) {
  for (const char* what : {"receive", "send"}) {
    survivor s;
    child c(what);
    s.meet(c, false);
    if (*what == 's')
      s.receive_all();
    c.stop();
    if (*what == 'r')
      s.send_all();
    s.node.drop(s.peer);
    s.wait_end();
    c.go_on();
  }
}

BOOST_AUTO_TEST_SUITE_END()
