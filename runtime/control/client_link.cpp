// runtime/control/client_link.cpp -- one connection of a client to one node.
#include "runtime/control/client_link.hpp"

#include "runtime/control/frames.hpp"
#include "runtime/control/unix_socket.hpp"
#include "runtime/wire/codec.hpp"
#include "transport/tls/fabric.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace shoal::runtime {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How often a request that may be taken back looks whether it still is wanted.
static constexpr milliseconds goes_on_period{100};
/// A node that is between two steps of an agreement cannot take back: it is asked
/// again.
static constexpr milliseconds take_back_period{1000};
/// How long a node may take to answer what was taken back.
static constexpr milliseconds taken_back_wait{10000};
/// Marks the numbers of requests whose replies nobody waits for.
static constexpr std::uint64_t unanswered = std::uint64_t{1} << 63;

std::error_code
client_link::call(const client_request& request, client_reply& reply,
                  milliseconds timeout, const std::function<bool()>& goes_on) {
  if (auto error = begin(request))
    return error;
  if (!goes_on)
    return wait(reply, timeout);
  auto until = steady_clock::now() + timeout;
  std::optional<steady_clock::time_point> asked; // to take it back
  for (;;) {
    const auto error = wait(reply, goes_on_period);
    const auto now = steady_clock::now();
    if (error != errc::timed_out || now >= until)
      return error;
    if (asked ? now < *asked + take_back_period : goes_on())
      continue;
    if (!asked)
      until = now + taken_back_wait;
    asked = now;
    if (auto lost =
          tell({request.number | unanswered, take_back{request.number}, {}}))
      return lost;
  }
}

namespace {

class unix_link final : public client_link {
public:
  explicit unix_link(unique_fd fd) : fd_(std::move(fd)) {}

  std::error_code begin(const client_request& request) override {
    number_ = request.number;
    return tell(request);
  }

  std::error_code tell(const client_request& request) override {
    auto out = frame(codec::encode(request));
    std::size_t sent = 0;
    while (sent < out.size()) {
      ssize_t n =
        ::send(fd_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR)
        break; // it may have sent a reason before it closed
      sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    }
    return {};
  }

  std::error_code wait(client_reply& reply, milliseconds timeout) override {
    auto until = steady_clock::now() + timeout;
    std::vector<std::byte> bytes;
    for (;;) {
      if (in_.next(bytes)) {
        envelope e;
        if (auto error = codec::decode(bytes, e))
          return error;
        auto* answer = std::get_if<client_reply>(&e);
        if (!answer)
          return errc::corrupt;
        const bool turned_away = answer->number == 0;
        if (answer->number != number_ && !turned_away)
          continue; // reply to a request that was given up
        reply = std::move(*answer);
        return {};
      }
      auto left =
        std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
      pollfd at{fd_.get(), POLLIN, 0};
      if (in_.broken())
        return errc::corrupt;
      if (left <= 0 || (::poll(&at, 1, static_cast<int>(left)) == 0))
        return errc::timed_out;
      if (!in_.fill(fd_.get()))
        return errc::lost;
    }
  }

private:
  unique_fd fd_;
  frame_reader in_;
  std::uint64_t number_ = 0; ///< of the request whose reply is waited for
};

class tls_link final : public client_link, public transport::fabric_handler {
public:
  tls_link(std::string address, transport::tls::config c)
    : address_(std::move(address)) {
    c.listen.clear();
    c.instance = transport::tls::make_instance();
    c.log = [this](std::string_view line) {
      std::lock_guard lock(mutex_);
      last_line_ = line;
    };
    c.refused = [this](transport::tls::refusal reason, const std::string&) {
      std::lock_guard lock(mutex_);
      revoked_ = reason == transport::tls::refusal::revoked;
    };
    fabric_ = std::make_unique<transport::tls::fabric>(std::move(c), *this);
  }
  ~tls_link() override { fabric_->close(); }

  bool connect(milliseconds timeout) {
    fabric_->connect(address_);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return node_ || lost_; });
    return node_ && !lost_;
  }
  std::string said() {
    std::lock_guard lock(mutex_);
    return last_line_.empty() ? address_ + ": no answer in time" : last_line_;
  }
  /// Whether a node answered and did not prove the key.
  bool refuses() {
    std::lock_guard lock(mutex_);
    return refuses_;
  }

  /// Whether a node answered that knows this identity as revoked.
  bool revoked() {
    std::lock_guard lock(mutex_);
    return revoked_;
  }

  std::error_code begin(const client_request& request) override {
    {
      std::lock_guard lock(mutex_);
      reply_.reset();
      number_ = request.number;
    }
    return tell(request);
  }

  std::error_code tell(const client_request& request) override {
    auto bytes = codec::encode(request);
    std::unique_lock lock(mutex_);
    if (lost_ || !node_)
      return errc::lost;
    core::peer_id to = *node_;
    lock.unlock();
    return fabric_->send(to, bytes) ? make_error_code(errc::lost)
                                    : std::error_code();
  }

  std::error_code wait(client_reply& reply, milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [this] { return reply_ || lost_; }))
      return errc::timed_out;
    if (!reply_)
      return errc::lost;
    reply = std::move(*reply_);
    return {};
  }

private:
  void up(const transport::peer_info& peer) override {
    std::lock_guard lock(mutex_);
    node_ = peer.id;
    changed_.notify_all();
  }
  void down(const core::peer_id&, std::error_code) override { lose(); }
  void connect_failed(const std::string&, std::error_code error) override {
    {
      std::lock_guard lock(mutex_);
      refuses_ = error == transport::errc::refused;
    }
    lose();
  }
  void
  message(const core::peer_id&, std::span<const std::byte> bytes) override {
    envelope e;
    if (codec::decode(bytes, e))
      return;
    auto* answer = std::get_if<client_reply>(&e);
    std::lock_guard lock(mutex_);
    if (!answer || answer->number != number_)
      return;
    reply_ = std::move(*answer);
    changed_.notify_all();
  }
  void lose() {
    std::lock_guard lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  }

  std::string address_;
  std::mutex mutex_; ///< guards all but the fabric
  std::condition_variable changed_;
  std::optional<core::peer_id> node_;
  std::optional<client_reply> reply_;
  std::uint64_t number_ = 0; ///< of the request whose reply is waited for
  bool lost_ = false;
  bool refuses_ = false;
  bool revoked_ = false;
  std::string last_line_;                          ///< last line from the
                                                   ///< fabric
  std::unique_ptr<transport::tls::fabric> fabric_; ///< last member: it calls
                                                   ///< this object
};

} // namespace

std::unique_ptr<client_link>
make_unix_link(const std::filesystem::path& socket) {
  unique_fd fd = connect_unix(socket);
  if (!fd)
    return nullptr;
  return std::make_unique<unix_link>(std::move(fd));
}

static bool connected(tls_link& link, milliseconds timeout, std::string& why) {
  const bool ok = link.connect(timeout);
  if (!ok)
    why = link.said();
  return ok;
}

std::unique_ptr<client_link>
make_tls_link(const std::string& address, const transport::tls::shared_key& key,
              milliseconds timeout, std::string& why, bool& refuses) {
  transport::tls::config c;
  c.identity = transport::tls::make_private_key();
  c.cluster_key = key;
  c.role = transport::peer_role::client;
  auto link = std::make_unique<tls_link>(address, std::move(c));
  const bool ok = connected(*link, timeout, why);
  refuses = !ok && link->refuses();
  return ok ? std::move(link) : nullptr;
}

std::unique_ptr<client_link>
make_invitee_link(const std::string& address, const invite_token& token,
                  const transport::tls::private_key& identity,
                  milliseconds timeout, std::string& why, bool& revoked) {
  transport::tls::config c;
  c.identity = identity;
  c.cluster_key = token.key;
  c.expected = token.inviter;
  c.role = transport::peer_role::invitee;
  c.planner = core::planner_version; // it will be a member
  auto link = std::make_unique<tls_link>(address, std::move(c));
  const bool ok = connected(*link, timeout, why);
  revoked = !ok && link->revoked();
  return ok ? std::move(link) : nullptr;
}

} // namespace shoal::runtime
