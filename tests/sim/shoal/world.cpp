// tests/sim/shoal/world.cpp -- the run of a simulated shoal, and its final
// checks.
#include "tests/sim/shoal/world.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/planning/detours.hpp"
#include "tests/sim/shoal/disk.hpp"
#include "tests/sim/shoal/mutants.hpp"
#include "tests/sim/shoal/node.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shoal::sim {

namespace fs = std::filesystem;
namespace cl = core::cluster;

namespace {

constexpr nanoseconds birth_time = 15 * second;
constexpr nanoseconds rest_time = 3 * second;
/// The seeds with a hang while data are fetched or state is restored.
constexpr std::uint64_t diverging_seeds = 4, diverging_seed = 1;
constexpr std::uint64_t hang_seeds = 8, hang_seed = 7, slow_record_seed = 6;

/// Relative tolerance of losses and norms compared to those of one peer:
/// replicas add in another order, and the steps accumulate the difference.
constexpr double tolerance = 1e-4;

/// Equal to the bit, or neither is a number.
bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool near(double a, double b) {
  return same_number(a, b) || std::abs(a / b - 1) < tolerance;
}

shoal_world* active_world = nullptr;

} // namespace

shoal_world* shoal_world::active() {
  return active_world;
}

shoal_world::shoal_world(const shoal_options& o, std::uint64_t kind)
  : options_(o), random_(o.seed), net_(o.seed), folder_("shoal-sim"),
    hang_random_(o.seed ^ 0x68616e67),
    slow_records_(!o.calm && o.seed % hang_seeds == slow_record_seed),
    record_random_(o.seed ^ 0x7265636f), urgent_random_(o.seed ^ 0x75726765),
    cancel_random_(o.seed ^ 0x63616e63),
    outer_(std::exchange(active_world, this)) {
  for (int job = 0; job < o.jobs; ++job) {
    const bool drawn = kind == training::kinds;
    const std::uint64_t layout = drawn ? random_.below(8) : 0;
    const std::uint64_t what = drawn ? random_.below(training::kinds) : kind;
    training& work = works_.emplace_back(
      what, layout, o.seed % diverging_seeds == diverging_seed);
    work.entry.id += 0x100 * std::uint64_t(job);
    work.entry.want_islands = std::uint32_t(o.islands);
  }
  for (const training& work : works_)
    watch(work);
  const int n =
    o.peers > 0 ? std::min(o.peers, nodes_max) : 3 + int(below(nodes_max - 2));
  machines_.resize(std::size_t(n));
  for (int i = 0; i < n; ++i) {
    machine& m = machines_[std::size_t(i)];
    m.number = i;
    for (auto& b : m.id)
      b = std::uint8_t(random_.next());
    m.address = "m" + std::to_string(i) + ":1";
    m.folder = folder_.path() / ("m" + std::to_string(i));
    m.mflops = 50'000 + 10'000 * below(6);
    m.pace = chance(0.8) ? 1 : 3;
    m.witness = n > 3 && i == n - 1 && chance(0.2);
    m.voter = n < 4 || i > 0 || chance(0.8);
  }
  if (!o.calm && o.seed % hang_seeds == hang_seed)
    moving_hang_ = hang_random_.below(2) == 0 ? moving_hang::fetching
                                              : moving_hang::restoring;
  auto& f = net_.settings();
  f.delay_min = std::chrono::microseconds(50);
  f.delay_max = std::chrono::microseconds(100 + 100 * below(20));
}

void shoal_world::watch(const training& work) {
  for (std::uint32_t i = 0; i < work.entry.want_islands; ++i)
    histories_.try_emplace(
      core::island_id{work.entry.id, i},
      history::shape{
        std::uint64_t(work.run.steps), work.entry.blocks,
        work.entry.microbatches, std::uint64_t(work.run.checkpoint_interval),
        work.windows(), [this](int n) { return machines_[std::size_t(n)].id; },
        [this](const core::peer_id& id) { return number_of(id); },
        [&work](std::span<const std::int32_t> t) { return work.window_of(t); },
        work.entry.want_islands, options_.cancel},
      [this](const std::string& why) { fail(why); },
      [this](int n, const std::string& what) { say(n, what); },
      [this](std::uint64_t a, std::uint64_t b) { note_bits(a, b); });
}

history& shoal_world::past_of(std::uint64_t digest) {
  return histories_.at(places_.at(digest));
}

const training& shoal_world::work(core::job_id job) const {
  return *std::ranges::find(works_, job,
                            [](const training& w) { return w.entry.id; });
}

shoal_world::~shoal_world() {
  machines_.clear();
  active_world = outer_;
}

void shoal_world::fail(const std::string& what) {
  if (!failure_.empty())
    return;
  failure_ = what;
  say(-1, "FAILS: " + what);
}

void shoal_world::say(int node, const std::string& what) {
  if (!options_.print)
    return;
  if (node < 0)
    std::printf("%9.3f    %s\n", double(now()) / 1e9, what.c_str());
  else
    std::printf("%9.3f m%d %s\n", double(now()) / 1e9, node, what.c_str());
}

int shoal_world::number_of(const core::peer_id& id) const {
  for (const machine& m : machines_)
    if (m.id == id)
      return m.number;
  return -1;
}

const core::plan& shoal_world::plan_of(const core::view& v) {
  constexpr std::size_t kept = 8;
  for (const auto& [view, plan] : plans_)
    if (view.number == v.number && view == v) {
      if (chance(0.05) && !changes_plans()
          && core::make_plan(v).jobs != plan.jobs)
        fail("two plans of one view");
      return plan;
    }
  plans_.emplace_front(v, core::make_plan(v));
  mutate(*this, v, plans_.front().second);
  check_places(v, plans_.front().second);
  for (const core::assignment& a : plans_.front().second.jobs)
    for (std::uint32_t i = 0; i < a.islands.size(); ++i)
      places_[core::digest({a.job, i}, a.islands[i])] = {a.job, i};
  if (plans_.size() > kept)
    plans_.pop_back();
  return plans_.front().second;
}

/// A-1, and what of A-2 shows here: an island's place gets another number if it
/// has changed or is to begin anew, and only then.
void shoal_world::check_places(const core::view& v, const core::plan& p) {
  for (const core::assignment& a : p.jobs) {
    const core::job_entry* job = core::find_job(v, a.job);
    const auto before =
      std::ranges::find(v.previous, a.job, &core::assignment::job);
    if (before == v.previous.end() || !core::is_sound(*job, *before))
      continue;
    for (std::uint32_t i = 0; i < a.islands.size(); ++i) {
      const core::island_place& was = before->islands[i];
      core::island_place now = a.islands[i];
      const bool same_number = now.since == was.since;
      now.since = was.since;
      const bool anew = marked(*job, core::mark_kind::retried, i) >= was.since;
      if (same_number && now != was)
        fail("A-1: two places of an island have one number");
      if (!same_number && now == was && !anew)
        fail("A-2: a place gets another number, though nothing of it changed");
    }
  }
}

std::vector<std::uint64_t>
shoal_world::digests_beside(std::uint64_t digest) const {
  std::vector<std::uint64_t> out;
  const core::island_id& id = places_.at(digest);
  for (const auto& [other, of] : places_)
    if (of != id)
      out.push_back(other);
  return out;
}

void shoal_world::arrived(const transfer& t, std::uint64_t hash) {
  const auto at = bytes_.find(t);
  if (at == bytes_.end())
    return fail("a transfer arrived that nobody sent");
  if (at->second != hash)
    fail("a transfer arrived with other bytes than were sent");
  bytes_.erase(at);
}

void shoal_world::start(int i) {
  machine& m = machines_[std::size_t(i)];
  if (m.node)
    return;
  ++m.starts;
  say(i, "starts");
  m.node = std::make_unique<sim_node>(*this, m);
  announce(i, m.starts);
}

void shoal_world::kill(int i, bool silent) {
  machine& m = machines_[std::size_t(i)];
  if (!m.node)
    return;
  say(i, silent ? "is killed, unnoticed" : "is killed");
  ++result_.kills;
  m.node->die(silent);
  m.node.reset();
  if (chance(0.3))
    tear_journals(m.folder / "jobs", random_.next());
  for (auto& [id, past] : histories_)
    past.died(i, logged_checkpoints(m.folder / "jobs", id));
  for (auto at = bytes_.begin(); at != bytes_.end();)
    at = std::get<1>(at->first) == i ? bytes_.erase(at) : std::next(at);
}

void shoal_world::doom(int i) {
  if (std::ranges::find(doomed_, i) == doomed_.end())
    doomed_.push_back(i);
}

bool shoal_world::may_rot(int node, const core::blob_digest& d) {
  const std::string name = core::to_hex(d);
  const bool others = std::ranges::any_of(machines_, [&](const machine& m) {
    return m.number != node
           && fs::exists(m.folder / "blobs" / name.substr(0, 2)
                         / name.substr(2));
  });
  return others && rotten_.insert(d).second;
}

void shoal_world::kill_doomed() {
  for (int i : std::exchange(doomed_, {})) {
    kill(i, chance(0.5));
    after(chance(0.5) ? between(millisecond, 30 * millisecond)
                      : between(20 * millisecond, 3 * second),
          [this, i] { start(i); });
  }
}

/// By multicast, once a second.
void shoal_world::announce(int i, std::uint64_t start) {
  const machine& m = machines_[std::size_t(i)];
  if (!m.node || m.starts != start)
    return;
  for (const machine& other : machines_)
    if (other.number != i && !cuts_.contains({i, other.number})
        && !chance(lost))
      after(
        between(millisecond / 10, millisecond), [this, &m, to = other.number] {
          if (alive(to))
            machines_[std::size_t(to)].node->enter([this, &m, to] {
              machines_[std::size_t(to)].node->tell(cl::discovered{m.address});
            });
        });
  after(second, [this, i, start] { announce(i, start); });
}

/// Memory for all units: the gradients, and the gradients that leave; state
/// that arrives or is sent, three arrays each; copies of two versions; and the
/// parts of a reduction, from and to each other replica. In addition, what all
/// microbatches of a step leave between two stages, in both directions, at both
/// ends of each.
std::size_t shoal_world::buffer_bytes_max() const {
  constexpr std::size_t state = 3;
  const std::size_t peers = machines_.size();
  const std::size_t arrays =
    2 + 2 * state + history::copied_versions_max * state + 2 * (peers - 1);
  std::size_t all = 0;
  for (const training& work : works_) {
    const std::size_t hidden =
      std::size_t(work.run.sequences_per_step() * work.run.seq_len
                  * work.run.model.hidden_size)
      * sizeof(float);
    all += arrays * work.parameter_bytes() + 4 * peers * hidden;
  }
  return all * std::size_t(options_.islands);
}

bool shoal_world::all_in_one_view() const {
  const core::view* first = nullptr;
  for (const machine& m : machines_) {
    const core::view* v = m.node ? m.node->view().get() : nullptr;
    if (v == nullptr || v->members.size() != machines_.size())
      return false;
    for (const core::member& x : v->members)
      if (x.state != core::member_state::active)
        return false;
    first = first ? first : v;
    if (!(*v == *first))
      return false;
  }
  return true;
}

bool shoal_world::step_until(nanoseconds time,
                             const std::function<bool()>& done) {
  nanoseconds look_at = now();
  while (failure_.empty() && net_.step()) {
    ++result_.events;
    if (!doomed_.empty())
      kill_doomed();
    if (!checker_.failure().empty())
      fail(checker_.failure());
    const nanoseconds t = now();
    if (t >= look_at) {
      look_at = t + 20 * millisecond;
      if (done())
        return true;
      if (t >= time)
        return false;
    }
  }
  return false;
}

void shoal_world::submit(const training& work) {
  machine& m = machines_[below(machines_.size())];
  m.node->enter([&] {
    core::job_entry job = work.entry;
    job.data = m.node->put(work.text);
    job.submitter = m.id;
    m.node->tell(cl::submit_job{job});
  });
}

/// A user asks nodes to end the job, until one of them shows that it is to end.
void shoal_world::cancel(core::job_id job) {
  const machine& m = machines_[cancel_random_.below(machines_.size())];
  const core::view* v = m.node ? m.node->view().get() : nullptr;
  if (const core::job_entry* j = v ? core::find_job(*v, job) : nullptr) {
    if (j->state != core::job_state::running || core::is_draining(*j))
      return;
    say(m.number, "is asked to end the job");
    m.node->enter([&m, job] { m.node->tell(cl::drain_job{job}); });
  }
  after(second, [this, job] { cancel(job); });
}

bool shoal_world::over(std::string* why) const {
  for (const machine& m : machines_) {
    const std::string name = "m" + std::to_string(m.number);
    if (!m.node || m.node->hangs()) {
      *why = name + (m.node ? " hangs" : " is dead");
      return false;
    }
    const core::view* v = m.node->view().get();
    for (const training& work : works_) {
      const core::job_entry* job =
        v ? core::find_job(*v, work.entry.id) : nullptr;
      if (job == nullptr || job->state == core::job_state::running) {
        *why = job ? "the job still runs for " + name
                   : name + " does not know the job";
        return false;
      }
    }
  }
  return true;
}

/// Whether the peers that know the job cannot agree on anything any more: a
/// quorum of their view has gone on without it. A member that was stopped may
/// agree to its own expulsion when it wakes up, and then be in another shoal
/// before the others have heard of that view. Some peer always knows the job,
/// as no disk is ever lost.
bool shoal_world::quorum_gone() {
  const core::view* known = nullptr;
  for (const machine& m : machines_) {
    const core::view* v = nullptr;
    if (m.node)
      v = &m.node->member().current();
    else if (m.disk.view) // it is restarting
      v = &m.disk.view->current;
    if (v && core::find_job(*v, works_.front().entry.id)
        && (known == nullptr || v->number > known->number))
      known = v;
  }
  if (known == nullptr) {
    fail("the job is forgotten by all");
    return false;
  }
  std::vector<core::peer_id> ids;
  for (const machine& m : machines_)
    if (m.node && m.node->member().current().shoal == known->shoal)
      ids.push_back(m.id);
  return !core::is_quorum(*known, ids);
}

/// Checks the state when the run is over and idle.
void shoal_world::check_end() {
  for (const machine& m : machines_) {
    if (!m.node)
      continue; // it was asked to leave before the faults stopped, and has left
    // On a peer without a part in the job, the last piece of work, its
    // clean-up, may be the first that hangs.
    if (const std::string left = m.node->left_over();
        !left.empty() && !m.node->hangs())
      return fail("after the end " + left + " on m" + std::to_string(m.number));
  }
  for (const training& work : works_)
    for (std::uint32_t i = 0; i < work.entry.want_islands; ++i)
      check_end(work, i);
}

void shoal_world::check_end(const training& work, std::uint32_t island) {
  history& past = histories_.at({work.entry.id, island});
  if (const std::string why = past.finished(); !why.empty())
    return fail(why);
  for (const machine& m : machines_) {
    if (!m.node)
      continue;
    for (const runtime::job_event& e :
         m.node->journal().read_all(work.entry.id))
      if (e.kind == runtime::job_event_kind::step && e.island == island) {
        const core::step_record* r = past.find({e.step, e.epoch});
        if (r == nullptr || !same_number(r->loss, e.loss)
            || !same_number(r->grad_norm, e.grad_norm))
          return fail("H-1: the journal of m" + std::to_string(m.number)
                      + " has another step " + std::to_string(e.step));
      }
  }
  if (island > 0) {
    const auto& first = histories_.at({work.entry.id, 0}).chain();
    if (!first.empty()
        && std::ranges::equal(past.chain(), first, {}, &core::step_record::data,
                              &core::step_record::data))
      fail("two islands have used the same samples");
    return;
  }
  if (options_.peers == 1)
    return;
  const auto& want = alone(work);
  const auto& got = past.chain();
  const std::size_t steps =
    options_.cancel ? std::min(want.size(), got.size()) : want.size();
  for (std::size_t i = 0; i < steps; ++i) {
    if (got[i].data == 0 || got[i].data != want[i].data)
      return fail("step " + std::to_string(i + 1)
                  + " used other samples than those of one peer");
    if (!near(got[i].loss, want[i].loss)
        || !near(got[i].grad_norm, want[i].grad_norm))
      return fail("step " + std::to_string(i + 1) + " has loss "
                  + std::to_string(got[i].loss) + " and norm "
                  + std::to_string(got[i].grad_norm) + ", one peer has "
                  + std::to_string(want[i].loss) + " and "
                  + std::to_string(want[i].grad_norm));
  }
}

const std::vector<core::step_record>& shoal_world::alone(const training& work) {
  static std::map<std::pair<std::uint64_t, bool>,
                  std::vector<core::step_record>>
    known;
  const std::pair key(work.kind, work.diverges);
  if (auto at = known.find(key); at != known.end())
    return at->second;
  shoal_options o;
  o.seed = work.diverges ? diverging_seed : 0;
  o.peers = 1;
  o.calm = true;
  shoal_world world(o, work.kind);
  const shoal_result r = world.run();
  SHOAL_ASSERT(r.failure.empty());
  return known[key] = world.histories_.begin()->second.chain();
}

shoal_result shoal_world::run() {
  std::string why;
  for (const machine& m : machines_)
    after(between(0, 300 * millisecond), [this, i = m.number] { start(i); });
  if (!step_until(birth_time, [this] { return all_in_one_view(); }))
    fail("the shoal is not born in time");
  else {
    if (moving_hang_ == moving_hang::fetching)
      hang_while_fetching();
    for (const training& work : works_)
      submit(work);
  }
  const auto known = [this] {
    return std::ranges::all_of(machines_, [this](const machine& m) {
      return std::ranges::all_of(works_, [&](const training& work) {
        return core::find_job(*m.node->view(), work.entry.id) != nullptr;
      });
    });
  };
  if (!step_until(now() + 5 * second, known))
    fail("the job is not agreed on in time");
  if (options_.cancel)
    for (const training& work : works_)
      after(nanoseconds(cancel_random_.below(6 * second)),
            [this, id = work.entry.id] { cancel(id); });
  if (!options_.calm && moving_hang_ != moving_hang::fetching) {
    faults_ = true;
    nanoseconds end = now() + between(2 * second, 15 * second);
    if (moving_hang_ == moving_hang::restoring) // while the job is still
                                                // running
      end = now() + second / 2 + nanoseconds(hang_random_.below(4 * second));
    after(between(0, 500 * millisecond), [this] { fault(); });
    step_until(end, [] { return false; });
    say(-1, "the faults stop");
    if (moving_hang_ == moving_hang::restoring)
      hang_after_death_of_all();
    else
      heal();
  }
  const nanoseconds stopped = now();
  const nanoseconds most =
    finish_time + (moving_hang_ == moving_hang::none ? 0 : hang_time);
  result_.stuck = !step_until(stopped + most, [&] { return over(&why); })
                  && failure_.empty() && quorum_gone();
  if (!result_.stuck && !over(&why)) {
    for (const auto& [id, past] : histories_)
      why += " (" + past.stand() + ")";
    fail("the run has not ended in time: " + why);
  }
  result_.ended_after = now() - stopped;
  for (machine& m : machines_) // blobs that no peer needed
    if (m.node)
      m.node->wake_disk();
  step_until(now() + rest_time, [] { return false; });
  if (failure_.empty() && !result_.stuck)
    check_end();
  result_.failure = failure_;
  result_.trace = trace_;
  result_.order = order_;
  result_.simulated = now();
  result_.views = checker_.views();
  for (const auto& [id, past] : histories_) {
    result_.steps += past.steps();
    result_.losses += past.losses();
  }
  return result_;
}

shoal_result run_shoal(const shoal_options& options) {
  return shoal_world(options).run();
}

} // namespace shoal::sim
