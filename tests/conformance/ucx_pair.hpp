// tests/conformance/ucx_pair.hpp -- UCX fabrics that are told of each other.
#pragma once

#include "tests/conformance/fixture.hpp"
#include "transport/ucx/address.hpp"
#include "transport/ucx/fabric.hpp"

#include <fcntl.h>

namespace shoal::transport::conformance {

/// Stands for the control channel, over which two nodes tell each other their
/// addresses: when one connects, so does the other.
struct directory {
  std::mutex lock;
  std::map<std::string, fabric*> nodes;
};

class paired final : public fabric {
public:
  paired(directory& all, ucx::config c, fabric_handler& handler)
    : all_(all), inner_(std::move(c), handler) {
    std::lock_guard guard(all_.lock);
    all_.nodes[inner_.local_address()] = &inner_;
  }
  ~paired() override { paired::close(); }

  void connect(const std::string& address) override {
    inner_.connect(address);
    std::lock_guard guard(all_.lock);
    auto other = all_.nodes.find(address);
    if (other != all_.nodes.end() && other->second != &inner_)
      other->second->connect(inner_.local_address());
  }
  void close() override {
    {
      std::lock_guard guard(all_.lock);
      all_.nodes.erase(inner_.local_address());
    }
    inner_.close();
  }

  std::string_view name() const noexcept override { return inner_.name(); }
  std::size_t message_bytes_max() const noexcept override {
    return inner_.message_bytes_max();
  }
  std::string local_address() const override { return inner_.local_address(); }
  std::error_code
  send(const peer_id& to, std::span<const std::byte> message) override {
    return inner_.send(to, message);
  }
  std::error_code
  post_receive(const peer_id& from, bulk_tag tag, std::span<std::byte> into,
               completion done) override {
    return inner_.post_receive(from, tag, into, done);
  }
  std::error_code
  send_bulk(const peer_id& to, bulk_tag tag, std::span<const std::byte> bytes,
            completion done) override {
    return inner_.send_bulk(to, tag, bytes, done);
  }
  void cancel(std::uint64_t plan) override { inner_.cancel(plan); }
  void drop(const peer_id& peer) override { inner_.drop(peer); }
  traffic traffic_with(const peer_id& peer) const override {
    return inner_.traffic_with(peer);
  }

private:
  directory& all_;
  ucx::fabric inner_;
};

/// Makes nodes over one medium; `device` says which UCX may open.
class ucx_factory {
public:
  ucx_factory(ucx::medium over, std::vector<std::string> devices)
    : over_(over), devices_(std::move(devices)) {}

  made make(fabric_handler& handler, limits queue) {
    ucx::config c;
    c.over = over_;
    if (!devices_.empty())
      c.devices = devices_[count_ % devices_.size()];
    c.self[0] = ++count_;
    c.instance = count_;
    c.queue = queue;
    return {std::make_unique<paired>(*all_, c, handler), c.self};
  }
  /// A node of another machine that has only shared memory.
  std::string unreachable() {
    ucx::node_address a;
    a.host.boot_id = "another";
    a.worker.resize(1);
    return format_address(a);
  }

private:
  ucx::medium over_;
  std::vector<std::string> devices_;
  std::unique_ptr<directory> all_ = std::make_unique<directory>();
  std::uint8_t count_ = 0;
};

} // namespace shoal::transport::conformance
