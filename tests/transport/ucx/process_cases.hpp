// tests/transport/ucx/process_cases.hpp -- deaths of peers, as UCX sees them.
//
// Not a header of its own: a suite includes it, after ucx_processes.hpp.

BOOST_AUTO_TEST_CASE(an_idle_peer_that_is_killed_is_down_and_may_return) {
  for (const bool far : {false, true}) {
    survivor s;
    child c("idle");
    s.meet(c, far);
    s.receive_all();
    c.kill();
    s.wait_end();
    s.notes.post([&] { s.heard.downs.clear(); });
    child again("idle");
    s.meet(again, far);
    BOOST_TEST(s.heard.order == "udu");
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_in_the_middle_ends_every_send) {
  for (const bool far : {false, true})
    for (const std::size_t finished : {0u, 2u}) {
      survivor s;
      child c("receive");
      s.meet(c, far);
      s.send_all();
      s.wait_for(finished);
      c.kill();
      s.wait_end();
    }
}

BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_middle_ends_every_receive) {
  for (const bool far : {false, true})
    for (const std::size_t finished : {0u, 2u}) {
      survivor s;
      child c("send");
      s.meet(c, far);
      s.receive_all();
      write_text(c.socket(), "posted");
      s.wait_for(finished);
      c.kill();
      s.wait_end();
    }
}

// Nobody answers; UCX notices it while the endpoint has not connected.
BOOST_AUTO_TEST_CASE(the_address_of_a_dead_process_fails_and_can_be_closed) {
  for (const bool wait : {false, true}) {
    survivor s;
    child c("idle");
    auto address = introduced::parse_address(read_text(c.socket()));
    BOOST_REQUIRE(address.has_value());
    address->host.boot_id = "another";
    c.kill();
    s.node.connect(introduced::format_address(*address));
    if (wait)
      BOOST_REQUIRE(s.notes.wait([&] { return !s.heard.failed.empty(); }));
    child next("idle");
    s.meet(next, true);
    BOOST_TEST(s.heard.ups.size() == 1u);
  }
}

// A stopped process does not answer, and may continue later.
BOOST_AUTO_TEST_CASE(a_peer_that_hangs_is_dropped_at_once) {
  for (const char* what : {"receive", "send"}) {
    survivor s;
    child c(what);
    s.meet(c, false);
    if (*what == 's')
      s.receive_all();
    c.stop();
    if (*what == 'r')
      s.send_all();
    s.node.drop(s.peer);
    s.wait_end();
    c.go_on();
  }
}
