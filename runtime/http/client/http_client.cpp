// runtime/http/client/http_client.cpp -- a socket that is polled.
#include "runtime/http/client/http_client.hpp"

#include "runtime/files/posix.hpp"
#include "runtime/http/client/response_reader.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace shoal::runtime {
namespace {

using clock = std::chrono::steady_clock;
using model::failure;
using posix::descriptor;

std::string system_text(int error) {
  return std::generic_category().message(error);
}

enum class waited { ready, stopped, late };

/// Waits until the socket can be read or written.
waited wait_for(int fd, short events, int wake,
                std::optional<clock::time_point> until) {
  for (;;) {
    int ms = -1;
    if (until)
      ms = int(std::max<std::int64_t>(
        0, std::chrono::ceil<std::chrono::milliseconds>(*until - clock::now())
             .count()));
    std::array<pollfd, 2> fds{pollfd{fd, events, 0}, pollfd{wake, POLLIN, 0}};
    const int got = ::poll(fds.data(), fds.size(), ms);
    if (fds[1].revents != 0 && got > 0)
      return waited::stopped;
    if (got > 0)
      return waited::ready;
    if (got == 0)
      return waited::late;
    if (errno != EINTR)
      return waited::ready; // the call that follows says why
  }
}

struct dialed {
  descriptor fd;
  bool stopped = false;
};

using step = client_stream::step;

/// A socket as it is.
class plain_stream final : public client_stream {
public:
  explicit plain_stream(int fd) : fd_(fd) {}

  moved read(std::span<char> into) override {
    for (;;) {
      const ssize_t got = ::recv(fd_, into.data(), into.size(), 0);
      if (got > 0)
        return {step::done, std::size_t(got)};
      if (got == 0)
        return {step::closed};
      if (errno == EAGAIN)
        return {step::wants_read};
      if (errno != EINTR)
        return fail();
    }
  }

  moved write(std::string_view from) override {
    for (;;) {
      const ssize_t sent = ::send(fd_, from.data(), from.size(), MSG_NOSIGNAL);
      if (sent >= 0)
        return {step::done, std::size_t(sent)};
      if (errno == EAGAIN)
        return {step::wants_write};
      if (errno != EINTR)
        return fail();
    }
  }

  bool closed_in_order() const override { return true; }
  const std::string& error() const override { return error_; }

private:
  moved fail() {
    error_ = "the connection broke: " + system_text(errno);
    return {step::failed};
  }

  int fd_;
  std::string error_;
};

short events_of(step s) {
  return s == step::wants_read    ? POLLIN
         : s == step::wants_write ? POLLOUT
         : s == step::wants_any   ? short(POLLIN | POLLOUT)
                                  : short{0};
}

struct opened {
  std::unique_ptr<client_stream> stream;
  bool stopped = false;
};

/// Sets up what goes over a connection.
model::result<opened>
open_stream(const http_url& url, std::shared_ptr<const tls_trust> trust, int fd,
            int wake, clock::time_point until) {
  if (!url.secure)
    return opened{std::make_unique<plain_stream>(fd)};
  if (!trust)
    return failure{"no certificates have been loaded to check it by"};
  auto tls = std::make_unique<tls_stream>(std::move(trust), fd, url.host);
  for (;;) {
    const step s = tls->shake_hands();
    if (s == step::done)
      return opened{std::move(tls)};
    if (events_of(s) == 0)
      return failure{tls->error()};
    const waited w = wait_for(fd, events_of(s), wake, until);
    if (w == waited::stopped)
      return opened{nullptr, true};
    if (w == waited::late)
      return failure{"it does not answer by TLS in time"};
  }
}

model::result<dialed>
connect_to(const http_url& url, int wake, clock::time_point until) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int error =
        ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
      error != 0)
    return failure{"its name is not known: "
                   + std::string(::gai_strerror(error))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(
    found, &::freeaddrinfo);
  std::string why = "it has no address";
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    descriptor fd(
      ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int error = fd ? 0 : errno;
    if (fd && ::connect(fd.get(), each->ai_addr, each->ai_addrlen) != 0)
      error = errno;
    if (error == EINPROGRESS) {
      const waited w = wait_for(fd.get(), POLLOUT, wake, until);
      if (w == waited::stopped)
        return dialed{{}, true};
      socklen_t size = sizeof error;
      if (w == waited::late)
        error = ETIMEDOUT;
      else
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      // A machine that has gone is noticed after some minutes of silence.
      ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      return dialed{std::move(fd), false};
    }
    why = system_text(error);
  }
  return failure{why};
}

} // namespace

std::string http_url::authority() const {
  return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + port;
}

std::string http_url::text() const {
  return (secure ? "https://" : "http://") + authority() + path;
}

model::result<http_url> parse_http_url(std::string_view text) {
  constexpr std::string_view scheme = "http://", secure = "https://";
  http_url out;
  const auto wrong = [&](const std::string& why) {
    return failure{"'" + std::string(text) + "' " + why};
  };
  if (std::ranges::any_of(
        text, [](unsigned char c) { return c <= ' ' || c >= 0x7f; }))
    return failure{"a URL has neither spaces nor controls"};
  std::string_view rest = text;
  if (rest.starts_with(secure)) {
    rest.remove_prefix(secure.size());
    out.secure = true;
    out.port = "443";
  } else if (rest.starts_with(scheme)) {
    rest.remove_prefix(scheme.size());
  } else if (rest.find("://") != rest.npos) {
    return wrong("is no http:// or https:// address");
  }
  const auto slash = std::min(rest.find_first_of("/?#"), rest.size());
  out.path = rest.substr(slash);
  if (out.path.find_first_of("?#") != std::string::npos)
    return wrong("has more than a path after its host");
  while (out.path.ends_with('/'))
    out.path.pop_back();
  rest = rest.substr(0, slash);
  if (rest.find('@') != rest.npos)
    return wrong("has a user's name");
  std::string_view port;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == rest.npos)
      return wrong("has no ] after its address");
    out.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const auto colon = std::min(rest.find(':'), rest.size());
    out.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  if (out.host.empty())
    return wrong("has no host");
  if (!port.empty()) {
    port.remove_prefix(1);
    std::uint16_t number = 0;
    const char* const last = port.data() + port.size();
    const auto [end, error] = std::from_chars(port.data(), last, number);
    if (error != std::errc() || end != last || number == 0
        || rest[rest.size() - port.size() - 1] != ':')
      return wrong("has no port from 1 to 65535");
    out.port = std::to_string(number);
  }
  return out;
}

bool http_client::is_key(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c > ' ' && c < 0x7f;
  });
}

std::string
http_client::head_of(const char* method, const std::string& path) const {
  std::string out = std::string(method) + " " + settings_.base.path + path
                    + " HTTP/1.1\r\nHost: " + settings_.base.authority()
                    + "\r\nUser-Agent: shoal\r\nConnection: close\r\n";
  if (!settings_.key.empty())
    out += "Authorization: Bearer " + settings_.key + "\r\n";
  return out;
}

model::result<http_reply> http_client::get(const std::string& path) {
  return ask(head_of("GET", path) + "\r\n", nullptr);
}

model::result<http_reply>
http_client::stream(const std::string& path, const std::string& json,
                    const event_stream::taker& take) {
  return ask(head_of("POST", path)
               + "Accept: text/event-stream\r\nContent-Type: "
                 "application/json\r\nContent-Length: "
               + std::to_string(json.size()) + "\r\n\r\n" + json,
             &take);
}

model::result<http_reply>
http_client::ask(const std::string& request, const event_stream::taker* take) {
  namespace limits = http_client_limits;
  const auto until = clock::now() + settings_.connect_max;
  auto to = connect_to(settings_.base, settings_.wake, until);
  if (!to)
    return to.why();
  http_reply out;
  out.stopped = to->stopped;
  if (out.stopped)
    return out;
  const int fd = to->fd.get();
  auto over =
    open_stream(settings_.base, settings_.trust, fd, settings_.wake, until);
  if (!over)
    return over.why();
  out.stopped = over->stopped;
  response_reader reader(limits::head_bytes_max, take
                                                   ? limits::stream_bytes_max
                                                   : limits::reply_bytes_max);
  event_stream events(limits::event_bytes_max);
  std::string input, body;
  std::string_view unsent = request;
  std::array<char, 16 << 10> piece{};
  auto step = response_reader::step::more;
  while (step == response_reader::step::more && !out.stopped) {
    using to_do = client_stream::step;
    client_stream::moved sent{to_do::done, 0};
    if (!unsent.empty()) {
      sent = over->stream->write(unsent);
      unsent.remove_prefix(sent.bytes);
      if (sent.is == to_do::failed)
        unsent = {}; // what it has answered tells more
    }
    // A server may answer, and refuse, before it has read the whole request.
    const client_stream::moved got = over->stream->read(piece);
    if (got.is == to_do::failed)
      return failure{over->stream->error()};
    if (events_of(got.is) != 0) {
      if (sent.is == to_do::done && !unsent.empty())
        continue; // it takes more
      const short wanted =
        short(events_of(got.is) | (unsent.empty() ? 0 : events_of(sent.is)));
      if (wait_for(fd, wanted, settings_.wake, {}) == waited::stopped)
        out.stopped = true;
      continue;
    }
    if (got.is == to_do::closed) {
      step = reader.end();
      if (step == response_reader::step::complete
          && !over->stream->closed_in_order())
        return failure{"the connection was cut before its answer was whole"};
    } else {
      input.append(piece.data(), got.bytes);
      std::string_view rest = input;
      step = reader.put(rest, body);
      input.erase(0, input.size() - rest.size());
    }
    if (take != nullptr && reader.status() == 200) {
      const auto e = events.put(body, *take);
      body.clear();
      if (e == event_stream::step::too_large)
        return failure{"an event of its answer is too large"};
      out.stopped = e == event_stream::step::stopped;
    }
    if (body.size() > limits::reply_bytes_max)
      return failure{"its answer is too large"};
  }
  if (step == response_reader::step::failed)
    return failure{reader.error()};
  out.status = reader.status();
  out.body = std::move(body);
  return out;
}

} // namespace shoal::runtime
