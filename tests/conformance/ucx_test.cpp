// tests/conformance/ucx_test.cpp -- the fabric suite over UCX shared memory.
#include "tests/conformance/ucx_pair.hpp"

BOOST_AUTO_TEST_SUITE(ucx_fabric)

struct factory : shoal::transport::conformance::ucx_factory {
  factory() : ucx_factory(shoal::transport::ucx::medium::ucx_memory, {}) {}
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
