// tests/runtime/node/node_test.cpp -- nodes find, lose and keep each other.
#include "runtime/files/file.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/identity/vote_file.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/node/node.hpp"
#include "tests/runtime/node/swarm.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/all.hpp>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace shoal::runtime {

using namespace std::chrono_literals;
using tests::swarm;

BOOST_AUTO_TEST_SUITE(nodes)

BOOST_AUTO_TEST_CASE(one_node_founds_a_shoal_alone) {
  swarm s;
  node& n = s.start("a");
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  BOOST_TEST(n.view()->members.size() == 1);
  BOOST_TEST(!s.said.wait_for("ready: peer").empty());
  BOOST_TEST(!s.said.wait_for("no --cluster-key").empty());
}

BOOST_AUTO_TEST_CASE(four_nodes_without_addresses_form_one_view) {
  swarm s;
  for (const char* name : {"a", "b", "c", "d"})
    s.start(name);
  BOOST_TEST(swarm::until([&] { return s.agree(4); }));
}

BOOST_AUTO_TEST_CASE(nodes_on_ipv6_loopback_find_each_other) {
  if (!std::ifstream("/proc/net/if_inet6")) {
    BOOST_TEST_MESSAGE("skipped: no IPv6 here");
    return;
  }
  swarm s;
  for (const char* name : {"a", "b"}) {
    auto c = s.config(name);
    c.listen = "[::1]:0";
    s.start(c);
  }
  BOOST_TEST(s.nodes[0]->address().starts_with("[::1]:"));
  BOOST_TEST(swarm::until([&] { return s.agree(2); }));
}

BOOST_AUTO_TEST_CASE(the_others_agree_when_one_is_killed_and_when_it_returns) {
  swarm s;
  for (const char* name : {"a", "b", "c"})
    s.start(name);
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(3); }));
  auto victim = s.nodes[0]->self();
  s.nodes[0]->stop();
  s.nodes.erase(s.nodes.begin());
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  node& again = s.start("a");
  BOOST_TEST(bool(again.self() == victim));
  BOOST_TEST(swarm::until([&] { return s.agree(3); }));
}

BOOST_AUTO_TEST_CASE(no_peer_waits_for_a_node_that_left) {
  swarm s;
  for (const char* name : {"a", "b"})
    s.start(name);
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  s.nodes[1]->leave(20s);
  BOOST_TEST_REQUIRE(s.nodes[1]->wait_stopped(25s));
  s.nodes.pop_back();
  BOOST_TEST(swarm::until([&] { return s.agree(1); }));
}

BOOST_AUTO_TEST_CASE(a_peer_with_another_key_stays_outside) {
  swarm s;
  s.start("a");
  auto file = s.root / "other.key";
  std::ofstream(file) << std::string(64, 'a') << "\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  auto c = s.config("b");
  c.cluster_key_file = file;
  c.listen = "127.0.0.1:0";
  c.join = {s.nodes[0]->address()};
  node& b = s.start(c);
  BOOST_TEST_REQUIRE(swarm::until([&] { return b.view() != nullptr; }));
  node& third = s.start("c"); // and the door is still open for others
  BOOST_TEST(swarm::until([&] {
    auto v = third.view();
    return v && v->members.size() == 2;
  }));
  BOOST_TEST(b.view()->members.size() == 1);
}

BOOST_AUTO_TEST_CASE(join_finds_peers_without_discovery) {
  swarm s;
  auto a = s.config("a");
  a.discover = false;
  s.start(a);
  auto b = s.config("b");
  b.discover = false;
  b.join = {s.nodes[0]->address()};
  s.start(b);
  BOOST_TEST(swarm::until([&] { return s.agree(2); }));
}

BOOST_AUTO_TEST_CASE(a_node_without_quorum_names_the_missing_peers) {
  // Of two, the one with the lowest id goes on alone: the other must wait.
  swarm s;
  s.start("a");
  s.start("b");
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(2); }));
  const std::size_t low = s.nodes[1]->self() < s.nodes[0]->self() ? 1 : 0;
  node& left = *s.nodes[1 - low];
  s.nodes[low]->stop();
  std::string line = s.said.wait_for("no quorum for view");
  BOOST_TEST(line.find("recover --force") != std::string::npos);
  BOOST_TEST(line.find(core::short_name(s.nodes[low]->self()))
             != std::string::npos);
  auto old = left.view()->shoal;
  auto client = s.client_of(left);
  BOOST_TEST_REQUIRE(!client->connect());
  BOOST_TEST_REQUIRE(!client->recover_force());
  BOOST_TEST(bool(left.view()->shoal != old));
  BOOST_TEST(left.view()->members.size() == 1);
}

// It said that none of the others answers, of voters alone.
BOOST_AUTO_TEST_CASE(a_node_that_others_answer_does_not_doubt_its_network) {
  swarm s;
  s.start("a");
  s.start("b");
  auto c = s.config("c");
  c.voter = false;
  s.start(c);
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(3); }));
  const std::size_t low = s.nodes[1]->self() < s.nodes[0]->self() ? 1 : 0;
  s.nodes[low]->stop();
  const std::string line = s.said.wait_for("no quorum for view");
  BOOST_TEST(line.find("none of the others answers") == std::string::npos,
             line);
}

BOOST_AUTO_TEST_CASE(a_data_directory_in_use_is_refused_naming_the_process) {
  swarm s;
  s.start("a");
  BOOST_CHECK_EXCEPTION(s.start("a"), setup_error, [](const setup_error& e) {
    return std::string(e.what()).find(std::to_string(::getpid()))
           != std::string::npos;
  });
}

// It took away the socket and the records of the node that had its place.
BOOST_AUTO_TEST_CASE(a_node_leaves_the_files_of_one_that_has_its_directory) {
  swarm s;
  const auto c = s.config("a");
  node& first = s.start(c);
  BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(1); }));
  BOOST_TEST_REQUIRE(swarm::until([&] { // it may be writing there
    std::error_code error;
    std::filesystem::remove_all(c.data_dir, error);
    return !error;
  }));
  node& second = s.start(c);
  BOOST_TEST_REQUIRE(first.wait_stopped(25s));
  BOOST_TEST(std::filesystem::exists(control_socket(c.data_dir)));
  BOOST_TEST(swarm::until([&] { // it may be written
    try {
      const auto kept = vote_file(c.data_dir).load().view;
      const auto now = second.view();
      return kept && now && now->members.size() == 1 && kept->current == *now;
    } catch (const setup_error&) {
      return false;
    }
  }));
}

BOOST_AUTO_TEST_CASE(an_open_address_without_a_key_is_refused) {
  swarm s;
  auto c = s.config("a");
  c.listen = "0.0.0.0:0";
  BOOST_CHECK_EXCEPTION(s.start(c), setup_error, [](const setup_error& e) {
    return std::string(e.what()).find("--cluster-key") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(an_embedded_node_leaves_no_directory_behind) {
  swarm s;
  auto c = s.config("");
  c.data_dir.clear();
  c.embedded = true;
  node& n = s.start(c);
  auto folder = n.data_dir();
  BOOST_TEST_REQUIRE(swarm::until([&] { return n.view() != nullptr; }));
  BOOST_TEST(std::filesystem::exists(folder));
  s.nodes.clear();
  BOOST_TEST(!std::filesystem::exists(folder));
}

/// Sends its messages to itself and remembers what arrives.
static caf::behavior
echo(caf::event_based_actor*, context* world, tests::lines* heard) {
  return {
    [world](const view_changed& v) {
      if (v.view->members.size() < 2)
        return;
      for (const core::member& m : v.view->members)
        world->send_role(m.id.peer, "echo", {std::byte{'h'}, std::byte{'i'}});
    },
    [heard](const role_message_in& m) {
      heard->add(core::to_hex(m.from) + " "
                 + std::string(reinterpret_cast<const char*>(m.bytes->data()),
                               m.bytes->size()));
    },
  };
}

BOOST_AUTO_TEST_CASE(a_custom_role_hears_from_every_peer) {
  tests::lines heard; // outlives the nodes
  swarm s;
  role_table roles;
  roles["echo"] = [&heard](caf::actor_system& system, context& world) {
    return system.spawn(echo, &world, &heard);
  };
  s.start(s.config("a"), roles);
  s.start(s.config("b"), roles);
  for (auto& n : s.nodes)
    BOOST_TEST(!heard.wait_for(core::to_hex(n->self()) + " hi").empty());
}

/// Repeatedly sends its own node's supervisor unsuitable messages; then itself.
static caf::behavior
nuisance(caf::event_based_actor*, context* world, tests::lines* heard) {
  return {
    [world](const view_changed&) {
      for (int i = 0; i < 300; ++i)
        world->send_role(world->self(), "supervisor", {std::byte{1}});
      world->send_role(world->self(), "nuisance", {std::byte{1}});
    },
    [heard](const role_message_in&) { heard->add("nuisance"); },
  };
}

static caf::behavior
supervisor(caf::event_based_actor* self, tests::lines* heard) {
  self->set_default_handler(caf::drop);
  return {[heard](const role_message_in&) { heard->add("supervisor"); }};
}

BOOST_AUTO_TEST_CASE(peers_do_not_talk_to_the_supervisor) {
  tests::lines heard, said; // outlive the nodes
  tests::line_observer to_said(said);
  swarm s;
  role_table roles;
  roles["nuisance"] = [&heard](caf::actor_system& system, context& world) {
    return system.spawn(nuisance, &world, &heard);
  };
  roles["supervisor"] = [&heard](caf::actor_system& system, context&) {
    return system.spawn(supervisor, &heard);
  };
  auto c = s.config("a");
  c.observer = &to_said;
  s.start(c, roles);
  BOOST_TEST(!heard.wait_for("nuisance").empty());
  BOOST_TEST(!said.wait_for("a message for \"supervisor\"").empty());
  BOOST_TEST(said.count("a message for \"supervisor\"") < 100);
  s.nodes.clear();
  BOOST_TEST(heard.count("supervisor") == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(identities)

BOOST_AUTO_TEST_CASE(a_key_that_others_can_read_is_refused) {
  swarm s;
  auto file = s.root / "key";
  std::ofstream(file) << std::string(64, 'a') << "\n";
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  BOOST_CHECK_THROW(load_cluster_key(file), setup_error);
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  BOOST_TEST(load_cluster_key(file)[0] == 0xaa);
  std::ofstream(file) << "short";
  BOOST_CHECK_THROW(load_cluster_key(file), setup_error);
}

// After a change of the key, one start without --cluster-key took the former one.
BOOST_AUTO_TEST_CASE(a_node_says_which_of_two_keys_it_uses) {
  swarm s;
  auto c = s.config("a");
  c.cluster_key_file = s.root / "new.key";
  (void)new_cluster_key(c.cluster_key_file);
  make_private_dir(c.data_dir);
  keep_own_key(c.data_dir, transport::tls::make_shared_key());
  s.start(c).stop();
  const std::string own = own_key_file(c.data_dir).string();
  BOOST_TEST(!s.said.wait_for("keeps another one, in " + own).empty());
  s.nodes.clear();
  c.cluster_key_file.clear();
  s.start(c);
  BOOST_TEST(!s.said.wait_for("that this node keeps, in " + own).empty());
}

/// Each file of a node in turn is a FIFO when it restarts. It need not start,
/// but must report that: no process ever opens the other end.
BOOST_AUTO_TEST_CASE(a_node_does_not_wait_for_a_fifo_in_its_folder) {
  namespace fs = std::filesystem;
  swarm s;
  node_config c = s.config("a");
  c.mflops = 0; // so that it looks for the rates that it has measured
  std::vector<fs::path> files;
  {
    node& n = s.start(c);
    BOOST_TEST_REQUIRE(swarm::until([&] { return s.agree(1); }));
    job_event e;
    e.kind = job_event_kind::step;
    e.step = 1;
    n.world().log().add(7, e);
    BOOST_TEST_REQUIRE(swarm::until([&] {
      return fs::exists(n.data_dir() / "jobs/0000000000000007/events.jsonl");
    }));
    s.nodes.clear();
  }
  for (const auto& f : fs::recursive_directory_iterator(s.root))
    if (f.is_regular_file())
      files.push_back(f.path());
  BOOST_TEST(files.size() >= 6U); // keys, lock, records, rates, events
  for (const fs::path& file : files) {
    BOOST_TEST_CONTEXT(file) {
      const fs::path away = s.root / "away";
      fs::rename(file, away);
      BOOST_TEST_REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
      std::atomic<bool> over{false};
      std::thread starts([&] {
        try {
          node(c, {}).stop();
        } catch (const setup_error& e) {
          s.said.add(e.what());
        }
        over = true;
      });
      const bool waited = !swarm::until([&] { return over.load(); });
      BOOST_TEST(!waited);
      while (waited && !over) // lets it continue
        posix::descriptor(
          ::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      starts.join();
      fs::remove(file);
      fs::rename(away, file);
    }
  }
  BOOST_TEST(!s.said.wait_for("identity.key: not a regular file").empty());
  BOOST_TEST(!s.said.wait_for("view.record: not a regular file").empty());
}

BOOST_AUTO_TEST_CASE(processes_that_make_the_users_key_at_once_get_the_same) {
  swarm s;
  std::vector<transport::tls::shared_key> keys(8);
  std::vector<std::thread> threads;
  for (auto& key : keys)
    threads.emplace_back([&key] { key = load_user_key(); });
  for (auto& t : threads)
    t.join();
  for (auto& key : keys)
    BOOST_TEST(bool(key == keys[0]));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
