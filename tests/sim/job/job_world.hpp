// tests/sim/job/job_world.hpp -- the simulated peers around the job cores.
//
// One queue of events in simulated time, an oracle that makes the views, and a
// process per peer: its core, and the state of its shell. Its parts:
// job_oracle.cpp (views, plans, faults), job_shell.cpp (carries out the cores'
// actions), job_arrivals.cpp (the part for arriving units), job_checks.cpp
// (checks of commits, adoptions and the end), job_rot.cpp (corrupted state),
// job_sim.cpp (the run). Used by these files only.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/view.hpp"
#include "tests/sim/job/job_sim.hpp"

#include <bit>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shoal::sim {

using namespace shoal::core;
namespace act = shoal::core::job_action;
namespace ev = shoal::core::job_event;

inline constexpr nanoseconds ms = 1'000'000;

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class random_source {
public:
  explicit random_source(std::uint64_t seed) : state_(mix(seed, 77)) {}
  std::uint64_t next() { return state_ = mix(state_, 1); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

private:
  std::uint64_t state_;
};

using unit_hashes = std::map<std::uint32_t, std::uint64_t>;

/// A process: the core, and the state of its shell.
struct process {
  process(peer_id i, epoch n, job_config c) : id(i), incarnation(n), core(c) {}

  peer_id id{};
  epoch incarnation = 0;
  job_core core;
  unit_hashes state; ///< hash of each unit held
  std::map<state_version, unit_hashes> copies;
  std::map<std::pair<std::uint64_t, std::uint32_t>,
           std::optional<state_version>>
    serves_copy;                    ///< by digest and unit
  std::uint64_t generation = 0;     ///< counts halts: older work is void
  std::size_t keepers = 0;          ///< of the assignment adopted last
  std::uint64_t running_digest = 0; ///< sub-plan of run_step(running_step)
  std::uint64_t running_step = 0;
  std::uint64_t digest_seen = 0;
  std::uint64_t checkpoint_step = 0; ///< of the requested run_checkpoint
  std::uint64_t gradients_of = 0;    ///< digest of the gradients' sub-plan
  int applying = 0;       ///< in progress: own units, and arriving ones
  state_version prepared; ///< the version after the gradients are applied
  std::set<std::uint32_t> prepared_units;
  std::function<void()> after_apply;
  /// A unit that arrives here; gradients by step, with the digest of their
  /// sub-plan.
  struct receiving {
    act::receive_unit asked;
    bool copied = false;
    std::set<std::uint64_t> early; ///< steps that arrived before the copy
    std::map<std::uint64_t, std::uint64_t> gradients;
  };
  std::map<std::uint32_t, receiving> receives;
  std::map<std::uint32_t, receiving> kept; ///< of the former sub-plan, while
                                           ///< the next one is adopted
  struct sending {
    act::send_unit asked;
    std::uint64_t hash = 0;
    std::uint64_t last = ~std::uint64_t{0}; ///< step after which it gives up
  };
  std::map<std::pair<peer_id, std::uint32_t>, sending> sends;
  std::uint64_t reduced_step = 0; ///< the newest under running_digest
  std::set<std::pair<std::uint64_t, std::pair<std::uint32_t, peer_id>>> serves;
  state_version reported{};
  bool alive = true;
  bool over = false;
  bool must_say = false; ///< must report that steps reported here are lost
  bool blobs = false;
  /// On disk, the newest: with the parts that are lacking there.
  std::map<checkpoint_ref, part_set> saved;
  std::set<checkpoint_ref> given_up; ///< according to the core
  std::set<checkpoint_ref> heard;    ///< published, according to its log
  step_record last;                  ///< newest in its log
  std::uint64_t top = 0;             ///< the largest step
  std::set<std::uint64_t> fetched;   ///< checkpoints, under this sub-plan
};

class job_world {
public:
  job_world(std::uint64_t seed, bool trace, job_mutant bug)
    : rng_(seed), rot_rng_(mix(seed, 99)), trace_(trace), seed_(seed),
      bug_(bug) {
    set_up();
  }

  job_sim_result run();

private:
  struct item {
    nanoseconds at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const item& o) const {
      return std::pair(at, order) > std::pair(o.at, o.order);
    }
  };
  using ptr = std::shared_ptr<process>;

  void set_up();
  void after(nanoseconds delay, std::function<void()> what) {
    queue_.push({now_ + delay, ++order_, std::move(what)});
  }
  nanoseconds between(nanoseconds a, nanoseconds b) {
    return a + static_cast<nanoseconds>(rng_.below(b - a + 1));
  }
  void note(std::uint64_t x) { result_.trace = mix(result_.trace, x); }
  void note(double x) { note(std::bit_cast<std::uint64_t>(x)); }
  void check(bool ok, const std::string& what) {
    if (!ok)
      throw std::runtime_error(what + " at " + std::to_string(now_ / ms)
                               + " ms");
  }
  void say(const std::string& what) {
    if (trace_)
      std::fprintf(stderr, "%8.1f %s\n", double(now_) / ms, what.c_str());
  }
  std::string name(const ptr& p) const {
    std::string out("p");
    out.append(std::to_string(p->id[0])).append(".");
    return out.append(std::to_string(p->incarnation));
  }

  void new_view();
  void show_view(const ptr& p, const view& v, const plan& pl);
  void start(std::uint8_t n);
  void crash(std::uint8_t n);
  void tick(const ptr& p);
  void schedule_faults();

  void input(const ptr& p, const job_input& e);
  void do_action(const ptr& p, const job_output& a);
  void later(const ptr& p, nanoseconds delay, std::function<void()> what);

  void on(const ptr& p, const act::halt& a);
  void on(const ptr& p, const act::send& a);
  void on(const ptr& p, const act::adopt& a);
  void on(const ptr& p, const act::apply& a);
  void on(const ptr& p, const act::fetch_unit& a);
  void on(const ptr& p, const act::serve_unit& a);
  void on(const ptr& p, const act::take_copies& a);
  void receive_copy(const ptr& p, const act::take_copies& a, std::uint32_t u,
                    const peer_id& owner);
  void on(const ptr& p, const act::receive_unit& a);
  void receive_arrival(const ptr& p, const act::receive_unit& a);
  void receive_gradients(const ptr& p, const act::receive_unit& a,
                         std::uint64_t step);
  process::sending* sent_by_source(const ptr& p, const act::receive_unit& a);
  void on(const ptr& p, const act::send_unit& a);
  void on(const ptr& p, const act::apply_arrived& a);
  void on(const ptr& p, const act::arrivals_complete& a);
  void apply_unit(const ptr& p, std::uint32_t unit, std::uint64_t step,
                  double norm, const process::receiving* in);
  void applied_one(const ptr& p);
  void on(const ptr& p, const act::revert_unit& a);
  void on(const ptr& p, const act::drop_copies& a);
  void on(const ptr& p, const act::fetch_checkpoint& a);
  /// All parts of it: each on a disk of some member; `here`: of one that runs.
  bool on_some_disk(const checkpoint_ref& c, bool here = false) const {
    return in_stores(c, 1, here);
  }
  part_set all_parts() const {
    return part_set(part_table(config_.blocks).all());
  }
  bool is_rotten(const checkpoint_ref& c) const;
  void check_loss(const act::adopt& a, std::uint64_t tip);
  void on(const ptr& p, const act::initialise_unit& a);
  void on(const ptr& p, const act::restore_unit& a);
  void on(const ptr& p, const act::release& a);
  void on(const ptr& p, const act::run_step& a);
  void on(const ptr& p, const act::run_eval& a);
  void on(const ptr& p, const act::run_checkpoint& a);
  void write_checkpoint(const ptr& p, const act::run_checkpoint& a);
  void on(const ptr& p, const act::step_known& a);
  void on(const ptr& p, const act::committed& a);
  void on(const ptr&, const act::eval_known&) {}
  void on(const ptr& p, const act::checkpoint_known& a);
  void on(const ptr&, const act::checkpoint_failed&) {}
  void on(const ptr&, const act::checkpoints_slow&) {}
  void on(const ptr& p, const act::keep_checkpoint& a);
  void save(const ptr& p, const checkpoint_ref& c, const part_set& parts);
  bool within_reach(const act::keep_checkpoint& a) const;
  bool in_stores(const checkpoint_ref& c, std::size_t stores, bool here) const;
  void on(const ptr& p, const act::checkpoint_given_up& a);
  void on(const ptr& p, const act::checkpoint_awaited& a);
  void on(const ptr& p, const act::begin_anew& a);
  void on(const ptr& p, const act::lost_state& a);
  void on(const ptr& p, const act::went_back& a);
  void on(const ptr& p, const act::state_differs& a);
  void on(const ptr& p, const act::get_blobs& a);
  void on(const ptr& p, const act::waiting& a) {
    say(name(p) + " waits: " + a.why);
  }
  void on(const ptr& p, const act::finished& a);
  void on(const ptr& p, const act::ended& a);

  void send(const ptr& from, const peer_id& to, const job_message& m);
  void check_version(const ptr& p, std::uint32_t unit);
  void check_applied(const state_version& v, double norm);
  void note_two_norms(const state_version& v);
  void schedule_rot();
  void rot_soon();
  bool rot();
  bool rotten(const ptr& p, std::uint32_t unit) const;
  void note_hashes(const ptr& p, const act::run_step& a, ev::prepared& e);
  void look_for_differences(const step_record& r);
  void check_rot() const;
  bool reachable(const state_version& v, const island_place& place);
  std::uint64_t digest_of(const island_place& a) const {
    return digest(config_.id, a);
  }
  const island_place* assignment_of(std::uint64_t d) {
    auto at = assignments_.find(d);
    return at == assignments_.end() ? nullptr : &at->second;
  }

  random_source rng_;
  random_source rot_rng_; ///< separate, so that other seeds do not change
  bool trace_;
  std::uint64_t seed_;
  job_mutant bug_;
  nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<item> queue_;

  std::map<std::uint8_t, ptr> up_; ///< by number; dead ones are replaced
  view view_;
  std::map<std::uint64_t, island_place> assignments_;
  job_config config_;
  bool barrier_ = true;
  std::uint64_t bad_one_in_ = 0; ///< steps that are not finite; 0: none
  std::uint64_t bad_from_ = ~std::uint64_t{0}; ///< all steps from here on
  bool is_bad(std::uint64_t step) const {
    return step >= bad_from_
           || (bad_one_in_ != 0 && mix(step, seed_) % bad_one_in_ == 0);
  }
  std::uint64_t loss_percent_ = 0;
  std::map<std::pair<peer_id, peer_id>, nanoseconds> link_free_;

  std::vector<step_record> chain_;
  std::map<state_version, step_record> known_; ///< all committed ones
  std::map<std::pair<state_version, std::uint32_t>, std::uint64_t> hashes_;
  std::set<std::uint64_t> adopted_;
  std::set<std::uint64_t> rotten_hashes_; ///< and all derived from them
  /// For a step of a sub-plan, the digests of each unit that are due.
  std::map<std::pair<epoch, std::uint64_t>,
           std::map<std::uint32_t, std::set<std::uint64_t>>>
    due_;
  std::set<state_version> two_norms_; ///< with corrupted state
  std::set<state_version> rolled_;    ///< rolled forward to, from seals
  std::set<epoch> differing_, anew_;  ///< sub-plans; requested to begin anew
  struct saved_state {
    std::uint64_t step = 0;
    unit_hashes units;
    std::vector<step_record> chain;
    std::vector<peer_id> writers; ///< by part, if keepers share the parts
  };
  std::map<std::uint64_t, saved_state> checkpoints_;
  std::map<std::uint64_t, bool> rotten_; ///< damaged in all stores; whether
                                         ///< restored
  /// Steps begun, by sub-plan; and each peer's newest (C-3).
  std::map<std::uint64_t, std::set<std::uint64_t>> begun_;
  std::map<std::pair<std::uint64_t, peer_id>, std::uint64_t> begun_by_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<peer_id>>
    unable_; ///< to write it
  /// The copied states, by sub-plan and step.
  std::map<std::pair<std::uint64_t, std::uint64_t>, unit_hashes> snapshots_;
  std::map<std::uint64_t, state_version> resumed_; ///< by digest
  job_sim_result result_;
  bool done_ = false;
  bool drained_ = false;
};

} // namespace shoal::sim
