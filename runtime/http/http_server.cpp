// runtime/http/http_server.cpp -- listens, accepts, and keeps the connections.
#include "runtime/http/http_server.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/http/connection.hpp"
#include "runtime/http/keys/key_account.hpp"
#include "runtime/http/listen_address.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace shoal::runtime {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

/// How long accept() pauses when the process has no descriptors left.
constexpr std::chrono::milliseconds accept_pause{100};
/// A line of one kind is logged once in this time.
constexpr std::chrono::seconds log_pause{60};

class system_clock final : public http_clock {
public:
  time_point now() override { return std::chrono::steady_clock::now(); }
};

http_config checked(http_config config) {
  if (!config.clock)
    config.clock = std::make_shared<system_clock>();
  if (!config.accounts)
    config.accounts = std::make_shared<key_accounts>(
      [clock = config.clock] { return clock->now(); });
  const http_limits& l = config.limits;
  SHOAL_ASSERT(l.connections_max > 0 && l.head_bytes_max >= 64
               && l.head_bytes_max <= 1 << 20
               && l.bodies_bytes_max >= l.body_bytes_max && l.read_ahead_max > 0
               && l.requests_max > 0 && l.pause_bytes > 0
               && l.drop_bytes >= l.pause_bytes);
  return config;
}

tcp::endpoint to_endpoint(const listen_address& address) {
  if (is_v4(address.ip.address)) {
    asio::ip::address_v4::bytes_type four;
    std::memcpy(four.data(), address.ip.address.data() + 12, four.size());
    return {asio::ip::address_v4(four), address.port};
  }
  asio::ip::address_v6::bytes_type sixteen;
  std::ranges::copy(address.ip.address, sixteen.begin());
  return {asio::ip::address_v6(sixteen, address.ip.interface), address.port};
}

std::string text_of(const tcp::endpoint& e) {
  if (e.address().is_v4()) {
    const auto four = e.address().to_v4().to_bytes();
    return to_text({from_v4(four.data()), 0}, e.port());
  }
  scoped_address a;
  std::ranges::copy(e.address().to_v6().to_bytes(), a.address.begin());
  return to_text(a, e.port());
}

} // namespace

class http_server::impl final : public connection_host {
public:
  impl(http_config config, std::shared_ptr<http_handler> handler,
       const listen_address& where);
  ~impl();

  void use_keys(std::shared_ptr<const api_keys> keys);
  http_counts counts() const;
  void drain();
  void stop(std::chrono::milliseconds grace);
  void clock_changed();

  std::string endpoint;
  std::uint16_t port = 0;

private:
  enum class line { full, accept, dropped };

  void listen(tcp::endpoint where, bool next_free);
  void accept();
  void on_accept(tcp::socket socket);
  void drain_now();
  void cut_all();
  void check_drained();
  void run_due();
  void say(line kind, const std::string& text);

  void due_changed() override;
  void closed(connection& c) override;
  void client_dropped(connection& c) override;

  const std::function<void(const std::string&)> log_;
  const bool has_keys_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{
    io_.get_executor()};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_again_{io_};
  asio::steady_timer timer_{io_};
  std::optional<http_clock::time_point> armed_; ///< what timer_ waits for
  std::map<connection*, std::shared_ptr<connection>> connections_;
  std::size_t full_ = 0; ///< of them, those that get 503

  struct said {
    std::optional<http_clock::time_point> at;
    std::size_t left_out = 0;
  };
  std::array<said, 3> said_;

  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::size_t> open_connections_{0};
  std::mutex mutex_;
  std::condition_variable drained_changed_;
  bool drained_ = false;
  std::thread thread_;
};

http_server::impl::impl(http_config config,
                        std::shared_ptr<http_handler> handler,
                        const listen_address& where)
  : connection_host(config, std::move(handler), is_loopback(where.ip.address)),
    log_(config.log), has_keys_(config.keys != nullptr) {
  listen(to_endpoint(where), config.next_free_port);
  accept();
  try {
    thread_ = std::thread([this] { io_.run(); });
  } catch (const std::system_error& e) {
    throw setup_error(
      std::string("cannot start the thread of the HTTP server: ") + e.what());
  }
}

http_server::impl::~impl() {
  stop(std::chrono::milliseconds(0));
}

void http_server::impl::listen(tcp::endpoint where, bool next_free) {
  const std::string wanted = text_of(where);
  const std::size_t tries =
    next_free ? std::max<std::size_t>(limits.port_tries, 1) : 1;
  error_code error;
  for (std::size_t i = 0; i < tries; ++i) {
    acceptor_.close(error);
    acceptor_.open(where.protocol(), error);
    if (!error)
      acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error)
      acceptor_.bind(where, error);
    if (!error)
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error != asio::error::address_in_use
        || where.port() == std::numeric_limits<std::uint16_t>::max())
      break;
    if (i + 1 < tries)
      where.port(static_cast<std::uint16_t>(where.port() + 1));
  }
  if (error == asio::error::address_in_use)
    throw setup_error(
      "cannot listen for HTTP on " + wanted + ": the port is in use"
      + (tries > 1 ? ", and so are those up to " + std::to_string(where.port())
                   : "")
      + "; choose another one");
  if (error)
    throw setup_error("cannot listen for HTTP on " + wanted + ": "
                      + error.message());
  endpoint = text_of(acceptor_.local_endpoint());
  port = acceptor_.local_endpoint().port();
}

void http_server::impl::accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open())
      return;
    if (!error) {
      on_accept(std::move(socket));
      return accept();
    }
    say(line::accept, "cannot accept a connection: " + error.message());
    accept_again_.expires_after(accept_pause);
    accept_again_.async_wait([this](const error_code& canceled) {
      if (!canceled && acceptor_.is_open())
        accept();
    });
  });
}

void http_server::impl::on_accept(tcp::socket socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error)
    return; // it is gone already
  socket.non_blocking(true, error);
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(
    asio::socket_base::send_buffer_size(limits.send_buffer_bytes), error);
  ++accepted_;
  const bool full = connections_.size() - full_ >= limits.connections_max;
  if (full)
    say(line::full,
        "refusing connections: " + std::to_string(limits.connections_max)
          + " are open, the most that are allowed");
  if (full && full_ >= limits.refused_max)
    return;
  auto c =
    std::make_shared<connection>(*this, std::move(socket), text_of(remote));
  connections_.emplace(c.get(), c);
  ++open_connections_;
  if (!full)
    return c->start();
  ++full_;
  c->start_full();
}

void http_server::impl::closed(connection& c) {
  if (c.is_full())
    --full_;
  connections_.erase(&c);
  --open_connections_;
  check_drained();
}

void http_server::impl::client_dropped(connection& c) {
  say(line::dropped,
      "dropped the client " + c.client() + ": it does not take its answer");
}

void http_server::impl::say(line kind, const std::string& text) {
  said& last = said_[static_cast<std::size_t>(kind)];
  const auto now = clock->now();
  if (last.at && now - *last.at < log_pause) {
    ++last.left_out;
    return;
  }
  last.at = now;
  const std::size_t left_out = std::exchange(last.left_out, 0);
  if (log_)
    log_("[http] " + text
         + (left_out > 0
              ? " (and " + std::to_string(left_out) + " times before)"
              : ""));
}

// ---- time ----

void http_server::impl::due_changed() {
  const auto next = due.next();
  if (!next || (armed_ && *armed_ <= *next))
    return;
  armed_ = next;
  timer_.expires_after(
    std::max(*next - clock->now(), http_clock::time_point::duration(0)));
  timer_.async_wait([this](const error_code& canceled) {
    if (!canceled)
      run_due();
  });
}

void http_server::impl::run_due() {
  armed_ = std::nullopt;
  const auto now = clock->now();
  while (connection* const c = due.take_due(now)) {
    const auto kept = c->shared_from_this();
    c->on_due();
  }
  due_changed();
}

void http_server::impl::clock_changed() {
  asio::post(io_, [this] { run_due(); });
}

// ---- the end ----

void http_server::impl::drain_now() {
  if (std::exchange(draining, true))
    return;
  error_code ignored;
  acceptor_.close(ignored);
  const auto all = connections_; // some end now
  for (const auto& [key, c] : all)
    c->drain();
  check_drained();
}

void http_server::impl::cut_all() {
  const auto all = connections_;
  for (const auto& [key, c] : all)
    c->close();
}

void http_server::impl::check_drained() {
  if (!draining || !connections_.empty())
    return;
  const std::lock_guard guard(mutex_);
  drained_ = true;
  drained_changed_.notify_all();
}

void http_server::impl::drain() {
  asio::post(io_, [this] { drain_now(); });
}

void http_server::impl::stop(std::chrono::milliseconds grace) {
  if (!thread_.joinable())
    return;
  SHOAL_ASSERT(std::this_thread::get_id() != thread_.get_id());
  drain();
  {
    std::unique_lock lock(mutex_);
    drained_changed_.wait_for(lock, grace, [this] { return drained_; });
  }
  asio::post(io_, [this] {
    cut_all();
    timer_.cancel();
    accept_again_.cancel();
    work_.reset();
  });
  thread_.join();
}

// ---- what others ask ----

void http_server::impl::use_keys(std::shared_ptr<const api_keys> keys) {
  SHOAL_ASSERT(has_keys_ && keys);
  asio::post(io_, [this, keys = std::move(keys)]() mutable {
    gate.use_keys(std::move(keys));
  });
}

http_counts http_server::impl::counts() const {
  return {.connections = accepted_,
          .requests = requests,
          .refused = refused,
          .dropped = dropped,
          .gone = gone,
          .open = open_connections_,
          .waiting = open->waiting,
          .streams = open->streams};
}

http_server::http_server(http_config config,
                         std::shared_ptr<http_handler> handler) {
  SHOAL_ASSERT(handler);
  const listen_address where = parse_listen(config.listen);
  check_exposure(where, config.listen, config.keys != nullptr);
  impl_ = std::make_unique<impl>(checked(std::move(config)), std::move(handler),
                                 where);
}

http_server::~http_server() = default;

const std::string& http_server::endpoint() const noexcept {
  return impl_->endpoint;
}

std::uint16_t http_server::port() const noexcept {
  return impl_->port;
}

void http_server::use_keys(std::shared_ptr<const api_keys> keys) {
  impl_->use_keys(std::move(keys));
}

http_counts http_server::counts() const {
  return impl_->counts();
}

void http_server::drain() {
  impl_->drain();
}

void http_server::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}

void http_server::clock_changed() {
  impl_->clock_changed();
}

} // namespace shoal::runtime
