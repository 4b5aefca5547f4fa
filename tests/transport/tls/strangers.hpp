// tests/transport/tls/strangers.hpp -- clients that send what a test chooses.
//
// A plain socket, a TLS client with its own key, and the fabric that both
// attack.
#pragma once

#include "tests/conformance/fixture.hpp"
#include "transport/tls/context.hpp"
#include "transport/tls/fabric.hpp"
#include "transport/tls/frame.hpp"
#include "transport/tls/proof.hpp"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace shoal::transport::tls {

using namespace conformance;

/// A plain TCP connection to a fabric.
class raw_socket {
public:
  /// @param from an address of this machine; empty: any
  explicit raw_socket(const std::string& address, const std::string& from = "")
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (!from.empty()) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      BOOST_REQUIRE(inet_pton(AF_INET, from.c_str(), &own.sin_addr) == 1);
      BOOST_REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own)
                    == 0);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(
      std::stoi(address.substr(address.rfind(':') + 1))));
    BOOST_REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to)
                  == 0);
    const timeval limit{hang_after.count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~raw_socket() { ::close(fd_); }
  int fd() const { return fd_; }
  void write(std::span<const std::byte> bytes) const {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Reads until the other end closes. @returns false if it never does.
  bool closed() const {
    std::array<char, 4096> waste{};
    for (;;) {
      const auto got = ::recv(fd_, waste.data(), waste.size(), 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET))
        return true;
      if (got < 0)
        return false;
    }
  }

private:
  int fd_;
};

/// A TLS client with a key of its own, that says what the test wants.
class raw_client {
public:
  raw_client(const std::string& address, const private_key& identity)
    : socket_(address), context_(make_context(identity)),
      ssl_(SSL_new(context_.get())), key_(identity) {
    SSL_set_fd(ssl_.get(), socket_.fd());
    BOOST_REQUIRE(SSL_connect(ssl_.get()) == 1);
    BOOST_REQUIRE(
      SSL_export_keying_material(ssl_.get(), binding_.data(), binding_.size(),
                                 "EXPORTER-shoal-proof-1", 22, nullptr, 0, 0)
      == 1);
  }
  proof_frame proof(const shared_key& cluster, const claim& what,
                    side from = side::dialler) const {
    return make_proof(cluster, binding_, from, id_of_private(key_), what);
  }
  void write(std::span<const std::byte> bytes) {
    BOOST_REQUIRE(
      SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0);
  }
  /// Reads a proof. @returns false if the other end closes instead.
  bool answered() {
    proof_frame frame{};
    std::size_t fill = 0;
    while (fill < frame.size()) {
      const int got = SSL_read(ssl_.get(), frame.data() + fill,
                               static_cast<int>(frame.size() - fill));
      if (got <= 0)
        return false;
      fill += static_cast<std::size_t>(got);
    }
    return true;
  }
  bool closed() const { return socket_.closed(); }
  SSL* ssl() const { return ssl_.get(); }
  const raw_socket& raw() const { return socket_; }

private:
  raw_socket socket_;
  ssl_ctx_ptr context_;
  ssl_ptr ssl_;
  private_key key_;
  exporter binding_{};
};

struct host {
  explicit host(config extra = {}) : heard(notes), planner(extra.planner) {
    extra.identity = make_private_key();
    extra.cluster_key = key;
    extra.instance = 1;
    extra.log = [this](std::string_view line) {
      notes.post([&] { lines += std::string(line) + "\n"; });
    };
    node = std::make_unique<fabric>(extra, heard);
  }
  ~host() { node->close(); }
  std::string where() const { return node->local_address(); }
  bool logged(const char* text) {
    return notes.wait([&] { return lines.find(text) != std::string::npos; });
  }
  config guest(const shared_key& k) const {
    config c;
    c.identity = make_private_key();
    c.cluster_key = k;
    c.instance = make_instance();
    c.planner = planner;
    return c;
  }
  /// An honest peer still gets in.
  void still_serves() {
    recorder other(notes);
    fabric peer(guest(key), other);
    peer.connect(where());
    BOOST_REQUIRE(notes.wait([&] { return other.ups[node->id()] == 1; }));
    BOOST_REQUIRE(notes.wait([&] { return heard.ups[peer.id()] == 1; }));
    peer.close();
  }

  board notes;
  recorder heard;
  std::uint32_t planner;
  shared_key key = make_shared_key();
  std::string lines;
  std::unique_ptr<fabric> node;
};

} // namespace shoal::transport::tls
