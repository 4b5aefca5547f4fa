// tests/conformance/loopback_test.cpp -- the fabric suite over loopback.
#include "tests/conformance/fixture.hpp"
#include "transport/loopback/fabric.hpp"

#include <fcntl.h>

BOOST_AUTO_TEST_SUITE(loopback_fabric)

namespace transport = shoal::transport;

struct factory {
  transport::conformance::made
  make(transport::fabric_handler& handler, transport::limits queue) {
    transport::loopback::config c;
    c.id[0] = ++count;
    c.name = "node " + std::to_string(count);
    c.queue = queue;
    return {std::make_unique<transport::loopback::fabric>(net, c, handler),
            c.id};
  }
  std::string unreachable() { return "nobody"; }

  transport::loopback::network net;
  std::uint8_t count = 0;
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
