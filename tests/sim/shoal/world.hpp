// tests/sim/shoal/world.hpp -- the simulated world around the nodes.
//
// The loopback fabric's network is the queue of all events and the clock.
// Parts: world.cpp (the run and its end), faults.cpp (faults), node.cpp (one
// process), training.cpp (the training run), links.cpp, disk.cpp, history.cpp
// (observers), seams.cpp (the operations by which actors train, and the
// clocks). Used by these files only.
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
  nanoseconds pace = 1; ///< factor on the duration of its work
  bool witness = false;
  bool voter = true;
  std::unique_ptr<sim_node> node;
  std::uint64_t starts = 0;
};

class shoal_world {
public:
  /// @param kind of training; empty: from the seed
  explicit shoal_world(const shoal_options& o,
                       std::uint64_t kind = training::kinds);
  shoal_world(const shoal_world&) = delete;
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
    add(trace_, a, b);
    add(order_, a, b);
  }
  /// Of results of floating-point arithmetic.
  void note_bits(std::uint64_t a, std::uint64_t b) { add(trace_, a, b); }
  void fail(const std::string& what);
  void say(int node, const std::string& what);
  bool faulty() const { return faults_; }
  bool has(mutant bug) const { return options_.bug == bug; }

  std::vector<machine>& machines() { return machines_; }
  int number_of(const core::peer_id& id) const;
  bool alive(int i) const { return machines_[std::size_t(i)].node != nullptr; }
  /// What an island has done.
  history& past(const core::island_id& id) { return histories_.at(id); }
  /// The same, by the digest of one of its places.
  history& past_of(std::uint64_t digest);
  checker& views() { return checker_; }
  const training& work(core::job_id job) const;

  /// Whether this copy of a blob may be damaged: one of several, and only once.
  bool may_rot(int node, const core::blob_digest& d);

  /// Its job core gets state from disks, or waits for the job's data.
  void loads(int node);

  /// Bytes that one process may have in buffers and gradients.
  std::size_t buffer_bytes_max() const;
  /// The present amounts in one process.
  void holds(std::size_t buffer_bytes, std::size_t transfers) {
    result_.buffer_bytes_most =
      std::max(result_.buffer_bytes_most, buffer_bytes);
    result_.transfers_most = std::max(result_.transfers_most, transfers);
  }

  /// The process has met its end, or has to: it is gone after this event.
  void doom(int i);

  /// make_plan(v), computed once for all nodes, since it takes half of all
  /// time; sometimes computed again, since the result must be the same.
  const core::plan& plan_of(const core::view& v);

  /// The digests of all places of other islands so far, of any job.
  std::vector<std::uint64_t> digests_beside(std::uint64_t digest) const;

  /// A transfer, for the observed links: what is sent must arrive.
  using transfer = std::tuple<int, int, transport::bulk_tag>;
  void sent(const transfer& t, std::uint64_t hash) { bytes_[t] = hash; }
  void arrived(const transfer& t, std::uint64_t hash);

  /// The active process, and the world; null outside of events.
  static shoal_world* active();
  int at_work = -1;

  /// The mean duration of a piece of device work and of disk work.
  nanoseconds device_time = 2 * millisecond;
  nanoseconds disk_time = millisecond;

  /// In every sixteenth run passes on devices are interrupted by urgent work,
  /// such as that of a job that serves.
  bool interrupts() const {
    return options_.seed % interrupted_seeds == interrupted_seed;
  }
  bool urgent_work_comes() { return urgent_random_.below(3) == 0; }

  /// Time to store a view or vote; 0: at once. Takes time in every eighth run.
  nanoseconds record_time();
  /// Whether the disk refuses a view or vote now.
  bool record_fails();

  double lost = 0;      ///< share of control messages that are lost
  double disk_full = 0; ///< share of writes that disks refuse
  double bit_flips = 0; ///< share of first reads with a flipped bit

private:
  static void add(std::uint64_t& hash, std::uint64_t a, std::uint64_t b) {
    hash = (hash ^ (a * 0x9e3779b97f4a7c15u + b)) * 0x100000001b3u;
  }
  void start(int i);
  void kill(int i, bool silent);
  void kill_doomed();
  void announce(int i, std::uint64_t start);
  bool all_in_one_view() const;
  bool changes_plans() const {
    return has(mutant::numbers_not_changed) || has(mutant::all_islands_changed);
  }
  void check_places(const core::view& v, const core::plan& p);
  /// The steps of one undisturbed peer.
  static const std::vector<core::step_record>& alone(const training& work);
  void submit(const training& work);
  void watch(const training& work);
  void cancel(core::job_id job);
  void check_end(const training& work, std::uint32_t island);
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
  std::vector<training> works_; ///< the jobs
  test::scratch folder_;
  std::vector<machine> machines_;
  std::vector<int> doomed_;
  std::set<core::blob_digest> rotten_;
  std::deque<std::pair<core::view, core::plan>> plans_; ///< newest first
  std::map<transfer, std::uint64_t> bytes_;
  std::map<std::pair<int, int>, int> cuts_; ///< cut links, with the number of
                                            ///< cuts
  checker checker_;
  std::map<core::island_id, history> histories_;
  std::map<std::uint64_t, core::island_id> places_; ///< by digest
  std::string failure_;
  std::uint64_t trace_ = 0xcbf29ce484222325u;
  std::uint64_t order_ = 0xcbf29ce484222325u;
  bool faults_ = false;
  /// In every eighth run a disk or device hangs for good, from the time when
  /// the job is submitted, or when all restart after all have died.
  enum class moving_hang : std::uint8_t { none, fetching, restoring };
  moving_hang moving_hang_ = moving_hang::none;
  bool hang_due_ = false;             ///< perhaps in the first process that
                                      ///< loads
  core::cluster::random hang_random_; ///< separate, so that other runs do not
                                      ///< change
  bool slow_records_ = false;
  core::cluster::random record_random_; ///< separate, too
  static constexpr std::uint64_t interrupted_seeds = 16, interrupted_seed = 8;
  core::cluster::random urgent_random_; ///< separate, too
  core::cluster::random cancel_random_; ///< separate, too
  nanoseconds record_max_ = 0;
  double records_fail_ = 0;
  shoal_world* outer_ = nullptr;
  shoal_result result_;
};

} // namespace shoal::sim
