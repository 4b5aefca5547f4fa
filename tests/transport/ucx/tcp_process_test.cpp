// tests/transport/ucx/tcp_process_test.cpp -- deaths of peers over UCX-TCP.
#include "tests/conformance/fixture.hpp"
#include "tests/conformance/process.hpp"
#include "transport/introduced/address.hpp"
#include "transport/ucx/fabric.hpp"

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

const char* const child_variable = "SHOAL_UCX_TCP_CHILD";

ucx::config config_of(std::uint8_t who) {
  ucx::config c;
  c.over = ucx::medium::tcp;
  c.devices = "lo";
  c.trusted = {*ucx::parse_network("127.0.0.0/8")};
  c.self[0] = who;
  c.instance = who;
  c.hello_timeout = std::chrono::seconds(5);
  return c;
}

} // namespace

#include "tests/transport/ucx/processes.hpp"

namespace {

template <std::uint8_t Number>
struct survivor_is {
  survivor_is() { survivor_number = Number; }
};
/// Whatever point of connecting the other has come to, the survivor lives.
void survive_who_dies_connecting() {
  for (int i = 0; i < (long_run() ? 400 : 40); ++i) {
    survivor s;
    child c(i % 2 == 0 ? "idle" : "die");
    const auto address = read_text(c.socket());
    s.node.connect(address);
    write_text(c.socket(), s.node.local_address());
    if (i % 2 == 0)
      c.kill();
    BOOST_REQUIRE(s.notes.wait(
      [&] { return !s.heard.failed.empty() || s.heard.downs[s.peer] > 0; }));
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(ucx_tcp_survivor_dials,
                      *boost::unit_test::fixture<survivor_is<1>>())
#include "tests/transport/ucx/process_cases.hpp"
BOOST_AUTO_TEST_CASE(a_peer_that_dies_while_it_connects_is_survived) {
  survive_who_dies_connecting();
}
BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ucx_tcp_survivor_is_dialled,
                      *boost::unit_test::fixture<survivor_is<3>>())
#include "tests/transport/ucx/process_cases.hpp"
BOOST_AUTO_TEST_CASE(a_peer_that_dies_while_it_connects_is_survived) {
  survive_who_dies_connecting();
}
BOOST_AUTO_TEST_SUITE_END()
