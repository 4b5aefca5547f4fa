// apps/remote/shoal_traffic.hpp -- who sends how much to whom in a shoal, and for
// which job: from the answers of all peers to `shoal status`.
//
// A peer counts the bytes of its own links, both ways. Of a pair of peers the
// sender's count is taken; where the sender does not answer, the receiver's.
//
// Time:    arguments. Threads: one at a time.
// Limits:  peers of the asked node's view, links_max links of each; jobs_max jobs for
//          each of their pairs.
#pragma once

#include "apps/remote/counter_rate.hpp"
#include "apps/remote/status_json.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/files/field_text.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::apps {

/// What a peer has sent to another one since its node started.
struct flow {
  struct part {
    std::string job; ///< id; "": of no job, such as files on their way
    std::uint64_t bytes = 0;
    std::optional<double> bytes_per_s; ///< of the last seconds
  };
  std::string from, to; ///< ids
  std::uint64_t bytes = 0;
  std::optional<double> bytes_per_s;
  std::vector<part> parts; ///< the same by job, busiest first
};

class shoal_traffic {
public:
  using time = counter_rate::time;
  static constexpr std::size_t jobs_max = 16;
  /// A peer has no more; so much is kept of one that lies, until keep_only().
  static constexpr std::size_t links_max = core::cluster::members_max;

  /// The answer of any peer about its own links. @pre from parse_status()
  void add(const status_json& status, time now);
  /// That peer does not answer: its counts are not known.
  void forget(const std::string& peer) { peers_.erase(peer); }
  void keep_only(const std::set<std::string>& peers);

  /// Of all pairs that have sent something, the busiest first.
  [[nodiscard]] std::vector<flow> flows() const;

private:
  struct counted {
    std::uint64_t bytes = 0;
    counter_rate rate;
    void add(std::uint64_t value, time now);
  };
  struct direction {
    counted all;
    std::map<std::string, counted> jobs;
  };
  struct link {
    direction sent, received;
  };
  static void
  add(direction& to, const status_json& moved, const char* key, time now);
  std::map<std::string, std::map<std::string, link>> peers_;
};

/// What is known of all pairs, as the commands and the HTTP endpoint say it.
struct traffic_report {
  static constexpr std::size_t flows_max = 256;
  std::vector<flow> flows; ///< the busiest ones
  std::size_t more = 0;    ///< that are left out
  /// Ids of peers that have not answered: of traffic between them nothing is known.
  std::vector<std::string> silent;
};

/// The document that `shoal status --traffic --json` has as "traffic".
status_json traffic_json(const traffic_report& r);
std::vector<runtime::field_text> traffic_fields();

} // namespace shoal::apps
