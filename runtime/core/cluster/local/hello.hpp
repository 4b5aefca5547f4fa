// runtime/core/cluster/local/hello.hpp -- what a peer says of itself.
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core::cluster {

/// The first message on every connection, and again when it has changed.
struct hello {
  std::string cluster;
  shoal_id shoal{};
  epoch number = 0;
  std::uint32_t members = 0;
  std::vector<job_id> jobs;  ///< in the view: those that run, then ended ones
  std::uint32_t running = 0; ///< how many of them run
  bool admissions = false;   ///< has invites or revocations to remember
  bool joinable = false;     ///< can admit members: seated, has its quorum, not
                             ///< embedded, not dissolved
  std::string name;
  std::vector<std::string> addresses;       ///< of the sender
  key_digest key{};                         ///< in use by the sender; zero: not
                                            ///< stated
  std::vector<key_digest> replaced;         ///< keys that the sender once used
  std::vector<superseded_shoal> superseded; ///< shoals that the sender's shoal
                                            ///< replaced
  std::string version; ///< of the sender's program, shown to users; "": not
                       ///< stated
  friend bool operator==(const hello&, const hello&) = default;
};
void fields(auto& v, of<hello> auto& x) {
  v("cluster", x.cluster, text_of(limits::name_bytes_max));
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("members", x.members);
  v("jobs", x.jobs, list_of(jobs_max));
  v("running", x.running);
  v("admissions", x.admissions);
  v("joinable", x.joinable);
  v("name", x.name, text_of(limits::name_bytes_max));
  v("addresses", x.addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v("key", x.key, or_absent());
  v("replaced", x.replaced, list_of(keys_replaced_max));
  v("superseded", x.superseded, list_of(superseded_max));
  v("version", x.version, text_of(limits::version_bytes_max));
}

std::size_t running_jobs(const view& v);

/// The part of a hello that follows from a view; the caller adds the rest.
hello describe(const view& v);

/// Which of two shoals that meet goes on. In this order: the one with running
/// jobs; with more to remember (jobs, then invites); with more members to
/// disturb; with the lower id. So an invited peer joins the shoal that invited
/// it, and not the reverse.
bool goes_before(const hello& a, const hello& b);

} // namespace shoal::core::cluster
