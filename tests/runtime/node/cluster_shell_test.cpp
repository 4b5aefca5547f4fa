// tests/runtime/node/cluster_shell_test.cpp -- in which order records are
// stored and actions carried out.
#include "runtime/node/cluster_shell.hpp"
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

namespace shoal::tests {
BOOST_AUTO_TEST_SUITE(cluster_shells)

namespace {

using list = std::vector<std::string>;

/// The node, its disk and its timer: writes down what a shell asks of them.
struct recorder final : runtime::membership_handler,
                        runtime::shell_host,
                        runtime::step_observer {
  void send(const std::vector<peer_id>&, const message&) override {
    done.push_back("send");
  }
  void connect(const std::string&) override { done.push_back("connect"); }
  void disconnect(const peer_id&) override { done.push_back("disconnect"); }
  void adopt(const new_view& v) override {
    done.push_back("adopt " + std::to_string(v.current.number));
  }
  void waiting(const waiting_for&) override { done.push_back("waiting"); }
  void left(bool clean) override {
    done.push_back(clean ? "left" : "left unheard");
  }
  void shut_out() override { done.push_back("shut out"); }
  void rejected(const cluster::rejected&) override {
    done.push_back("rejected");
  }
  void use_keys(const key_record&) override { done.push_back("keys"); }
  void stepped(phase p, std::vector<peer_id> reachable) override {
    last_phase = p;
    contacts = reachable.size();
  }
  void say(const std::string&) override {}

  bool store(const outbox::write& w) override {
    BOOST_TEST(!storing, "two records are being stored");
    const auto* r = std::get_if<record>(&w);
    const auto* v = r ? std::get_if<view_record>(r) : nullptr;
    done.push_back(!r  ? "forget"
                   : v ? "store " + std::to_string(v->current.number)
                       : "store");
    storing = slow;
    return !slow;
  }
  void wake_at(nanoseconds when) override { wake = when; }

  void decided(const event&, actions& out) override {
    decisions += out.size();
    if (killed)
      out.clear();
  }

  std::size_t count(const std::string& what) const {
    return std::size_t(std::ranges::count(done, what));
  }
  std::size_t place(const std::string& what) const {
    return std::size_t(std::ranges::find(done, what) - done.begin());
  }

  list done;
  bool slow = false;    ///< the disk takes its time
  bool storing = false; ///< it is at it
  bool killed = false;  ///< before the step has any effect
  std::size_t decisions = 0;
  std::size_t contacts = 0;
  nanoseconds wake = 0;
  phase last_phase = phase::created;
};

struct world {
  void begin() { shell.step(start{}, now); }
  void pass(nanoseconds time) {
    now += time;
    shell.step(tick{}, now);
  }
  /// The disk is done with what it has.
  void end_write(bool stored) {
    told.storing = false;
    shell.written(stored);
  }
  void submit(job_id id) {
    job_entry j;
    j.id = id;
    shell.step(submit_job{j}, now);
  }

  nanoseconds now = ms;
  recorder told;
  runtime::cluster_shell shell{node(1).c, {}, told, told, &told};
};

} // namespace

BOOST_AUTO_TEST_CASE(a_view_is_stored_before_the_node_hears_of_it) {
  world w;
  w.begin();
  BOOST_TEST(w.told.count("store 1") == 1u);
  BOOST_TEST(w.told.count("adopt 1") == 1u);
  BOOST_TEST(w.told.place("store 1") < w.told.place("adopt 1"));
}

BOOST_AUTO_TEST_CASE(the_node_hears_of_no_view_while_the_disk_is_at_it) {
  world w;
  w.told.slow = true;
  w.begin();
  BOOST_TEST(w.told.count("store 1") == 1u);
  BOOST_TEST(w.told.count("adopt 1") == 0u);
  w.shell.step(discovered{"c:1"}, w.now);
  BOOST_TEST(w.told.count("connect") == 1u); // dials and timers do not wait
  BOOST_TEST(w.told.wake > w.now);
  BOOST_TEST(w.told.count("adopt 1") == 0u);
  w.end_write(true);
  BOOST_TEST(w.told.count("adopt 1") == 1u);
}

BOOST_AUTO_TEST_CASE(records_are_stored_one_after_another) {
  world w;
  w.told.slow = true;
  w.begin();
  w.submit(9);
  w.pass(200 * ms);
  BOOST_REQUIRE(w.shell.core().current().number == 2u);
  BOOST_TEST(w.told.count("store 2") == 0u);
  w.end_write(true);
  BOOST_TEST(w.told.count("store 2") == 1u);
  BOOST_TEST(w.told.count("adopt 2") == 0u);
  w.end_write(true);
  BOOST_TEST(w.told.count("adopt 2") == 1u);
}

BOOST_AUTO_TEST_CASE(after_a_failed_write_nothing_is_stored_until_the_retry) {
  world w;
  w.told.slow = true;
  w.begin();
  w.end_write(false);
  w.submit(9);
  w.pass(200 * ms);
  BOOST_TEST(w.told.count("store 1") == 1u);
  BOOST_TEST(w.told.count("store 2") == 0u);
  BOOST_TEST(w.told.count("adopt 1") == 0u);
  w.shell.retry();
  // The newer view says more than the one that failed.
  BOOST_TEST(w.told.count("store 2") == 1u);
  w.end_write(true);
  BOOST_TEST(w.told.count("adopt 1") == 1u);
  BOOST_TEST(w.told.count("adopt 2") == 1u);
  BOOST_TEST(w.told.place("adopt 1") < w.told.place("adopt 2"));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_cut_short_has_no_effect) {
  world w;
  w.told.killed = true;
  w.begin();
  BOOST_TEST(w.told.decisions > 0u);
  BOOST_TEST(w.told.done == list{}, boost::test_tools::per_element());
  BOOST_TEST(w.told.wake == 0);
}

BOOST_AUTO_TEST_CASE(the_node_is_told_of_phase_and_contacts_after_a_step) {
  world w;
  w.begin();
  BOOST_TEST((w.told.last_phase == phase::member));
  BOOST_TEST(w.told.contacts == 1u);
}

BOOST_AUTO_TEST_CASE(a_dial_reaches_the_node) {
  world w;
  w.begin();
  w.shell.step(discovered{"c:1"}, w.now);
  w.pass(200 * ms);
  BOOST_TEST(w.told.count("connect") > 0u);
}

BOOST_AUTO_TEST_CASE(a_node_that_leaves_hears_once_that_it_has_left) {
  world w;
  w.begin();
  w.shell.step(leave{}, w.now);
  BOOST_TEST(w.told.count("left") == 0u);
  w.shell.step(leave_now{}, w.now);
  for (int i = 0; i < 100; ++i)
    w.pass(100 * ms);
  BOOST_TEST(w.told.count("left") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
