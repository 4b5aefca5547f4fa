// tests/runtime/control/client_choice_test.cpp -- the node that a client
// chooses, and its message if there is none.
//
// No real node: a socket that takes connections and never answers stands for a
// stopped one.
#include "runtime/control/client.hpp"
#include "runtime/control/client_keys.hpp"
#include "runtime/control/client_text.hpp"
#include "runtime/control/node_folders.hpp"
#include "runtime/control/unix_socket.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/node/node_config.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <optional>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(client_choice)

namespace fs = std::filesystem;

namespace {

/// A home with nodes `anna` and `bert`, who say nothing, and the socket that
/// killed `cleo` has left.
struct home {
  home() {
    if (const char* old = std::getenv("XDG_DATA_HOME"))
      before = old;
    ::setenv("XDG_DATA_HOME", folder.path().c_str(), 1);
    for (const char* name : {"anna", "bert", "cleo"})
      make_private_dir(default_data_dir(name));
    anna = listen_unix(control_socket(default_data_dir("anna")));
    bert = listen_unix(control_socket(default_data_dir("bert")));
    (void)listen_unix(control_socket(default_data_dir("cleo")));
  }
  ~home() {
    if (before)
      ::setenv("XDG_DATA_HOME", before->c_str(), 1);
    else
      ::unsetenv("XDG_DATA_HOME");
  }

  std::optional<std::string> before;
  const test::scratch folder{"shoal-client-test"};
  unique_fd anna, bert;
};

client_config asking(const std::string& name) {
  client_config c;
  c.data_dir = default_data_dir(name);
  c.named = !name.empty();
  c.timeout = std::chrono::milliseconds(1); // nobody will ever answer
  return c;
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(nodes_that_run_are_told_from_what_killed_ones_left,
                        home) {
  const auto nodes = running_nodes(default_data_dir("bert"));
  BOOST_TEST_REQUIRE(nodes.size() == 2u);
  BOOST_TEST(nodes[0].filename() == "bert");
  BOOST_TEST(nodes[1].filename() == "anna");
}

BOOST_FIXTURE_TEST_CASE(a_named_node_has_no_substitute, home) {
  for (const char* name : {"typo", "cleo"}) {
    client c(asking(name));
    BOOST_TEST((c.connect() == errc::no_node));
    BOOST_TEST(says(c.text(), name), c.text());
    BOOST_TEST(says(c.text(), "anna, bert"), c.text());
  }
  client any(asking(""));
  BOOST_TEST(!any.connect());
  BOOST_TEST(says(any.where(), "anna"), any.where());
}

BOOST_FIXTURE_TEST_CASE(a_stopped_node_is_reported_as_stopped, home) {
  client c(asking("anna"));
  std::string status;
  BOOST_TEST(!c.connect()); // it may go on with another, if it follows a job
  BOOST_TEST(bool(c.status(status)));
  BOOST_TEST(says(c.text(), "anna"), c.text());
  BOOST_TEST(says(c.text(), "kill -CONT"), c.text());
}

BOOST_FIXTURE_TEST_CASE(a_peer_is_called_gone_only_after_waiting_for_it, home) {
  std::string said;
  client_config config = asking("anna");
  config.say = [&said](const std::string& line) { said += line; };
  client c(config);
  BOOST_TEST(!c.connect());
  struct : follow_handler {
    bool on(const job_event&) override { return true; }
  } watcher;
  // For less time than a node may take that has just been started.
  const auto error = c.follow(1, watcher, {}, std::chrono::milliseconds(500));
  BOOST_TEST((error == errc::no_node));
  BOOST_TEST(said == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_has_run_needs_the_options_that_it_had) {
  const test::scratch folder{"shoal-client-test"};
  client_config c = asking("apart");
  c.data_dir = folder.path();
  client first(c);
  BOOST_TEST((first.connect() == errc::no_node));
  BOOST_TEST(says(first.text(), "start one with `shoal node --data-dir"),
             first.text());
  (void)load_private_key(identity_file(c.data_dir));
  client again(c);
  BOOST_TEST((again.connect() == errc::no_node));
  BOOST_TEST(says(again.text(), "start it again with `shoal node --data-dir"),
             again.text());
  BOOST_TEST(says(again.text(), "` and the other options that it had"),
             again.text());
}

// `shoal node` would have made another node, of this machine alone.
BOOST_AUTO_TEST_CASE(a_node_that_ran_by_another_name_is_named) {
  home here;
  here.anna = unique_fd();
  here.bert = unique_fd();
  const auto said = [] {
    client c(asking(""));
    BOOST_TEST((c.connect() == errc::no_node));
    return c.text();
  };
  BOOST_TEST(says(said(), "start one with `shoal node`"), said());
  (void)load_private_key(identity_file(default_data_dir("bert")));
  BOOST_TEST(says(said(), "that ran here, by `shoal node --name bert` and the "
                          "other options that it had, or another one"),
             said());
  (void)load_private_key(identity_file(default_data_dir("anna")));
  BOOST_TEST(says(said(), "that ran here (anna, bert), by `shoal node --name "
                          "NAME` and"),
             said());
}

BOOST_AUTO_TEST_CASE(a_key_that_was_used_is_not_needed_for_a_node_here) {
  const home here;
  client_config c = asking("anna");
  c.cluster_key_file = "/nonexistent";
  client first(c);
  BOOST_TEST((first.connect() == std::errc::invalid_argument));
  c.key_was_used = true;
  client later(c);
  BOOST_TEST(!later.connect());
}

// After a revocation, a command with the former key was refused by all others when its
// own node died.
BOOST_AUTO_TEST_CASE(a_client_in_touch_follows_its_shoal_to_a_new_key) {
  const home here;
  client_config c = asking("anna");
  c.cluster_key_file = here.folder.path() / "key";
  const auto old = new_cluster_key(c.cluster_key_file);
  const auto kept = transport::tls::make_shared_key();
  keep_own_key(c.data_dir, kept);
  using keys = std::vector<transport::tls::shared_key>;
  BOOST_TEST((keys_for(c).all == keys{old}));
  BOOST_TEST((keys_for(c, c.data_dir).all == keys{old, kept}));
  BOOST_TEST((keys_for(c, default_data_dir("bert")).all == keys{old}));
  c.key_was_used = true; // as for the checkpoints of a run that is watched
  BOOST_TEST((keys_for(c).all == keys{old, kept}));
}

BOOST_AUTO_TEST_CASE(nodes_that_refuse_the_key_are_not_called_silent) {
  const std::string said =
    lost_node_text("A", {true, {}, {"10.0.0.1:7", "10.0.0.2:7"}}, 58);
  BOOST_TEST(says(said, "10.0.0.1:7, 10.0.0.2:7 refuse"), said);
  BOOST_TEST(says(said, "--cluster-key"), said);
  BOOST_TEST(says(said, "58 s"), said);
  BOOST_TEST(!says(said, "no other node"), said);
  const std::string file =
    lost_node_text("A", {true, {}, {"10.0.0.1:7"}, "/home/key"}, 58);
  BOOST_TEST(says(file, "the new one into /home/key, which is read again"),
             file);
  BOOST_TEST(says(lost_node_text("A", {true, {}, {}}, 5), "no other node"));
  BOOST_TEST(says(lost_node_text("A", {false, {}, {}}, 5), "not yet named"));
}

BOOST_AUTO_TEST_CASE(a_node_that_is_gone_is_not_started_where_others_refuse) {
  const std::string alone = gone_node_text("/data/anna", {}, 10);
  BOOST_TEST(says(alone, "no node has answered for 10 s"), alone);
  BOOST_TEST(says(alone, "start it again with `shoal node"), alone);
  const std::string refused = gone_node_text("10.0.0.1:7", {"10.0.0.2:7"}, 10);
  BOOST_TEST(says(refused, "10.0.0.2:7 refuse"), refused);
  BOOST_TEST(says(refused, "--cluster-key FILE"), refused);
  BOOST_TEST(!says(refused, "no node has answered"), refused);
  BOOST_TEST(!says(refused, "shoal node"), refused);
}

BOOST_AUTO_TEST_CASE(a_remote_client_is_not_told_to_start_a_node) {
  client_config c;
  c.addresses = {"127.0.0.1:1"};
  c.cluster_key_file = "/nonexistent";
  client far(c);
  BOOST_TEST((far.connect() == std::errc::invalid_argument));
  BOOST_TEST(!says(far.text(), "shoal node"), far.text());
  BOOST_TEST(says(far.text(), "/nonexistent"), far.text());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
