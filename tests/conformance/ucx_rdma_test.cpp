// tests/conformance/ucx_rdma_test.cpp -- the fabric suite over UCX on verbs.
#include "tests/conformance/ucx_pair.hpp"
#include "tests/transport/ucx/rdma_devices.hpp"

using shoal::transport::conformance::have_rdma;
using shoal::transport::conformance::rdma_devices;
using shoal::transport::ucx::medium;

BOOST_AUTO_TEST_SUITE(ucx_rdma_fabric,
                      *boost::unit_test::precondition(have_rdma))

struct factory : shoal::transport::conformance::ucx_factory {
  factory() : ucx_factory(medium::rdma, rdma_devices()) {}
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_rdma_introduced,
                      *boost::unit_test::precondition(have_rdma))

using node = shoal::transport::ucx::fabric;
struct node_config : shoal::transport::ucx::config {
  node_config() {
    static std::size_t count = 0;
    over = medium::rdma;
    devices = rdma_devices()[count++ % rdma_devices().size()];
  }
};
constexpr std::size_t host_fields = 0; // any machine that the devices reach
#include "tests/conformance/introduced_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
