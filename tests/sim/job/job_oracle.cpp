// tests/sim/job/job_oracle.cpp -- the oracle that makes views and faults.
#include "tests/sim/job/job_world.hpp"

#include <algorithm>

namespace shoal::sim {

void job_world::set_up() {
  config_.id = {7, 0};
  config_.blocks = 1 + static_cast<std::uint32_t>(rng_.below(5));
  config_.microbatches = 2 + static_cast<std::uint32_t>(rng_.below(6));
  config_.total_steps = 10 + rng_.below(40);
  config_.eval_every = rng_.chance(50) ? 1 + rng_.below(9) : 0;
  config_.checkpoint_every = rng_.chance(50) ? 2 + rng_.below(9) : 0;
  config_.checkpoint_at_end = rng_.chance(80);
  config_.digest_every = 4;                 // runs are short
  config_.checkpoint_patience = 5'000 * ms; // peers return sooner
  config_.max_bad_steps = 3;
  // From the seed, so that other seeds do not change.
  if (mix(seed_, 1) % 4 == 0)
    bad_one_in_ = 4;
  if (mix(seed_, 2) % 16 == 0)
    bad_from_ = 5 + mix(seed_, 3) % 20;
  const bool shares = mix(seed_, 4) % 4 == 0; // parts of checkpoints
  barrier_ = rng_.chance(60);
  loss_percent_ = rng_.chance(30) ? 1 + rng_.below(8) : 0;

  job_entry job;
  job.id = config_.id.job;
  job.blocks = config_.blocks;
  job.microbatches = config_.microbatches;
  job.block_flops = 10'000'000'000;
  job.head_flops = 3'000'000'000;
  job.block_state_bytes = 1'000'000;
  job.embed_state_bytes = job.head_state_bytes = 500'000;
  job.activation_bytes = 1000;
  if (rng_.chance(60)) {
    job.want_replicas = 1 + static_cast<std::int32_t>(rng_.below(3));
    job.want_stages = 1 + static_cast<std::int32_t>(rng_.below(3));
  }
  if (rng_.chance(60)) {
    job.want_schedule =
      static_cast<schedule_kind>(1 + static_cast<int>(rng_.below(3)));
    if (*job.want_schedule != schedule_kind::one_f_one_b)
      job.want_virtual = 2;
  }
  if (rng_.chance(50)) // more than a step can move
    job.block_state_bytes = 20'000'000'000 * (1 + rng_.below(4));
  job.want_copies = static_cast<std::uint32_t>(rng_.below(3));
  if (shares)
    job.want_part_keepers = static_cast<std::uint32_t>(3 + mix(seed_, 5) % 5);
  job.want_copy_every = static_cast<std::uint32_t>(rng_.below(4));
  view_.number = 1;
  auto peers = static_cast<std::uint8_t>(1 + rng_.below(8));
  for (std::uint8_t n = 1; n <= peers; ++n)
    start(n);
  job.submitter = up_.begin()->second->id;
  up_.begin()->second->blobs = true;
  view_.jobs.push_back(job);
  new_view();
  schedule_faults();
  schedule_rot();
}

void job_world::schedule_faults() {
  nanoseconds end = 3000 * ms;
  auto peers = static_cast<std::uint8_t>(up_.size());
  std::uint64_t faults = rng_.below(14);
  for (std::uint64_t i = 0; i < faults; ++i) {
    auto n = static_cast<std::uint8_t>(1 + rng_.below(peers));
    nanoseconds at = between(0, end);
    // Often two or more close together, so that sealing and fetching are hit.
    for (std::uint64_t burst = 1 + (rng_.chance(40) ? rng_.below(3) : 0);
         burst > 0; --burst) {
      after(at, [=, this] { crash(n); });
      at += between(0, 40 * ms);
      n = static_cast<std::uint8_t>(1 + n % peers);
    }
  }
  for (std::uint64_t i = rng_.below(3); i > 0; --i) {
    auto n = static_cast<std::uint8_t>(peers + i);
    after(between(0, end), [=, this] {
      if (!up_.contains(n)) {
        start(n);
        new_view();
      }
    });
  }
  if (rng_.chance(10))
    after(between(100 * ms, end), [this] {
      auto at = up_.begin();
      std::advance(at, rng_.below(up_.size()));
      if (!at->second->alive)
        return;
      say("drain asked of " + name(at->second));
      drained_ = true;
      input(at->second, ev::drain{});
    });
}

void job_world::start(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  job_config c = config_;
  c.self = id;
  bool blobs = up_.contains(n) && up_[n]->blobs; // the store is on disk
  std::map<checkpoint_ref, part_set> saved;
  std::set<checkpoint_ref> heard;
  if (up_.contains(n)) {
    saved = up_[n]->saved;
    heard = up_[n]->heard;
    c.last = up_[n]->last;
    if (up_[n]->top <= c.last.version.step + c.checkpoint_every)
      c.top = up_[n]->top;
  }
  ptr p = std::make_shared<process>(id, view_.number + 1, c);
  p->blobs = blobs;
  up_[n] = p;
  member m;
  m.id = {id, view_.number + 1};
  m.device.mflops = 50'000 + 10'000 * rng_.below(5);
  m.device.memory_bytes = 100'000'000'000'000;
  std::erase_if(view_.members, [&](auto& x) { return x.id.peer == id; });
  view_.members.push_back(m);
  std::ranges::sort(view_.members, {}, &member::id);
  say(name(p) + " starts");
  after(between(0, 200 * ms), [=, this] { tick(p); });
  if (blobs)
    input(p, ev::blobs_held{});
  p->saved = saved;
  p->heard = heard;
  p->last = c.last;
  p->top = c.top;
  for (const checkpoint_ref& c : heard)
    input(p, ev::checkpoint_heard{c});
  for (const auto& [c, lacks] : saved)
    input(p, ev::checkpoint_held{c, lacks});
}

void job_world::crash(std::uint8_t n) {
  auto at = up_.find(n);
  if (done_ || at == up_.end() || !at->second->alive)
    return;
  at->second->alive = false;
  ++result_.crashes;
  say(name(at->second) + " CRASHES");
  member_id gone{at->second->id, at->second->incarnation};
  after(between(1 * ms, 200 * ms), [=, this] {
    if (std::erase_if(view_.members, [&](auto& m) { return m.id == gone; }))
      new_view();
  });
  after(between(50 * ms, 800 * ms), [=, this] {
    start(n); // replaces the dead member, if it is still in the view
    new_view();
  });
}

void job_world::new_view() {
  ++view_.number;
  ++result_.views;
  plan pl = make_plan(view_);
  for (const assignment& job : pl.jobs) { // none once it has ended
    const island_place& a = job.islands.at(config_.id.index);
    assignments_[digest_of(a)] = a;
    if (trace_) {
      std::string s = "view " + std::to_string(view_.number) + " since "
                      + std::to_string(a.since) + ":";
      for (auto& r : a.replicas) {
        s += " [";
        for (auto& st : r.stages)
          s += " p" + std::to_string(st.lead().peer[0]) + ":"
               + std::to_string(st.first_block) + "-"
               + std::to_string(st.last_block);
        s += " ]";
      }
      for (auto& f : a.followers)
        s += " f" + std::to_string(f.where.member.peer[0]) + ":"
             + std::to_string(f.first_unit) + "-" + std::to_string(f.last_unit);
      for (auto& f : a.arriving)
        s += " to" + std::to_string(f.where.member.peer[0]) + ":"
             + std::to_string(f.first_unit) + "-" + std::to_string(f.last_unit);
      say(s);
    }
  }
  for (auto& [n, p] : up_)
    if (find_member(view_, p->id))
      after(between(0, 30 * ms),
            [=, this, p = p, v = view_] { show_view(p, v, pl); });
  view_.previous = pl.jobs;
}

void job_world::show_view(const ptr& p, const view& v, const plan& pl) {
  if (!p->alive || p->over || v.number <= p->digest_seen)
    return;
  const member* m = find_member(v, p->id);
  if (!m || m->id.incarnation != p->incarnation)
    return;
  p->digest_seen = v.number; // newest view shown to it
  ev::view_changed e{v.number, std::nullopt, {}};
  e.calm = p->core.place() && undisturbed(v, *p->core.place());
  for (const assignment& job : pl.jobs)
    e.place = job.islands.at(config_.id.index);
  for (const member& x : v.members)
    e.members.push_back(x.id.peer);
  for (const auto& [number, other] : up_)
    if (!find_member(v, other->id))
      e.former.push_back(other->id);
  if (p->blobs)
    input(p, ev::blobs_held{});
  input(p, e);
}

} // namespace shoal::sim
