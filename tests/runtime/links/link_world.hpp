// tests/runtime/links/link_world.hpp -- nodes with two fabrics each, in one
// process: "tls" carries credits and bulk, "ucx" bulk only.
//
// Simulated (two loopback networks in lockstep) or threaded.
#pragma once

#include "runtime/links/link_service.hpp"
#include "transport/loopback/fabric.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace shoal::test {

using runtime::fabric_kind;
using runtime::link_credit;
using transport::bulk_tag;
using transport::peer_id;
namespace loopback = transport::loopback;

inline peer_id id_of(std::size_t i) {
  peer_id id{};
  id[0] = static_cast<std::uint8_t>(i + 1);
  return id;
}

class host : private runtime::credit_sender {
public:
  host(std::size_t number, loopback::network tls, loopback::network ucx,
       transport::limits limits = {})
    : on_tls_(*this, fabric_kind::tls), on_ucx_(*this, fabric_kind::shm) {
    runtime::link_service::config c;
    c.self = id_of(number);
    links_ = runtime::make_link_service(std::move(c), *this);
    loopback::config who;
    who.name = std::to_string(number);
    who.id = id_of(number);
    who.queue = limits;
    tls_ = std::make_unique<loopback::fabric>(tls, who, on_tls_);
    ucx_ = std::make_unique<loopback::fabric>(ucx, who, on_ucx_);
    links_->add_fabric(fabric_kind::tls, *tls_);
    links_->add_fabric(fabric_kind::shm, *ucx_);
  }

  ~host() override {
    links_->close();
    tls_->close();
    ucx_->close();
  }

  runtime::link_service& links() { return *links_; }
  loopback::fabric& fabric(fabric_kind kind) {
    return kind == fabric_kind::tls ? *tls_ : *ucx_;
  }

private:
  std::error_code
  send_credit(const peer_id& to, const link_credit& credit) override {
    return tls_->send(to, std::as_bytes(std::span(&credit, 1)));
  }

  struct handler final : transport::fabric_handler {
    handler(host& h, fabric_kind k) : home(h), kind(k) {}
    void up(const transport::peer_info& peer) override {
      home.links_->peer_up(kind, peer.id);
    }
    void down(const peer_id& peer, std::error_code) override {
      home.links_->peer_down(kind, peer);
    }
    void
    message(const peer_id& peer, std::span<const std::byte> bytes) override {
      link_credit credit;
      std::memcpy(&credit, bytes.data(), sizeof credit);
      home.links_->credit_received(peer, credit);
    }
    void connect_failed(const std::string&, std::error_code) override {}
    host& home;
    fabric_kind kind;
  };

  handler on_tls_;
  handler on_ucx_;
  std::unique_ptr<runtime::link_service> links_;
  std::unique_ptr<loopback::fabric> tls_;
  std::unique_ptr<loopback::fabric> ucx_;
};

} // namespace shoal::test
