// tests/conformance/introduced_test.cpp -- which peers shared memory and UCX
// accept.
#include "tests/conformance/fixture.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/ucx/fabric.hpp"

BOOST_AUTO_TEST_SUITE(shm_introduced)

using node = shoal::transport::shm::fabric;
using node_config = shoal::transport::introduced::config;
constexpr std::size_t host_fields = 3; // all but the network namespace
#include "tests/conformance/introduced_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_introduced)

using node = shoal::transport::ucx::fabric;
using node_config = shoal::transport::ucx::config;
constexpr std::size_t host_fields = 4;
#include "tests/conformance/introduced_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
