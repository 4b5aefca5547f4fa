// tests/runtime/http/raw_client.cpp -- sockets, poll() and waiting.
#include "tests/runtime/http/raw_client.hpp"

#include <arpa/inet.h>
#include <boost/test/unit_test.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <thread>
#include <utility>

namespace shoal::test {

using namespace runtime;
using namespace std::chrono_literals;

namespace {

constexpr auto far_off = 120s;
constexpr int far_off_ms = 120000;

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error("waited in vain: " + what);
}

bool wait_fd(int fd, short events, int milliseconds) {
  pollfd p{fd, events, 0};
  return ::poll(&p, 1, milliseconds) == 1;
}

} // namespace

raw_client::raw_client(std::uint16_t port)
  : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("cannot connect");
}

std::size_t raw_client::send_some(std::string_view bytes) {
  const auto sent =
    ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

bool raw_client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!wait_fd(fd_.get(), POLLOUT, far_off_ms))
      give_up("room to send");
    const auto sent =
      ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void raw_client::half_close() {
  ::shutdown(fd_.get(), SHUT_WR);
}

void raw_client::close() {
  fd_.reset();
}

void raw_client::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.reset();
}

void raw_client::small_window() {
  const int bytes = 4096;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool raw_client::readable(int milliseconds) const {
  return !got_.empty() || wait_fd(fd_.get(), POLLIN, milliseconds);
}

bool raw_client::more() {
  if (!wait_fd(fd_.get(), POLLIN, far_off_ms))
    give_up("bytes of the server");
  char buffer[65536];
  const auto count = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  if (count <= 0)
    return false;
  got_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::string raw_client::read_until(std::string_view text) {
  std::size_t end = 0;
  while ((end = got_.find(text)) == got_.npos)
    if (!more())
      throw std::runtime_error("the server has closed: " + got_);
  auto out = got_.substr(0, end + text.size());
  got_.erase(0, out.size());
  return out;
}

std::string raw_client::read_bytes(std::size_t count) {
  while (got_.size() < count)
    if (!more())
      throw std::runtime_error("the server has closed: " + got_);
  auto out = got_.substr(0, count);
  got_.erase(0, count);
  return out;
}

std::string raw_client::read_to_end() {
  while (more()) {
  }
  return std::exchange(got_, {});
}

http_answer raw_client::read_head() {
  http_answer a;
  const std::string head = read_until("\r\n\r\n");
  a.status = static_cast<unsigned>(std::stoul(head.substr(9, 3)));
  std::size_t at = head.find("\r\n") + 2;
  while (at + 2 < head.size()) {
    const auto end = head.find("\r\n", at);
    const auto colon = head.find(": ", at);
    std::string name = head.substr(at, colon - at);
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    a.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return a;
}

http_answer raw_client::read(bool head_only) {
  auto a = read_head();
  a.whole = true;
  if (head_only || a.status == 204)
    return a;
  if (a.headers.contains("content-length")) {
    a.body = read_bytes(std::stoul(a.header("content-length")));
    return a;
  }
  if (a.header("transfer-encoding") != "chunked") {
    a.body = read_to_end();
    return a;
  }
  while (got_.find("\r\n") != got_.npos || more()) {
    const auto end = got_.find("\r\n");
    if (end == got_.npos)
      continue;
    const auto size = std::stoul(got_.substr(0, end), nullptr, 16);
    got_.erase(0, end + 2);
    const auto chunk = read_bytes(size + 2);
    a.body += chunk.substr(0, size);
    if (size == 0)
      return a;
  }
  a.whole = false; // cut off between chunks
  return a;
}

// ---- what the server calls ----

void notices::closed() {
  const std::lock_guard guard(mutex_);
  ++closed_;
  changed_.notify_all();
}

void notices::writable() {
  const std::lock_guard guard(mutex_);
  ++writable_;
  changed_.notify_all();
}

void notices::wait_closed() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, far_off, [this] { return closed_ > 0; }))
    give_up("closed()");
}

void notices::wait_writable(int times) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, far_off,
                         [this, times] { return writable_ >= times; }))
    give_up("writable()");
}

int notices::closes() {
  const std::lock_guard guard(mutex_);
  return closed_;
}

std::optional<openai::api_error>
held_requests::check(const http_request& head) {
  if (head.path != "/none")
    return std::nullopt;
  auto error = openai::invalid_request("nothing here");
  error.status = 404;
  return error;
}

void held_requests::on_request(std::shared_ptr<http_exchange> exchange) {
  const http_request& r = exchange->request();
  if (r.path.starts_with("/now")) {
    exchange->respond(200, {{"X-Path", r.path}}, r.body);
    return;
  }
  const std::lock_guard guard(mutex_);
  held_.push_back(std::move(exchange));
  came_.notify_all();
}

std::shared_ptr<http_exchange> held_requests::next() {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, far_off, [this] { return !held_.empty(); }))
    give_up("a request");
  auto first = std::move(held_.front());
  held_.pop_front();
  return first;
}

// ---- the server ----

http_fixture::http_fixture() {
  config.listen = "127.0.0.1:0";
  config.clock = clock;
}

void http_fixture::advance(std::chrono::seconds by) {
  clock->advance(by);
  const auto before = clock->reads();
  server->clock_changed();
  clock->wait_for_read(before);
}

void http_fixture::advance_until(const std::function<bool()>& done,
                                 std::chrono::seconds by) {
  const auto end = std::chrono::steady_clock::now() + far_off;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end)
      give_up("what is due");
    advance(by);
  }
}

void http_fixture::advance_until_readable(const raw_client& client,
                                          std::chrono::seconds by) {
  advance_until([&] { return client.readable(10); }, by);
}

void http_fixture::wait_for(std::uint64_t http_counts::*count,
                            std::uint64_t value) {
  const auto end = std::chrono::steady_clock::now() + far_off;
  while (server->counts().*count != value) {
    if (std::chrono::steady_clock::now() > end)
      give_up("a count of " + std::to_string(value));
    std::this_thread::yield();
  }
}

std::string get(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body,
                 const std::string& headers) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
         + std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

} // namespace shoal::test
