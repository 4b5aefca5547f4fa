// tests/conformance/ucx_rdma_test.cpp -- the fabric suite over UCX on verbs.
//
// Needs RDMA devices that reach each other, in SHOAL_RDMA_DEVICES
// ("rxe0:1,rxe1:1"; peers take turns); tools/rdma-vm has them. Skipped, and
// said so, where the variable is not set.
#include "tests/conformance/ucx_pair.hpp"

#include <sstream>

namespace {

std::vector<std::string> devices() {
  std::vector<std::string> out;
  const char* text = std::getenv("SHOAL_RDMA_DEVICES");
  std::istringstream in(text == nullptr ? "" : text);
  for (std::string device; std::getline(in, device, ',');)
    out.push_back(device);
  return out;
}

boost::test_tools::assertion_result have_rdma(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!devices().empty());
  if (!result)
    result.message() << "SHOAL_RDMA_DEVICES is not set";
  return result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(ucx_rdma_fabric,
                      *boost::unit_test::precondition(have_rdma))

struct factory : shoal::transport::conformance::ucx_factory {
  factory() : ucx_factory(shoal::transport::ucx::medium::rdma, devices()) {}
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
