// tests/conformance/tls_test.cpp -- the fabric suite over TLS.
#include "tests/conformance/fixture.hpp"
#include "transport/tls/fabric.hpp"

#include <fcntl.h>

BOOST_AUTO_TEST_SUITE(tls_fabric)

namespace transport = shoal::transport;

struct factory {
  transport::conformance::made
  make(transport::fabric_handler& handler, transport::limits queue) {
    transport::tls::config c;
    c.identity = transport::tls::make_private_key();
    c.cluster_key = key;
    c.instance = transport::tls::make_instance();
    c.queue = queue;
    auto f = std::make_unique<transport::tls::fabric>(c, handler);
    const auto id = f->id();
    return {std::move(f), id};
  }
  std::string unreachable() { return "127.0.0.1:1"; }

  transport::tls::shared_key key = transport::tls::make_shared_key();
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
