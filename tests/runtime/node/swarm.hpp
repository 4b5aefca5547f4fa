// tests/runtime/node/swarm.hpp -- nodes of one process for the node's tests.
//
// Each has its own data directory below one that goes with the test; the
// user's key and cache live there too. Nothing leaves loopback.
#pragma once

#include "runtime/control/client.hpp"
#include "runtime/core/view.hpp"
#include "runtime/node/node.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shoal::tests {

using namespace std::chrono_literals;

/// Lines that nodes said, from any thread; waits for one.
class lines {
public:
  void add(const std::string& line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  /// @returns the first line with `part` in it, or "" after `timeout`.
  std::string
  wait_for(const std::string& part, std::chrono::milliseconds timeout = 20s) {
    std::unique_lock lock(mutex_);
    std::string found;
    changed_.wait_for(lock, timeout, [&] {
      for (const std::string& line : lines_)
        if (found.empty() && line.find(part) != std::string::npos)
          found = line;
      return !found.empty();
    });
    return found;
  }

  /// How many lines have `part` in them.
  std::size_t count(const std::string& part) {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
      std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
        return line.find(part) != std::string::npos;
      }));
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// Keeps what a node says.
struct line_observer final : runtime::node_observer {
  explicit line_observer(lines& l) : said(l) {}
  void ready(const std::string& line) override { said.add(line); }
  void waiting(const std::string& line) override { said.add(line); }
  void say(const std::string& line) override { said.add(line); }
  lines& said;
};

class swarm {
public:
  swarm() {
    for (const char* variable :
         {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"})
      ::setenv(variable, (root / variable).c_str(), 1);
  }

  runtime::node_config config(const std::string& name) {
    runtime::node_config c;
    c.name = name;
    c.data_dir = root / name;
    // Other tests and nodes of this machine send beacons too.
    c.cluster = "test-" + std::to_string(::getpid());
    c.threads = 1;
    c.mflops = 1000;
    c.memory_bytes = std::uint64_t{1} << 30;
    c.observer = &said_lines;
    return c;
  }

  runtime::node& start(const std::string& name) { return start(config(name)); }
  runtime::node& start(runtime::node_config c, runtime::role_table roles = {}) {
    nodes.push_back(
      std::make_unique<runtime::node>(std::move(c), std::move(roles)));
    return *nodes.back();
  }

  /// Waits until `holds`, looking every few milliseconds.
  static bool until(const std::function<bool()>& holds,
                    std::chrono::milliseconds timeout = 20s) {
    auto end = std::chrono::steady_clock::now() + timeout;
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    while (!holds()) {
      if (std::chrono::steady_clock::now() >= end)
        return false;
      never.wait_for(lock, 5ms);
    }
    return true;
  }

  /// Whether all nodes have one view with `members` members, all seated: one
  /// that is only joining has no vote yet, and may not be missed either.
  bool agree(std::size_t members) {
    auto first = nodes.front()->view();
    for (auto& n : nodes) {
      auto v = n->view();
      if (!v || v->members.size() != members || *v != *first)
        return false;
      for (const core::member& m : v->members)
        if (m.state != core::member_state::active)
          return false;
    }
    return true;
  }

  std::unique_ptr<runtime::client> client_of(const runtime::node& n) {
    runtime::client_config c;
    c.data_dir = n.data_dir();
    return std::make_unique<runtime::client>(c);
  }

  const test::folder home; // outlives the nodes
  std::filesystem::path root = home.path;
  lines said;
  line_observer said_lines{said};
  std::vector<std::unique_ptr<runtime::node>> nodes;
};

} // namespace shoal::tests
