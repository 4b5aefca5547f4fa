// apps/top/top_memory.hpp -- what `shoal top` remembers of earlier answers: rates
// come from two answers, a loss curve from many.
//
// Time:    arguments. Threads: one at a time.
// Limits:  a few hundred numbers for each peer and job that the last status names.
#pragma once

#include "apps/remote/counter_rate.hpp"
#include "apps/remote/shoal_traffic.hpp"
#include "apps/remote/status_json.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

/// Of a peer, from its own answers.
struct peer_figures {
  std::optional<double> cpu; ///< processors that it uses
  std::optional<double> generated_per_s;
  std::optional<double> sent_per_s;
  std::optional<double> received_per_s;
  std::optional<std::uint64_t> resident_bytes;
  std::optional<std::uint64_t> store_bytes;
  std::optional<std::uint64_t> store_room_bytes;
};

/// Of a training job.
class job_history {
public:
  static constexpr std::size_t losses_max = 240;
  /// Steps over which the speed is taken.
  static constexpr std::size_t steps_max = 32;

  /// A step that has ended at this Unix time. One that is run again replaces what
  /// came after it; one that is known changes nothing.
  void add(std::uint64_t step, double loss, std::int64_t unix_ms);

  [[nodiscard]] std::vector<double> losses() const;
  /// Seconds until `steps`; nothing while the speed is not known.
  [[nodiscard]] std::optional<double> seconds_to(std::uint64_t steps) const;
  [[nodiscard]] std::uint64_t last_step() const;

private:
  struct ended_step {
    std::uint64_t step;
    double loss;
    std::int64_t unix_ms;
  };
  std::deque<ended_step> steps_;
};

class top_memory {
public:
  using time = counter_rate::time;

  /// The answer of the node that is asked. Forgets peers, jobs and models that it
  /// does not name.
  void add(const status_json& status, time now, std::int64_t unix_ms);
  /// The answer of another peer, of which only its own figures matter.
  void add_peer(const status_json& status, time now);
  /// That peer does not answer: its figures are not known.
  void forget_peer(const std::string& id) {
    peers_.erase(id);
    traffic_.forget(id);
  }
  job_history& job(const std::string& id) { return jobs_[id]; }

  [[nodiscard]] peer_figures figures(const std::string& peer) const;
  [[nodiscard]] const job_history* find_job(const std::string& id) const;
  /// Tokens per second that a model generates for the clients of all peers that
  /// answer; nothing if none is known.
  [[nodiscard]] std::optional<double>
  generated_per_s(const std::string& job) const;
  /// Bytes per second from the asked node to that peer, and from it.
  [[nodiscard]] std::optional<double> sent_to(const std::string& peer) const;
  [[nodiscard]] std::optional<double>
  received_from(const std::string& peer) const;
  /// Between all peers that answer.
  [[nodiscard]] std::vector<flow> flows() const { return traffic_.flows(); }

private:
  struct of_peer {
    counter_rate cpu, sent, received;
    std::map<std::string, counter_rate> generated; ///< by job
    std::optional<std::uint64_t> resident, store, room;
  };
  struct of_link {
    counter_rate sent, received;
  };
  std::map<std::string, of_peer> peers_;
  std::map<std::string, of_link> links_;
  std::map<std::string, job_history> jobs_;
  shoal_traffic traffic_;
};

} // namespace shoal::apps
