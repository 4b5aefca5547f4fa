// tests/transport/shm/process_test.cpp -- shared memory between real processes.
//
// The child is this program started again with SHOAL_SHM_CHILD set to its role;
// the two exchange addresses over a socket. A child is killed at a moment that
// the exchange itself defines, never after a time.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "transport/shm/fabric.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

BOOST_AUTO_TEST_SUITE(shm_processes)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

constexpr std::size_t bulk_bytes = 32u << 20;
constexpr std::uint32_t bulk_count = 8;
const char* const child_variable = "SHOAL_SHM_CHILD";

shm::config config_of(std::uint8_t who) {
  shm::config c;
  c.self[0] = who;
  c.instance = who;
  return c;
}

/// The child's whole life: connects and plays its role, until it is killed or
/// the parent closes the socket.
void be_child(std::string_view what) {
  if (what == "other-shm"
      && (unshare(CLONE_NEWNS) != 0
          || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0
          || mount("shoal", "/dev/shm", "tmpfs", 0, nullptr) != 0)) {
    write_text(child_socket, "not permitted");
    return;
  }
  const peer_id parent = config_of(1).self;
  board notes;
  recorder heard(notes);
  std::vector<std::vector<std::byte>> memory(bulk_count);
  std::deque<outcome> done;
  shm::fabric node(config_of(what == "answer" ? 3 : 2), heard);
  write_text(child_socket, node.local_address());
  node.connect(read_text(child_socket));
  (void)notes.wait([&] { return heard.ups[parent] > 0; });
  if (what == "send later")
    (void)read_text(child_socket); // until the parent has posted
  for (std::uint32_t i = 0; i < bulk_count; ++i) {
    memory[i] = pattern(bulk_bytes, i);
    done.emplace_back(notes);
    if (what.starts_with("send"))
      (void)node.send_bulk(parent, {1, 0, i}, memory[i], done[i].done());
    else if (what == "receive")
      (void)node.post_receive(parent, {1, 0, i}, memory[i], done[i].done());
  }
  (void)node.send(parent, as_bytes("ready"));
  if (what == "other-shm") {
    memory[0].assign(bulk_bytes, std::byte{});
    outcome in(notes);
    (void)node.post_receive(parent, {2, 0, 0}, memory[0], in.done());
    (void)node.send(parent, as_bytes("posted"));
    (void)in.wait();
  }
  if (what == "die")
    ::kill(getpid(), SIGKILL);
  if (what == "exec")
    execl("/bin/sleep", "sleep", "60", nullptr);
  if (what == "answer")
    for (auto order = read_text(child_socket); !order.empty();
         order = read_text(child_socket))
      (void)node.send(parent, as_bytes(order));
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

/// How many pieces of shared memory this process maps.
std::size_t pieces_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("/memfd:shoal") != line.npos;
  return count;
}

/// The surviving node and a child that it is connected with.
struct survivor {
  survivor() : heard(notes), node(config_of(1), heard) {}

  bool meet(child& c) {
    auto address = read_text(c.socket());
    BOOST_REQUIRE(!address.empty());
    if (address == "not permitted")
      return false;
    int before = heard.ups[peer];
    node.connect(address);
    write_text(c.socket(), node.local_address());
    BOOST_REQUIRE(notes.wait(
      [&] { return heard.ups[peer] > before && heard.received > 0; }));
    return true;
  }
  void lose(child& c) {
    BOOST_TEST(pieces_mapped() >= 4u); // directories and channels of both
    c.kill();
    BOOST_REQUIRE(notes.wait([&] { return heard.downs[peer] > 0; }));
    BOOST_TEST(heard.why_down == errc::peer_lost);
    BOOST_TEST(node.send(peer, as_bytes("x")) == errc::peer_lost);
    BOOST_TEST(pieces_mapped() == 1u); // our directory
  }

  const peer_id peer = config_of(2).self;
  board notes;
  recorder heard;
  shm::fabric node;
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(child_entry);

BOOST_AUTO_TEST_CASE(an_idle_peer_that_is_killed_is_down_and_may_return) {
  survivor s;
  std::vector<std::byte> memory(100);
  outcome waiting(s.notes);
  for (int round = 0; round < 2; ++round) {
    child c("idle");
    BOOST_REQUIRE(s.meet(c));
    if (round == 0)
      BOOST_REQUIRE(
        !s.node.post_receive(s.peer, {1, 0, 0}, memory, waiting.done()));
    s.lose(c);
    BOOST_TEST(waiting.result == errc::peer_lost);
    BOOST_TEST(waiting.runs == 1);
    s.notes.post([&] {
      s.heard.downs.clear();
      s.heard.received = 0;
    });
  }
  BOOST_TEST(s.heard.order == "udud");
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_in_the_middle_ends_every_send) {
  const auto sent = pattern(bulk_bytes, 1);
  for (const std::size_t finished : {0u, 1u, 3u}) {
    survivor s;
    std::deque<outcome> out;
    child c("receive");
    BOOST_REQUIRE(s.meet(c));
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      out.emplace_back(s.notes);
      BOOST_REQUIRE(!s.node.send_bulk(s.peer, {1, 0, i}, sent, out[i].done()));
    }
    BOOST_REQUIRE(s.notes.wait([&] {
      return static_cast<std::size_t>(std::count_if(
               out.begin(), out.end(), [](auto& o) { return o.runs > 0; }))
             >= finished;
    }));
    s.lose(c);
    for (auto& o : out) {
      BOOST_TEST(o.runs == 1); // before down
      BOOST_TEST((!o.result || o.result == errc::peer_lost));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_ends_every_receive) {
  for (const std::size_t finished : {0u, 1u, 3u}) {
    std::vector<std::vector<std::byte>> got(bulk_count);
    survivor s;
    std::deque<outcome> in;
    child c("send later");
    auto address = read_text(c.socket());
    s.heard.on_message = nullptr;
    s.node.connect(address);
    write_text(c.socket(), s.node.local_address());
    BOOST_REQUIRE(s.notes.wait([&] { return s.heard.ups[s.peer] > 0; }));
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      got[i].resize(bulk_bytes);
      in.emplace_back(s.notes);
      BOOST_REQUIRE(
        !s.node.post_receive(s.peer, {1, 0, i}, got[i], in[i].done()));
    }
    write_text(c.socket(), "posted");
    BOOST_REQUIRE(s.notes.wait([&] {
      return static_cast<std::size_t>(std::count_if(
               in.begin(), in.end(), [](auto& o) { return o.runs > 0; }))
             >= finished;
    }));
    s.lose(c);
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      BOOST_TEST(in[i].runs == 1); // before down
      BOOST_TEST((!in[i].result || in[i].result == errc::peer_lost));
      if (!in[i].result)
        BOOST_TEST((got[i] == pattern(bulk_bytes, i)));
      // Nothing writes there any more.
      std::fill(got[i].begin(), got[i].end(), std::byte{7});
    }
    for (auto& bytes : got)
      BOOST_TEST((std::count(bytes.begin(), bytes.end(), std::byte{7})
                  == static_cast<std::ptrdiff_t>(bulk_bytes)));
  }
}

// At any moment of its thread's turn: asleep, awake or just waking.
BOOST_AUTO_TEST_CASE(a_death_is_noticed_at_any_moment) {
  for (const auto spin : {0, 30, 10000})
    for (int round = 0; round < (long_run() ? 20 : 2); ++round) {
      board notes;
      recorder heard(notes);
      auto settings = config_of(1);
      settings.spin = std::chrono::microseconds(spin);
      shm::fabric node(settings, heard);
      child c("die");
      node.connect(read_text(c.socket()));
      write_text(c.socket(), node.local_address());
      BOOST_REQUIRE(
        notes.wait([&] { return heard.downs[config_of(2).self] > 0; }));
    }
}

// It keeps its pid, and its pidfd says nothing.
BOOST_AUTO_TEST_CASE(a_peer_that_becomes_another_program_is_down) {
  survivor s;
  child c("exec");
  s.node.connect(read_text(c.socket()));
  write_text(c.socket(), s.node.local_address());
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard.downs[s.peer] > 0; }));
}

// A stopped process does not answer, and may continue later.
BOOST_AUTO_TEST_CASE(a_peer_that_hangs_is_dropped_at_once) {
  for (const char* what : {"receive", "send"}) {
    survivor s;
    child c(what);
    BOOST_REQUIRE(s.meet(c));
    std::deque<outcome> all;
    std::vector<std::vector<std::byte>> memory(
      bulk_count, std::vector<std::byte>(bulk_bytes));
    c.stop();
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      outcome& o = all.emplace_back(s.notes);
      BOOST_REQUIRE(
        *what == 'r'
          ? !s.node.send_bulk(s.peer, {1, 0, i}, memory[i], o.done())
          : !s.node.post_receive(s.peer, {1, 0, i}, memory[i], o.done()));
    }
    s.node.drop(s.peer);
    BOOST_REQUIRE(s.notes.wait([&] { return s.heard.downs[s.peer] > 0; }));
    for (auto& o : all) {
      BOOST_TEST(o.runs == 1);
      BOOST_TEST(o.result == errc::peer_lost);
    }
    BOOST_TEST(pieces_mapped() == 1u);
    c.go_on(); // to read the rest, and the end
  }
}

// A peer may die while it writes into what another peer receives from, which
// all others write into too.
BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_disturbs_no_other) {
  const peer_id other = config_of(3).self;
  std::vector<std::vector<std::byte>> got(bulk_count,
                                          std::vector<std::byte>(bulk_bytes));
  survivor s;
  child b("answer");
  const auto address_of_b = read_text(b.socket());
  s.node.connect(address_of_b);
  write_text(b.socket(), s.node.local_address());
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard.ups[other] > 0; }));
  for (int round = 1; round <= (long_run() ? 50 : 6); ++round) {
    std::deque<outcome> in;
    child a("send later");
    s.node.connect(read_text(a.socket()));
    write_text(a.socket(), s.node.local_address());
    BOOST_REQUIRE(s.notes.wait([&] { return s.heard.ups[s.peer] == round; }));
    for (std::uint32_t i = 0; i < bulk_count; ++i) {
      in.emplace_back(s.notes);
      BOOST_REQUIRE(
        !s.node.post_receive(s.peer, {1, 0, i}, got[i], in[i].done()));
    }
    write_text(a.socket(), "posted");
    BOOST_REQUIRE(s.notes.wait([&] {
      return std::ranges::any_of(in, [](auto& o) { return o.runs > 0; });
    }));
    a.kill();
    const auto before = s.heard.messages[other].size();
    write_text(b.socket(), "still here");
    BOOST_REQUIRE(
      s.notes.wait([&] { return s.heard.messages[other].size() > before; }));
    BOOST_REQUIRE(s.notes.wait([&] { return s.heard.downs[s.peer] == round; }));
  }
}

// Peers may run in mount namespaces of their own, with another /dev/shm.
BOOST_AUTO_TEST_CASE(another_dev_shm_does_not_matter) {
  survivor s;
  child c("other-shm");
  if (!s.meet(c)) {
    BOOST_TEST_MESSAGE("skipped: a mount namespace needs root");
    return;
  }
  BOOST_REQUIRE(s.notes.wait([&] { return s.heard.received == 2; }));
  const auto sent = pattern(bulk_bytes, 9);
  outcome out(s.notes);
  BOOST_REQUIRE(!s.node.send_bulk(s.peer, {2, 0, 0}, sent, out.done()));
  BOOST_REQUIRE(out.wait());
  BOOST_TEST(!out.result);
  s.lose(c);
}

BOOST_AUTO_TEST_SUITE_END()
