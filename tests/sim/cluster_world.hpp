// tests/sim/cluster_world.hpp -- the simulated world around the cluster cores.
//
// One queue of events in simulated time, the machines with their disks, and the
// network between them. Its parts: cluster_machines.cpp (processes and disks),
// cluster_network.cpp (connections and messages), cluster_faults.cpp (faults),
// cluster_sim.cpp (the run and its checks). Used by these files only.
#pragma once

#include "checker.hpp"
#include "cluster_sim.hpp"
#include "runtime/core/cluster/outbox.hpp"
#include "runtime/core/random.hpp"

#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

namespace shoal::sim {

using namespace core;
using namespace core::cluster;

inline constexpr int slots_max = 9;

/// One machine: its process, if it runs, and its disk.
struct machine {
  peer_id id{};
  std::string address;
  std::unique_ptr<membership> core;
  std::unique_ptr<outbox> waiting; ///< actions that wait for a write
  std::uint64_t instance = 0;
  history disk;
  nanoseconds ticks_at = 0; ///< ticks for other times are stale
  nanoseconds paused_until = 0;
  epoch highest = 0;
  bool stays_down = false;
  key_record keys; ///< in use by the process
  bool leaving = false;
  std::vector<record> unsynced; ///< of a mutant
  bool revoked = false;         ///< its process has ended for that reason
};

/// Each end's view of a connection: 0 = down, else its generation.
struct ends {
  std::uint64_t up[slots_max][slots_max] = {};
  std::uint64_t coming[slots_max][slots_max] = {}; ///< up event in transit
};

enum class happening : std::uint8_t {
  deliver,
  tick,
  up,
  down,
  refuse,
  connect,
  discover,
  start,
  crash,
  fault,
  announce,
  heal,
  written,
  lie
};

struct item {
  nanoseconds at = 0;
  std::uint64_t order = 0;
  happening what{};
  int to = 0;
  int from = 0;
  std::uint64_t token = 0; ///< generation of the connection, process, or fault
  std::shared_ptr<const message> body;
  std::string address;
  std::shared_ptr<const outbox::write> stored; ///< record for a disk
  bool turned_away = false; ///< the refusal means: you were revoked
};

struct later {
  bool operator()(const item& a, const item& b) const {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

/// Whether the view has a running job.
bool is_busy(const view& v);

class cluster_world {
public:
  explicit cluster_world(const cluster_options& o);
  cluster_result run();

private:
  // the queue
  void push(item i, nanoseconds delay);
  void handle(item& i);
  void note(std::uint64_t x) { trace_ = (trace_ ^ x) * 0x100000001b3u; }
  bool chance(double p) {
    return double(random_.below(1u << 20)) < p * (1 << 20);
  }
  nanoseconds between(nanoseconds low, nanoseconds high) {
    return low + nanoseconds(random_.below(std::uint64_t(high - low + 1)));
  }

  // machines
  void start_machine(int i);
  void crash(int i, bool silent);
  void give(int i, const event& e);
  void carry_out(int i, actions& out);
  bool carry_out(int i, const action& a);
  bool carry_out_ready(int i, actions& ready);
  void write(int i, actions& ready);
  void written(item& i);
  void store(int i, const outbox::write& w);
  void saw(int i, const new_view& v);

  // network
  void transmit(int from, int to, std::shared_ptr<const message> m);
  void dial(int from, const std::string& address);
  void lose_connection(int i, int j);
  void deliver(item& i);
  void come_up(item& i);
  void accept(item& i);
  void announce(item& i);
  int at_address(const std::string& address) const;

  // keys
  bool admits(const machine& acceptor, const machine& dialler,
              const cluster_key& proves) const;
  bool may_meet(const machine& a, const machine& b) const;
  bool
  should_join(const std::vector<int>& from, const std::vector<int>& into) const;
  bool sent_away(const machine& m) const;
  void drop_strangers(int i);
  void revoke();
  void invite();

  // faults
  void fault();
  void cut(int kind);
  void submit();
  void end_job();
  void remove_job();
  void heal();

  // lies, true refusals, and members that stall jobs
  void lie();
  message false_message(int from, int to);
  bool calls_revoked(const item& i) const;
  bool is_truly_revoked(const machine& m) const;
  void turned_away(const item& i);
  void shut_out(int i);
  void expel();
  void scale();
  void force();
  bool joins_by_force(const std::vector<int>& gone,
                      const std::vector<int>& live) const;
  void check_pauses(const action& a);

  bool settled(std::string* why);
  bool group_gone(const std::vector<int>& group);

  cluster_options options_;
  cluster::random random_;
  nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t trace_ = 0xcbf29ce484222325u;
  std::priority_queue<item, std::vector<item>, later> queue_;
  std::vector<machine> machines_;
  ends ends_;
  bool blocked_[slots_max][slots_max] = {};
  double loss_ = 0;
  double slow_ = 0; ///< share of messages that are delayed a lot
  /// In every other run disks take time, and fail. Drawn separately, so that
  /// other runs do not change.
  bool real_disks_ = false;
  cluster::random disk_random_;
  nanoseconds write_max_ = 0;
  double write_fails_ = 0;
  cluster::random remove_random_; ///< separate as well
  cluster::random lie_random_;
  cluster::random scale_random_;
  bool lies_ = false;
  bool stalls_ = false;
  /// In some runs peers without a quorum are told to go on by force. Then only
  /// the jobs that they knew must go on.
  cluster::random force_random_;
  bool forces_ = false;
  std::optional<std::set<job_id>> kept_by_force_;
  nanoseconds healed_at_ = 0;
  /// For each shoal and peer: how often it was expelled for stalling, and when
  /// the first core knew.
  std::map<std::pair<shoal_id, peer_id>, std::pair<std::uint32_t, nanoseconds>>
    expelled_;
  bool faults_ = false;
  bool disk_lost_ = false;
  std::map<cluster_key, peer_id> made_against_; ///< new keys and their subject
  std::vector<cluster_key> tokens_;             ///< of invites
  checker checker_;
  cluster_result result_;
};

} // namespace shoal::sim
