// tests/runtime/control/control_socket_test.cpp -- the Unix socket of a node
// when clients do not behave, or the process has no descriptor left. The node
// is one of tests, which answers at once.
#include "runtime/control/control.hpp"
#include "runtime/control/frames.hpp"
#include "runtime/control/unix_socket.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/control/asked_node.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>

namespace {

/// While it is set, accept4() of this program finds no descriptor.
std::atomic<bool> no_descriptors{false};
std::atomic<std::uint64_t> refused_accepts{0};

} // namespace

/// Before the C library's: the control socket alone accepts by it.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  if (!no_descriptors)
    return int(::syscall(SYS_accept4, fd, address, bytes, flags));
  ++refused_accepts;
  refused_accepts.notify_all();
  errno = EMFILE;
  return -1;
}

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(clients_at_the_socket)

using clock = std::chrono::steady_clock;

namespace {

/// What is answered to `shoal status`: more than is asked.
const std::string status_text(4096, 's');

struct requests_without_node {
  requests_without_node() {
    node.status_text = status_text;
    served = std::make_unique<control>(socket, node);
  }

  const test::scratch folder{"shoal-control-test"};
  const std::filesystem::path socket = folder.path() / "control.sock";
  std::unique_ptr<job_journal> journal = open_job_journal({});
  tests::asked_node node{*journal};
  const std::atomic<std::uint64_t>& asked = node.asked;
  std::unique_ptr<control> served;
};

std::vector<std::byte> request(std::uint64_t number) {
  return frame(codec::encode(client_request{number, ask_status{}}));
}

/// Waits for the next reply.
client_reply reply_of(const unique_fd& fd, frame_reader& in) {
  std::vector<std::byte> bytes;
  while (!in.next(bytes))
    BOOST_TEST_REQUIRE(in.fill(fd.get()));
  envelope e;
  BOOST_TEST_REQUIRE(!codec::decode(bytes, e));
  BOOST_TEST_REQUIRE(std::holds_alternative<client_reply>(e));
  return std::get<client_reply>(std::move(e));
}

/// One question and its answer: the control thread has turned meanwhile.
void ask_once(const unique_fd& fd, frame_reader& in, std::uint64_t number) {
  const auto bytes = request(number);
  BOOST_TEST_REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
                     == ssize_t(bytes.size()));
  BOOST_TEST_REQUIRE(reply_of(fd, in).number == number);
}

} // namespace

/// It comes behind a request that waits, and is not held up by it; what is behind both
/// is, and is not lost.
BOOST_AUTO_TEST_CASE(what_waits_can_be_taken_back_on_the_same_connection) {
  requests_without_node d;
  d.node.late_text = "withdrawn";
  const unique_fd client = connect_unix(d.socket);
  BOOST_TEST_REQUIRE(bool(client));
  for (const client_request& r : {client_request{1, submit_job{}, {}},
                                  client_request{2, take_back{1}, {}},
                                  client_request{3, ask_status{}, {}}}) {
    const auto bytes = frame(codec::encode(r));
    BOOST_TEST_REQUIRE(
      ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
      == ssize_t(bytes.size()));
  }
  frame_reader in;
  const client_reply first = reply_of(client, in);
  BOOST_TEST(first.number == 1u);
  BOOST_TEST(first.text == "withdrawn");
  BOOST_TEST(reply_of(client, in).number == 2u);
  BOOST_TEST(reply_of(client, in).number == 3u);
}

BOOST_AUTO_TEST_CASE(other_requests_wait_behind_one_that_waits) {
  requests_without_node d;
  const unique_fd client = connect_unix(d.socket);
  const unique_fd other = connect_unix(d.socket);
  BOOST_TEST_REQUIRE(bool(client));
  BOOST_TEST_REQUIRE(bool(other));
  auto bytes = frame(codec::encode(client_request{1, submit_job{}, {}}));
  const auto more = request(2);
  bytes.insert(bytes.end(), more.begin(), more.end());
  BOOST_TEST_REQUIRE(
    ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
    == ssize_t(bytes.size()));
  frame_reader in, other_in;
  for (std::uint64_t turn = 1; turn <= 10; ++turn)
    ask_once(other, other_in, turn);
  BOOST_TEST(d.asked == 10u);
  d.served->answered(1, {0, "no room", {}, {}});
  BOOST_TEST(reply_of(client, in).text == "no room");
  BOOST_TEST(reply_of(client, in).number == 2u);
}

/// The client writes for as long as anything is taken. It has been stopped when
/// nothing is, however often the control thread has turned.
BOOST_AUTO_TEST_CASE(a_client_that_does_not_read_is_not_read) {
  requests_without_node d;
  const unique_fd deaf = connect_unix(d.socket);
  const unique_fd other = connect_unix(d.socket);
  BOOST_TEST_REQUIRE(bool(deaf));
  BOOST_TEST_REQUIRE(bool(other));
  frame_reader other_in;
  constexpr std::size_t taken_max = std::size_t{16} << 20;
  constexpr std::uint64_t turns = 50;
  std::vector<std::byte> waiting;
  std::size_t taken = 0;
  std::uint64_t sent = 0, number = 0, still = 0;
  while (still < turns && taken < taken_max) {
    if (waiting.empty())
      waiting = request(++sent);
    const auto n = ::send(deaf.get(), waiting.data(), waiting.size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      waiting.erase(waiting.begin(), waiting.begin() + n);
      taken += std::size_t(n);
      still = 0;
    } else {
      BOOST_TEST_REQUIRE((errno == EAGAIN || errno == EWOULDBLOCK));
      ++still;
      ask_once(other, other_in, ++number);
    }
  }
  BOOST_TEST(taken < taken_max);

  // Nothing is lost: it reads at last, and all is answered in order.
  const std::uint64_t whole = sent - (waiting.empty() ? 0 : 1);
  BOOST_TEST_REQUIRE(whole > 0);
  frame_reader in;
  for (std::uint64_t i = 1; i <= whole; ++i) {
    const client_reply r = reply_of(deaf, in);
    BOOST_TEST_REQUIRE(r.number == i);
    BOOST_TEST_REQUIRE(r.text == status_text);
  }
}

BOOST_AUTO_TEST_CASE(it_does_not_turn_while_no_descriptor_is_left) {
  requests_without_node d;
  const unique_fd known = connect_unix(d.socket);
  BOOST_TEST_REQUIRE(bool(known));
  frame_reader in;
  std::uint64_t number = 0;
  ask_once(known, in, ++number);

  const auto begin = clock::now();
  no_descriptors = true;
  const unique_fd waits = connect_unix(d.socket);
  refused_accepts.wait(0);
  for (int i = 0; i < 100; ++i) // others are served meanwhile
    ask_once(known, in, ++number);
  const std::uint64_t pauses =
    std::uint64_t((clock::now() - begin) / control_accept_pause);
  BOOST_TEST(refused_accepts <= 1 + pauses);

  no_descriptors = false;
  frame_reader late;
  ask_once(waits, late, 1); // and it is accepted
}

BOOST_AUTO_TEST_CASE(bytes_read_and_not_returned_are_bounded) {
  frame_reader in;
  const auto small = request(1);
  std::vector<std::byte> bytes;
  BOOST_TEST(!in.whole());
  for (std::size_t i = 0; i < small.size(); ++i) {
    BOOST_TEST(!in.whole());
    in.add(std::span(small).subspan(i, 1));
  }
  BOOST_TEST(in.whole());
  BOOST_TEST(in.next(bytes));
  BOOST_TEST(!in.whole());
  BOOST_TEST(in.bytes() == 0);

  const auto largest =
    frame(std::vector<std::byte>(codec::message_bytes_max, std::byte{7}));
  in.add(largest);
  BOOST_TEST(in.whole());
  BOOST_TEST(in.next(bytes));
  BOOST_TEST(bytes.size() == codec::message_bytes_max);

  // A length over the limit: it is refused without waiting for the data.
  in.add(std::vector<std::byte>{std::byte{1}, {}, std::byte{16}, {}});
  BOOST_TEST(in.whole());
  BOOST_TEST(!in.next(bytes));
  BOOST_TEST(in.broken());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
