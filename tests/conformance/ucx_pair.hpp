// tests/conformance/ucx_pair.hpp -- UCX fabrics that are introduced to
// each other.
#pragma once

#include "tests/conformance/introduced.hpp"
#include "transport/ucx/fabric.hpp"

namespace shoal::transport::conformance {

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
    if (over_ == ucx::medium::tcp)
      c.trusted = {*ucx::parse_network("127.0.0.0/8")};
    c.self[0] = ++count_;
    c.instance = count_;
    c.queue = queue;
    c.hello_timeout = hang_after; // sixteen nodes take a while, emulated
    return {std::make_unique<introduced_fabric>(
              *all_, std::make_unique<ucx::fabric>(c, handler)),
            c.self};
  }
  /// A node of another machine that has only shared memory.
  std::string unreachable() {
    ucx::node_address a;
    a.host.boot_id = "another";
    a.way.resize(1);
    return format_address(a);
  }

private:
  ucx::medium over_;
  std::vector<std::string> devices_;
  std::unique_ptr<directory> all_ = std::make_unique<directory>();
  std::uint8_t count_ = 0;
};

} // namespace shoal::transport::conformance
