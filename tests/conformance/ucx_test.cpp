// tests/conformance/ucx_test.cpp -- the fabric suite over UCX shared memory.
#include "tests/conformance/fixture.hpp"
#include "transport/ucx/address.hpp"
#include "transport/ucx/fabric.hpp"

#include <fcntl.h>

BOOST_AUTO_TEST_SUITE(ucx_fabric)

namespace transport = shoal::transport;

/// Stands for the control channel, over which two nodes tell each other their
/// addresses: when one connects, so does the other.
struct directory {
  std::mutex lock;
  std::map<std::string, transport::fabric*> nodes;
};

class paired final : public transport::fabric {
public:
  paired(directory& all, transport::ucx::config c,
         transport::fabric_handler& handler)
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
  std::error_code send(const transport::peer_id& to,
                       std::span<const std::byte> message) override {
    return inner_.send(to, message);
  }
  std::error_code
  post_receive(const transport::peer_id& from, transport::bulk_tag tag,
               std::span<std::byte> into, transport::completion done) override {
    return inner_.post_receive(from, tag, into, done);
  }
  std::error_code
  send_bulk(const transport::peer_id& to, transport::bulk_tag tag,
            std::span<const std::byte> bytes,
            transport::completion done) override {
    return inner_.send_bulk(to, tag, bytes, done);
  }
  void cancel(std::uint64_t plan) override { inner_.cancel(plan); }
  void drop(const transport::peer_id& peer) override { inner_.drop(peer); }
  transport::traffic
  traffic_with(const transport::peer_id& peer) const override {
    return inner_.traffic_with(peer);
  }

private:
  directory& all_;
  transport::ucx::fabric inner_;
};

struct factory {
  transport::conformance::made
  make(transport::fabric_handler& handler, transport::limits queue) {
    transport::ucx::config c;
    c.self[0] = ++count;
    c.instance = count;
    c.queue = queue;
    return {std::make_unique<paired>(*all, c, handler), c.self};
  }
  /// A node of another machine.
  std::string unreachable() {
    transport::ucx::node_address a;
    a.host.boot_id = "another";
    a.worker.resize(1);
    return format_address(a);
  }

  std::unique_ptr<directory> all = std::make_unique<directory>();
  std::uint8_t count = 0;
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
