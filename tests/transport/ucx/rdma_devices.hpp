// tests/transport/ucx/rdma_devices.hpp -- the RDMA devices that tests may use.
//
// SHOAL_RDMA_DEVICES names them ("rxe0:1,rxe1:1"; peers take turns); they must
// reach each other. tools/rdma-vm provides some. Skipped, with a message, if
// the variable is not set.
#pragma once

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace shoal::transport::conformance {

inline std::vector<std::string> rdma_devices() {
  std::vector<std::string> out;
  const char* text = std::getenv("SHOAL_RDMA_DEVICES");
  std::istringstream in(text == nullptr ? "" : text);
  for (std::string device; std::getline(in, device, ',');)
    out.push_back(device);
  return out;
}

inline boost::test_tools::assertion_result
have_rdma(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!rdma_devices().empty());
  if (!result)
    result.message() << "SHOAL_RDMA_DEVICES is not set";
  return result;
}

} // namespace shoal::transport::conformance
