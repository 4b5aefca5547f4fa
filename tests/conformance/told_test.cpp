// tests/conformance/told_test.cpp -- whom shared memory and UCX believe.
#include "tests/conformance/fixture.hpp"
#include "transport/paired/address.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/ucx/fabric.hpp"

BOOST_AUTO_TEST_SUITE(shm_told)

using node = shoal::transport::shm::fabric;
using node_config = shoal::transport::paired::config;
constexpr std::size_t host_fields = 3; // all but the network namespace
#include "tests/conformance/told_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_told)

using node = shoal::transport::ucx::fabric;
using node_config = shoal::transport::ucx::config;
constexpr std::size_t host_fields = 4;
#include "tests/conformance/told_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
