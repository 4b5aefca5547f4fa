// tests/transport/ucx/rdma_process_test.cpp -- deaths of peers over verbs.
//
// Devices as ucx_rdma_test.cpp.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "tests/transport/ucx/rdma_devices.hpp"
#include "transport/introduced/address.hpp"
#include "transport/ucx/fabric.hpp"

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

const char* const child_variable = "SHOAL_RDMA_CHILD";

ucx::config config_of(std::uint8_t who) {
  ucx::config c;
  c.over = ucx::medium::rdma;
  c.devices = rdma_devices()[who % rdma_devices().size()];
  c.self[0] = who;
  c.instance = who;
  // Longer than ud keeps trying unless told otherwise.
  c.hello_timeout = std::chrono::seconds(40);
  return c;
}

} // namespace

#include "tests/transport/ucx/processes.hpp"

BOOST_AUTO_TEST_SUITE(ucx_rdma_processes,
                      *boost::unit_test::precondition(have_rdma))

#include "tests/transport/ucx/process_cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
