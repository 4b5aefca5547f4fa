// transport/tls/accept.cpp -- accepts connections, and runs handshakes by turns.
//
// A new connection costs a descriptor until it sends bytes. Then it waits for
// its turn, and again whenever it has sent more; only its first turn gives it
// memory of OpenSSL.
#include "transport/tls/engine.hpp"

#include <algorithm>

namespace shoal::transport::tls {
namespace {

/// How long accept() pauses when the process has no descriptors left.
constexpr std::chrono::milliseconds accept_pause{100};
/// The part of an IPv6 address that one host cannot choose.
constexpr std::size_t network_bytes = 8;

/// The address as admission counts it.
std::string origin_of(const tcp::endpoint& e) {
  auto address = e.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  if (address.is_v4())
    return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + network_bytes, bytes.end(), 0);
  return asio::ip::address_v6(bytes).to_string();
}

admission::time now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

} // namespace

void engine::accept() {
  if (!acceptor_.is_open())
    return;
  acceptor_.async_accept([this](auto error, tcp::socket socket) {
    if (!acceptor_.is_open())
      return;
    if (error) {
      again_.expires_after(accept_pause);
      return again_.async_wait([this](auto canceled) {
        if (!canceled)
          accept();
      });
    }
    boost::system::error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (!gone)
      admit(std::move(socket), remote);
    accept();
  });
}

void engine::admit(tcp::socket socket, const tcp::endpoint& remote) {
  if (open_ + unopened_.size() >= settings.connections_max)
    return log_failure(to_string(remote), false, errc::refused,
                       "the limit of "
                         + std::to_string(settings.connections_max)
                         + " connections is reached");
  auto c = std::make_shared<connection>(*this, std::move(socket),
                                        side::acceptor, to_string(remote));
  c->ticket = ++last_ticket_;
  if (const auto gone = door_.arrive(c->ticket, origin_of(remote)))
    if (const auto at = unproved_.find(*gone); at != unproved_.end()) {
      const auto oldest = at->second;
      oldest->fail(errc::unreachable, "pushed out by newer connections");
    }
  unopened_.insert(c);
  unproved_[c->ticket] = c;
  c->start_deadline();
  c->listen();
}

void engine::spoke(const std::shared_ptr<connection>& c) {
  if (!unproved_.contains(c->ticket))
    return;
  door_.advance(c->ticket, admission::progress::speaking);
  door_.ask(c->ticket);
  give_turns();
}

void engine::secured(const connection& c) {
  door_.advance(c.ticket, admission::progress::secured);
}

/// Gives one turn, so that peers are heard between two turns.
void engine::give_turns() {
  if (const auto turn = door_.next(now()))
    if (const auto at = unproved_.find(*turn); at != unproved_.end()) {
      const auto c = at->second;
      c->work();
    }
  if (const auto due = door_.due()) {
    turn_.expires_at(std::chrono::steady_clock::time_point(*due));
    turn_.async_wait([this](auto canceled) {
      if (!canceled)
        give_turns();
    });
  }
}

} // namespace shoal::transport::tls
