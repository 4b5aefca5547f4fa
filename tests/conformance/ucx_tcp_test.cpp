// tests/conformance/ucx_tcp_test.cpp -- the fabric suite over UCX-TCP on
// loopback.
#include "tests/conformance/ucx_pair.hpp"

BOOST_AUTO_TEST_SUITE(ucx_tcp_fabric)

struct factory : shoal::transport::conformance::ucx_factory {
  factory() : ucx_factory(shoal::transport::ucx::medium::tcp, {"lo"}) {}
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
