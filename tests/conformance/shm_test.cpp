// tests/conformance/shm_test.cpp -- the fabric suite over shared memory.
#include "tests/conformance/introduced.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/fabric.hpp"

BOOST_AUTO_TEST_SUITE(shm_fabric)

class factory {
public:
  shoal::transport::conformance::made
  make(shoal::transport::fabric_handler& handler,
       shoal::transport::limits queue) {
    shoal::transport::shm::config c;
    c.self[0] = ++count_;
    c.instance = count_;
    c.queue = queue;
    return {
      std::make_unique<shoal::transport::conformance::introduced_fabric>(
        *all_, std::make_unique<shoal::transport::shm::fabric>(c, handler)),
      c.self};
  }
  /// A node of another machine.
  std::string unreachable() {
    shoal::transport::introduced::node_address a;
    a.host.boot_id = "another";
    a.way.resize(8);
    return format_address(a);
  }

private:
  std::unique_ptr<shoal::transport::conformance::directory> all_ =
    std::make_unique<shoal::transport::conformance::directory>();
  std::uint8_t count_ = 0;
};

#include "tests/conformance/cases.hpp"

BOOST_AUTO_TEST_SUITE_END()
