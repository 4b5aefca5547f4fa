// tests/actors/still_context.hpp -- a node's context for tests of single objects:
// it does nothing and keeps what is proposed. What a test needs it overrides;
// what it neither overrides nor may use ends it.
#pragma once

#include "runtime/context.hpp"

#include <caf/actor.hpp>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace shoal::test {

struct still_context : runtime::context {
  caf::actor_system& system() override { std::abort(); }
  runtime::link_hub& links() override { std::abort(); }
  runtime::device_queue& device() override { std::abort(); }
  runtime::device_queue& reductions() override { std::abort(); }
  runtime::device_queue& disk() override { std::abort(); }
  runtime::job_log& log() override { std::abort(); }
  std::shared_ptr<const core::view> view() const override { return nullptr; }
  std::shared_ptr<const core::plan> plan() const override { return nullptr; }
  void send(const core::peer_id&, core::job_message) override {}
  void send(const core::peer_id&, core::serve_message) override {}
  void send_role(const core::peer_id&, const std::string&,
                 std::vector<std::byte>) override {}
  const runtime::role_table& roles() const override { return roles_; }
  void bind_role(const std::string&, caf::actor) override {}
  void propose_end(const core::island_id&, core::job_state, std::uint64_t,
                   core::epoch, const std::string&) override {}
  void propose_arrived(const core::island_id&, core::epoch) override {}
  void fetch_blob(const core::blob_digest&, std::vector<core::peer_id>,
                  std::function<void(std::error_code)>) override {
    std::abort();
  }
  void released() override {}
  void say(const std::string& line) override { said.push_back(line); }
  bool in_quorum() const override { return quorum; }
  void propose_retry(const core::island_id&, core::epoch since) override {
    retried.push_back(since);
  }
  void propose_expulsion(const core::peer_id& who, core::epoch) override {
    expelled.insert(who);
  }
  void hung(const std::string& why) override { ended.push_back(why); }

  bool quorum = true;
  std::vector<std::string> said, ended;
  std::vector<core::epoch> retried;
  std::set<core::peer_id> expelled;

private:
  runtime::role_table roles_;
};

} // namespace shoal::test
