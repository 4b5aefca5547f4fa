// tests/conformance/ucx_process_test.cpp -- UCX between real processes.
//
// The child is this program started again with SHOAL_UCX_CHILD set to what it
// shall do; the two exchange addresses over a socket. A child is killed at a
// moment that the exchange itself defines, never after a time.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "transport/ucx/fabric.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace fs = std::filesystem;

namespace {

constexpr std::size_t bulk_bytes = 32u << 20;
constexpr std::uint32_t bulk_count = 8;
const char* const child_variable = "SHOAL_UCX_CHILD";

ucx::config config_of(std::uint8_t who) {
  ucx::config c;
  c.self[0] = who;
  c.instance = who;
  return c;
}

/// The child's whole life: connects, does what it is told, until it is killed
/// or the parent closes the socket.
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
  ucx::fabric node(config_of(2), heard);
  write_text(child_socket, node.local_address());
  node.connect(read_text(child_socket));
  (void)notes.wait([&] { return heard.ups[parent] > 0; });
  for (std::uint32_t i = 0; i < bulk_count; ++i) {
    memory[i] = pattern(bulk_bytes, i);
    done.emplace_back(notes);
    if (what == "send")
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
  (void)read_text(child_socket); // until the parent has seen enough
  node.close();
}

struct child_entry {
  child_entry() {
    if (auto what = std::getenv(child_variable)) {
      be_child(what);
      _exit(0);
    }
  }
};

class child : public child_process {
public:
  explicit child(const char* what) : child_process(child_variable, what) {}
};

/// Whether a living process, of another test say, maps the file.
bool mapped(const std::string& file) {
  std::error_code skip; // processes end while we look
  for (const auto& process : fs::directory_iterator("/proc", skip)) {
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(file) != std::string::npos)
        return true;
  }
  return false;
}

std::vector<std::string> shared_files() {
  std::vector<std::string> found;
  for (const auto& file : fs::directory_iterator("/dev/shm"))
    if (file.path().filename().string().starts_with("ucx_shm"))
      found.push_back(file.path());
  return found;
}
const std::vector<std::string> files_before = shared_files();

/// New files in /dev/shm that nobody uses and nobody will remove.
std::vector<std::string> files_left() {
  std::vector<std::string> found = shared_files();
  std::erase_if(found, [](const std::string& f) {
    return std::ranges::find(files_before, f) != files_before.end();
  });
  // Another test's file is mapped, or gone by now.
  std::erase_if(found,
                [](const auto& f) { return mapped(f) || !fs::exists(f); });
  return found;
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
    c.kill();
    BOOST_REQUIRE(notes.wait([&] { return heard.downs[peer] > 0; }));
    BOOST_TEST(heard.why_down == errc::peer_lost);
    BOOST_TEST(node.send(peer, as_bytes("x")) == errc::peer_lost);
    BOOST_TEST(files_left() == std::vector<std::string>{},
               boost::test_tools::per_element());
  }

  const peer_id peer = config_of(2).self;
  board notes;
  recorder heard;
  ucx::fabric node;
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(child_entry);

BOOST_AUTO_TEST_SUITE(ucx_processes)

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
    child c("send");
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
    // The first may have come before it was posted: then it is dropped and
    // stays posted, so at most bulk_count - 1 may be waited for.
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
