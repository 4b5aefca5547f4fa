// tests/sim/shoal/world.hpp -- the simulated world around the nodes.
//
// The loopback fabric's network is the queue of everything that happens and
// the clock. Parts: world.cpp (the run and its end), faults.cpp (what goes
// wrong), node.cpp (one process), training.cpp (what is trained), links.cpp,
// disk.cpp, history.cpp (what is watched), seams.cpp (the operations by which
// actors train, and the clocks). Used by these files only.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/random.hpp"
#include "tests/sim/checker.hpp"
#include "tests/sim/shoal/history.hpp"
#include "tests/sim/shoal/shoal_sim.hpp"
#include "tests/sim/shoal/training.hpp"
#include "tests/support/scratch.hpp"
#include "transport/loopback/fabric.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace shoal::sim {

class sim_node;

/// One machine: its disk, and its process if it runs.
struct machine {
  int number = 0;
  core::peer_id id{};
  std::string address; ///< its name in the network
  std::filesystem::path folder;
  core::cluster::history disk; ///< records that were synced
  std::uint64_t mflops = 0;
  nanoseconds pace = 1; ///< its work takes so many times as long
  bool witness = false;
  bool voter = true;
  std::unique_ptr<sim_node> node;
  std::uint64_t starts = 0;
};

class shoal_world {
public:
  /// @param kind of training; none: from the seed
  explicit shoal_world(const shoal_options& o,
                       std::uint64_t kind = training::kinds);
  ~shoal_world();
  shoal_result run();

  // For the parts.
  const shoal_options& options() const { return options_; }
  transport::loopback::network& net() { return net_; }
  nanoseconds now() const { return net_.now().count(); }
  void after(nanoseconds delay, std::function<void()> what) {
    net_.schedule(std::chrono::nanoseconds(delay), std::move(what));
  }
  std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  bool chance(double p) {
    return double(random_.below(1u << 20)) < p * (1 << 20);
  }
  nanoseconds between(nanoseconds low, nanoseconds high) {
    return low + nanoseconds(random_.below(std::uint64_t(high - low + 1)));
  }
  void note(std::uint64_t a, std::uint64_t b) {
    trace_ = (trace_ ^ (a * 0x9e3779b97f4a7c15u + b)) * 0x100000001b3u;
  }
  void fail(const std::string& what);
  void say(int node, const std::string& what);
  bool faulty() const { return faults_; }
  bool has(mutant bug) const { return options_.bug == bug; }

  std::vector<machine>& machines() { return machines_; }
  int number_of(const core::peer_id& id) const;
  bool alive(int i) const { return machines_[std::size_t(i)].node != nullptr; }
  history& past() { return history_; }
  checker& views() { return checker_; }
  const training& work() const { return work_; }

  /// Whether this copy of a blob may go bad: one of several, and once.
  bool may_rot(int node, const core::blob_digest& d);

  /// Its job core gets state from disks, or waits for the job's data.
  void loads(int node);

  /// Bytes that one process may have in buffers and gradients.
  std::size_t buffer_bytes_max() const;
  /// What one process holds now.
  void holds(std::size_t buffer_bytes, std::size_t transfers) {
    result_.buffer_bytes_most =
      std::max(result_.buffer_bytes_most, buffer_bytes);
    result_.transfers_most = std::max(result_.transfers_most, transfers);
  }

  /// The process has met its end, or shall: it is gone after this event.
  void doom(int i);

  /// make_plan(v): worked out once for all nodes, since it takes half of all
  /// time, and now and then again, since it must be the same.
  const core::plan& plan_of(const core::view& v);

  /// A transfer, for the watched links: what is sent must arrive.
  using transfer = std::tuple<int, int, transport::bulk_tag>;
  void sent(const transfer& t, std::uint64_t hash) { bytes_[t] = hash; }
  void arrived(const transfer& t, std::uint64_t hash);

  /// The process at work, and the world; null outside of events.
  static shoal_world* active();
  int at_work = -1;

  /// The mean duration of a piece of device work and of disk work.
  nanoseconds device_time = 2 * millisecond;
  nanoseconds disk_time = millisecond;

  /// What storing a view or vote takes now; 0: it is done at once. Of runs in
  /// which that takes time only, every eighth.
  nanoseconds record_time();
  /// Whether the disk refuses a view or vote now.
  bool record_fails();

  double lost = 0;      ///< share of control messages that vanish
  double disk_full = 0; ///< share of writes that the disks refuse
  double bit_flips = 0; ///< share of first reads that find a flipped bit

private:
  void start(int i);
  void kill(int i, bool silent);
  void kill_doomed();
  void announce(int i, std::uint64_t start);
  bool all_in_one_view() const;
  /// The steps of one undisturbed peer.
  static const std::vector<core::step_record>& alone(const training& work);
  void submit();
  bool step_until(nanoseconds time, const std::function<bool()>& done);
  bool over(std::string* why) const;
  bool quorum_gone();
  void check_end();
  void fault();
  void kill_and_restart(int i);
  void stop_for(int i, nanoseconds time);
  void hang(int i, nanoseconds time);
  void hang_while_fetching();
  void hang_after_death_of_all();
  void hang_for_good(int i);
  void go_on(int i, std::uint64_t start);
  void lose_connection(int i, int j);
  void change_profile(int i);
  void cut_for(int a, int b, bool both, nanoseconds time);
  void cut(int a, int b);
  void mend(int a, int b);
  void heal();

  shoal_options options_;
  core::cluster::random random_;
  transport::loopback::network net_;
  training work_;
  test::scratch folder_;
  std::vector<machine> machines_;
  std::vector<int> doomed_;
  std::set<core::blob_digest> rotten_;
  std::deque<std::pair<core::view, core::plan>> plans_; ///< newest first
  std::map<transfer, std::uint64_t> bytes_;
  std::map<std::pair<int, int>, int> cuts_; ///< ways that are cut, how often
  checker checker_;
  history history_;
  std::string failure_;
  std::uint64_t trace_ = 0xcbf29ce484222325u;
  bool faults_ = false;
  /// In every eighth run a disk or device hangs for good, from the time on at
  /// which the job is submitted, or at which all start after all have died.
  enum class moving_hang : std::uint8_t { none, fetching, restoring };
  moving_hang moving_hang_ = moving_hang::none;
  bool hang_due_ = false;             ///< in the first that loads, perhaps
  core::cluster::random hang_random_; ///< so that other runs stay as they are
  bool slow_records_ = false;
  core::cluster::random record_random_; ///< likewise
  nanoseconds record_max_ = 0;
  double records_fail_ = 0;
  shoal_world* outer_ = nullptr;
  shoal_result result_;
};

} // namespace shoal::sim
