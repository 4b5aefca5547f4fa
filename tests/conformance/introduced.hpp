// tests/conformance/introduced.hpp -- introduces fabrics to each
// other.
#pragma once

#include "tests/conformance/fixture.hpp"
#include "transport/introduced/fabric.hpp"

#include <fcntl.h>

namespace shoal::transport::conformance {

/// Stands for the control channel, over which two nodes tell each other their
/// addresses: when one connects, so does the other.
struct directory {
  std::mutex lock;
  std::map<std::string, fabric*> nodes;
};

class introduced_fabric final : public fabric {
public:
  introduced_fabric(directory& all, std::unique_ptr<fabric> inner)
    : all_(all), owned_(std::move(inner)), inner_(*owned_) {
    std::lock_guard guard(all_.lock);
    all_.nodes[inner_.local_address()] = &inner_;
  }
  ~introduced_fabric() override { introduced_fabric::close(); }

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
  std::unique_ptr<fabric> owned_;
  fabric& inner_;
};

} // namespace shoal::transport::conformance
