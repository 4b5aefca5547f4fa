// tests/transport/ucx/processes.hpp -- a node that survives, and its child.
//
// A test first defines config_of() and child_variable in its anonymous
// namespace. The child is this program started again with that variable set to
// its role; the two exchange addresses over a socket. It is killed or stopped
// at a moment that the exchange itself defines, never after a time.
#include <unistd.h>

#include <csignal>

namespace {

constexpr std::size_t bulk_bytes = 8u << 20;
constexpr std::uint32_t bulk_count = 6;
/// The child is 2: the number may decide which end dials.
std::uint8_t survivor_number = 1;

/// The child's whole life: connects and plays its role, until it is killed or
/// the parent closes the socket.
void be_child(std::string_view what) {
  board notes;
  recorder heard(notes);
  std::vector<std::vector<std::byte>> memory(bulk_count);
  std::deque<outcome> done;
  ucx::fabric node(config_of(2), heard);
  write_text(child_socket, node.local_address());
  const auto address = read_text(child_socket);
  const peer_id parent = introduced::parse_address(address)->peer;
  node.connect(address);
  if (what == "die")
    ::kill(getpid(), SIGKILL);
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
  survivor() : heard(notes), node(config_of(survivor_number), heard) {}

  /// Connects. A `far` child claims to be on another machine, so that only UCX
  /// can notice its end.
  void meet(child& c, bool far) {
    auto address = introduced::parse_address(read_text(c.socket()));
    BOOST_REQUIRE(address.has_value());
    if (far)
      address->host.boot_id = "another";
    const std::size_t before = heard.received;
    node.connect(introduced::format_address(*address));
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
