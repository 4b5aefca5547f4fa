// actors/placed_roles.hpp -- the [[roles]] of run files on this node.
//
// The supervisor's list of custom actors that belong to jobs: those that a
// job's run file asks for, those that the view assigns to this peer, and those
// that run.
//
//   every_peer   one on each active peer of the shoal, except witnesses
//   every_stage  one beside each stage of each replica
//   NAME         one on the peer of this name, while it is active
//
// Threads: the supervisor's. Errors: roles that no peer starts are reported
// once in the job's log, by every peer; the job goes on without them.
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/assignment.hpp"
#include "runtime/jobs/run_config.hpp"

#include <caf/actor.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
struct view;      // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::actors {

/// The actors of a job's roles that belong on `self`. Pure; for tests.
std::vector<runtime::placed_role>
wanted_here(const core::view& v, const core::assignment& place,
            const std::vector<runtime::role_placement>& roles,
            const core::peer_id& self);

class placed_roles {
public:
  explicit placed_roles(runtime::context& node) : node_(node) {}

  /// Another view took effect: starts, informs and ends actors.
  void on_view(const runtime::view_changed& m);
  void end_all();

private:
  struct job_roles {
    std::vector<runtime::role_placement> roles;
    std::map<std::string, caf::actor> actors; ///< by address
    core::assignment told;        ///< the place that the actors know
    std::set<std::string> unheld; ///< roles that have been reported
  };
  void follow(const core::job_entry& entry, const core::assignment& place,
              const runtime::view_changed& m);
  void tell_unheld(const core::view& v, const core::assignment& place,
                   job_roles& of);
  void start(const runtime::placed_role& role, job_roles& of);
  void end(const std::string& address, const caf::actor& actor);

  runtime::context& node_;
  std::map<core::job_id, job_roles> jobs_;
  std::set<std::pair<core::job_id, std::string>> lacking_; ///< already reported
};

} // namespace shoal::actors
