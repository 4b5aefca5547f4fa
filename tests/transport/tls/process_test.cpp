// tests/transport/tls/process_test.cpp -- TLS between real processes.
//
// The kernel closes the sockets of a killed process, without a farewell.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "transport/tls/fabric.hpp"

BOOST_AUTO_TEST_SUITE(tls_processes)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

constexpr std::size_t bulk_bytes = 8u << 20;
constexpr std::uint32_t bulk_count = 8;
const char* const child_variable = "SHOAL_TLS_CHILD";

tls::config config_of(std::uint8_t who) {
  tls::config c;
  c.identity[0] = who;
  c.cluster_key[0] = 5;
  c.instance = who;
  return c;
}

/// The child's whole life: connects and plays its role, until it is killed.
void be_child(std::string_view what) {
  const auto parent = tls::id_of_private(config_of(1).identity);
  board notes;
  recorder heard(notes);
  std::vector<std::vector<std::byte>> memory(bulk_count);
  std::deque<outcome> done;
  tls::fabric node(config_of(2), heard);
  node.connect(read_text(child_socket));
  (void)notes.wait([&] { return heard.ups[parent] > 0; });
  for (std::uint32_t i = 0; i < bulk_count; ++i) {
    memory[i] = pattern(bulk_bytes, i);
    done.emplace_back(notes);
    if (what == "receive")
      (void)node.post_receive(parent, {1, 0, i}, memory[i], done[i].done());
  }
  (void)node.send(parent, as_bytes("ready"));
  if (what == "send") {
    (void)read_text(child_socket); // until the parent has posted
    for (std::uint32_t i = 0; i < bulk_count; ++i)
      (void)node.send_bulk(parent, {1, 0, i}, memory[i], done[i].done());
  }
  (void)read_text(child_socket);
  node.close();
}

struct child_entry {
  child_entry() {
    if (const auto* what = std::getenv(child_variable)) {
      be_child(what);
      _exit(0);
    }
  }
};

/// The surviving node, and a child that is connected with it.
struct survivor {
  explicit survivor(const char* what)
    : heard(notes), node(config_of(1), heard), other(child_variable, what) {
    write_text(other.socket(), node.local_address());
    BOOST_REQUIRE(notes.wait([&] { return heard.received == 1; }));
  }
  ~survivor() { node.close(); }
  /// Kills the child when `ended` of the list have ended.
  void lose(std::deque<outcome>& list, std::size_t ended) {
    BOOST_REQUIRE(notes.wait([&] {
      return static_cast<std::size_t>(std::count_if(
               list.begin(), list.end(), [](auto& o) { return o.runs > 0; }))
             >= ended;
    }));
    other.kill();
    BOOST_REQUIRE(notes.wait([&] { return heard.downs[peer] == 1; }));
    BOOST_TEST(heard.why_down == errc::peer_lost);
    for (auto& o : list) {
      BOOST_TEST(o.runs == 1); // before down
      BOOST_TEST((!o.result || o.result == errc::peer_lost));
    }
    BOOST_TEST(node.send(peer, as_bytes("x")) == errc::peer_lost);
  }

  const peer_id peer = tls::id_of_private(config_of(2).identity);
  board notes;
  recorder heard;
  tls::fabric node;
  child_process other;
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(child_entry);

BOOST_AUTO_TEST_CASE(a_receiver_killed_in_the_middle_ends_every_send) {
  const auto sent = pattern(bulk_bytes, 1);
  for (const std::size_t ended : {0u, 1u, 3u}) {
    std::deque<outcome> out;
    survivor s("receive");
    for (std::uint32_t i = 0; i < bulk_count; ++i)
      BOOST_REQUIRE(!s.node.send_bulk(s.peer, {1, 0, i}, sent,
                                      out.emplace_back(s.notes).done()));
    s.lose(out, ended);
  }
}

BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_ends_every_receive) {
  for (const std::size_t ended : {0u, 1u, 3u}) {
    std::vector<std::vector<std::byte>> got(bulk_count);
    std::deque<outcome> in;
    survivor s("send");
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      got[i].resize(bulk_bytes);
      BOOST_REQUIRE(!s.node.post_receive(s.peer, {1, 0, i}, got[i],
                                         in.emplace_back(s.notes).done()));
    }
    write_text(s.other.socket(), "posted");
    s.lose(in, ended);
    for (std::uint32_t i = 0; i < bulk_count; ++i)
      if (!in[i].result)
        BOOST_TEST((got[i] == pattern(bulk_bytes, i)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
