// tests/sim/shoal/history.cpp -- the committed steps and the state behind them.
#include "tests/sim/shoal/history.hpp"

#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/plan.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shoal::sim {

using namespace core;
namespace act = core::job_action;
namespace ev = core::job_event;

namespace {

std::string text(const state_version& v) {
  return std::to_string(v.step) + "/" + std::to_string(v.made);
}

} // namespace

void history::stepped(int node, const job_core& core, const job_input& in,
                      const job_actions& out) {
  took(node, core, in);
  for (const job_output& a : out)
    if (const auto* r = std::get_if<act::restore_unit>(&a))
      restoring_ = r->checkpoint;
  for (const job_output& a : out)
    std::visit([&](const auto& x) { on(node, core, x); }, a);
  restoring_.reset();
  state& s = nodes_[node];
  if (s.core != &core)
    return; // its job has left the view, and a newer core runs the job again
  s.phase = core.now_in();
  s.step = core.step_in_progress();
  if (core.under().digest != s.told) {
    s.told = core.under().digest;
    s.still = false;
  }
}

void history::took(int node, const job_core& core, const job_input& in) {
  state& s = nodes_[node];
  if (const auto* v = std::get_if<ev::view_changed>(&in)) {
    s.members = v->members;
    if (v->place) {
      s.core = &core;
      const std::uint64_t now = digest(core.id(), *v->place);
      const auto [at, fresh] = digests_.try_emplace(v->place->since, now);
      check(at->second == now, "H-1: two sub-plans of one epoch");
      places_[now] = *v->place;
    }
  } else if (const auto* d = std::get_if<ev::halted>(&in)) {
    s.still = s.still || d->digest == s.told;
  } else if (const auto* p = std::get_if<ev::prepared>(&in)) {
    if (places_.contains(p->digest))
      prepared_[{p->step, places_[p->digest].since}].insert(node);
  } else if (const auto* l = std::get_if<ev::loaded>(&in)) {
    if (core.held().contains(l->unit))
      check_unit(node, core, l->unit);
  } else if (const auto* copied = std::get_if<ev::arrival_copied>(&in)) {
    if (core.held().contains(copied->unit))
      check_unit(node, core, copied->unit);
  } else if (const auto* one = std::get_if<ev::arrival_applied>(&in)) {
    if (core.held().contains(one->unit))
      check_unit(node, core, one->unit);
  } else if (std::holds_alternative<ev::applied>(in)) {
    for (std::uint32_t u : s.applying)
      if (core.held().contains(u))
        check_unit(node, core, u);
    s.applying.clear();
  } else if (const auto* c = std::get_if<ev::checkpointed>(&in)) {
    if (c->known)
      saved_.try_emplace(c->manifest, s.writing[c->step]);
  } else if (const auto* h = std::get_if<ev::checkpoint_held>(&in)) {
    // It may belong to a sub-plan that was over before it was written.
    if (auto at = s.writing.find(h->checkpoint.step); at != s.writing.end())
      saved_.try_emplace(h->checkpoint.manifest, at->second);
  }
}

void history::unit_is(int node, std::uint32_t unit, std::uint64_t bits) {
  note_(unit, bits);
  nodes_[node].bits[unit] = bits;
}

void history::check_unit(int node, const job_core& core, std::uint32_t unit) {
  version v = core.held().at(unit);
  if (auto at = same_.find(v); at != same_.end())
    v = at->second;
  const std::uint64_t bits = nodes_[node].bits[unit];
  const auto [at, fresh] = bits_.try_emplace({v, unit}, bits);
  check(at->second == bits, [&] {
    return "H-3: m" + std::to_string(node) + " holds unit "
           + std::to_string(unit) + " at " + text(v)
           + " with other bits than the first holder";
  });
}

std::string history::stand() const {
  std::string out;
  for (const auto& [node, s] : nodes_) {
    const auto at = places_.find(s.told);
    out += (out.empty() ? "m" : ", m") + std::to_string(node) + " "
           + to_text(s.phase) + " step " + std::to_string(s.step)
           + " of sub-plan "
           + (at == places_.end() ? "none" : std::to_string(at->second.since));
  }
  return out;
}

const island_place* history::told(int node) const {
  const auto state = nodes_.find(node);
  if (state == nodes_.end())
    return nullptr;
  const auto at = places_.find(state->second.told);
  return at == places_.end() ? nullptr : &at->second;
}

void history::uses_plan(int node, std::uint64_t digest) {
  const state& s = nodes_[node];
  check(!s.still || digest == s.told, [&] {
    return "H-4: m" + std::to_string(node)
           + " moves tensors under a sub-plan that it has left";
  });
}

void history::sends_tokens(std::uint64_t digest, std::uint32_t sequence,
                           std::span<const std::byte> tokens) {
  std::vector<std::int32_t> ids(tokens.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), tokens.data(), tokens.size());
  const std::uint64_t window = shape_.window_of(ids);
  check(window < shape_.windows, "H-5: what is sent is no window of the text");
  const auto [at, fresh] = sent_.try_emplace({digest, sequence}, window);
  check(at->second == window, "H-5: a microbatch with two contents");
}

void history::check_samples(const version& v) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t m = 0; m < shape_.microbatches; ++m) {
    auto at = sent_.find(
      {digests_[v.made], std::uint32_t(v.step) * shape_.microbatches + m});
    if (at == sent_.end())
      return fail_("H-5: a microbatch of step " + text(v) + " was never sent");
    check(seen.insert(at->second).second,
          [&] { return "H-5: a sample twice in step " + text(v); });
  }
}

/// Whether the seals of a sub-plan have the version, or what is needed to reach
/// it.
bool history::reachable(const version& v, std::uint64_t digest) const {
  const auto seals = seals_.find(digest);
  if (seals == seals_.end())
    return false;
  // To roll forward needs the step's norm, which only votes contain: receivers
  // of arriving units have gradients, but no votes.
  std::vector<const vote*> votes;
  for (const auto& [peer, s] : seals->second)
    if (s.prepared == v)
      votes.push_back(&s.prepared_vote);
  const bool norm =
    tally(votes, shape_.blocks, shape_.microbatches).has_value();
  for (std::uint32_t u = 0; u < shape_.blocks + 2; ++u) {
    const bool found = std::ranges::any_of(seals->second, [&](const auto& s) {
      return std::ranges::any_of(
               s.second.units,
               [&](const held_unit& h) {
                 return h.unit == u
                        && (h.applied == v
                            || (norm && h.prepared && s.second.prepared == v
                                && h.applied.step + 1 == v.step));
               })
             || std::ranges::any_of(s.second.copies, [&](const unit_copy& c) {
                  return c.unit == u && c.version == v;
                });
    });
    if (!found)
      return false;
  }
  return true;
}

void history::on(int node, const job_core& core, const act::adopt& a) {
  state& s = nodes_[node];
  check(a.digest == s.told, "H-4: another sub-plan is adopted than was told");
  s.must_say = s.reported.step > a.from.step;
  const auto [at, fresh] = resumed_.try_emplace(a.digest, a.from);
  check(at->second == a.from, "H-1: sealers resume at different versions");
  if (!fresh)
    return;
  const bool late = adopted_.upper_bound(a.place.since) != adopted_.end();
  adopted_[a.place.since] = a.digest;
  say_(node, "adopts sub-plan of epoch " + std::to_string(a.place.since)
               + ", resuming at " + text(a.from));
  const std::uint64_t tip = chain_.empty() ? 0 : chain_.back().version.step;
  const bool anew = a.from.made == a.place.since && a.from.step == 0;
  if (anew)
    same_[a.from] = {0, 0};
  if (late)
    return; // the peer woke up late; the others have gone on
  if (a.from.step < tip) {
    check(!reachable(chain_.back().version, a.digest), [&] {
      return "H-1: step " + std::to_string(tip)
             + " is given up though all of it is there";
    });
    ++losses_;
    check_loss(node, core, a, tip);
  }
  if (a.from.made == a.place.since && a.from.step > 0) { // from a checkpoint
    checkpoint_ref from = restoring_.value_or(checkpoint_ref{});
    if (!restoring_)
      for (const auto& [peer, seal] : seals_[a.digest])
        for (const checkpoint_ref& c : seal.heard)
          if (c.step == a.from.step && saved_.contains(c.manifest))
            from = std::max(from, c);
    const auto kept = saved_.find(from.manifest);
    if (kept == saved_.end())
      return fail_("H-1: resumes from a checkpoint that nobody wrote");
    chain_ = kept->second;
    if (!chain_.empty()) {
      const version was = chain_.back().version;
      same_[a.from] = same_.contains(was) ? same_[was] : was;
    }
    return;
  }
  while (!chain_.empty() && chain_.back().version.step > a.from.step)
    chain_.pop_back();
  const bool remembered = std::ranges::any_of(core.seals(), [&](const auto& s) {
    return s.second.last.version.step < a.from.step
           && age(s.second.last.version) > age(a.from);
  });
  if (tip == 0 && !remembered && known_.contains(a.from)) {
    // All had lost it, begun anew, and made no progress: a peer that was
    // stopped meanwhile has it, and no sealer remembers that it was given up.
    // If there were a newer step, going back would be a fork.
    chain_ = chain_to(a.from);
    return;
  }
  check(a.from.step <= tip + 1, "H-1: rolls forward by more than one step");
}

/// Removes what it was told a moment before and its disk had not stored.
void history::died(int node, const std::set<blob_digest>& logged) {
  nodes_.erase(node);
  std::erase_if(told_of_[node], [&](const checkpoint_ref& c) {
    return !logged.contains(c.manifest);
  });
}

/// Every dead peer returns with its disk: the newest checkpoint in this history
/// of which any sealer, or a present member of another island, was ever told
/// bounds the loss. Steps are not counted if a cut has kept their news from all
/// present peers, since no peer could know of their loss. One that the view has
/// expelled learns of the sub-plan, too, but is not present.
void history::check_loss(int node, const job_core& core, const act::adopt& a,
                         std::uint64_t tip) {
  std::uint64_t known = 0;
  for (const auto& [peer, seal] : core.seals())
    known =
      std::max({known, seal.last.version.step, seal.known.step, seal.top});
  std::set<int> asked;
  for (const member_id& m : a.place.sealers)
    asked.insert(number_of(m.peer));
  const std::vector<peer_id>& members = nodes_[node].members;
  for (const auto& [other, s] : nodes_)
    if (shape_.islands > 1 && s.told == a.digest
        && std::ranges::find(members, id_of(other)) != members.end()
        && asked.insert(other).second)
      for (const checkpoint_ref& c : told_of_[other])
        known = std::max(known, c.step);
  tip = std::min(tip, known);
  std::uint64_t newest = 0;
  for (const int other : asked)
    for (const checkpoint_ref& c : told_of_[other]) {
      const auto saved = saved_.find(c.manifest);
      if (saved == saved_.end() || given_up_.contains(c.manifest)
          || c.step > tip || saved->second.empty())
        continue;
      const version v = saved->second.back().version;
      if (chain_[c.step - 1].version == v)
        newest = std::max(newest, c.step);
    }
  check(a.from.step >= newest || tip <= a.from.step + shape_.interval, [&] {
    return "H-7: goes back from step " + std::to_string(tip) + " to "
           + std::to_string(a.from.step) + " though a checkpoint of step "
           + std::to_string(newest) + " was published";
  });
}

void history::on(int node, const job_core&, const act::checkpoint_known& a) {
  told_of_[node].insert(a.checkpoint);
}

void history::on(int, const job_core&, const act::checkpoint_given_up& a) {
  given_up_.insert(a.checkpoint.manifest);
}

/// The steps up to `v`, which is committed.
std::vector<step_record> history::chain_to(version v) const {
  std::vector<step_record> chain;
  for (auto at = known_.find(v); at != known_.end(); at = known_.find(v)) {
    chain.push_back(at->second);
    const version from = resumed_.at(digests_.at(v.made));
    v = from.step + 1 == v.step ? from : version{v.step - 1, v.made};
    if (const auto was = same_.find(v); was != same_.end())
      v = was->second;
  }
  std::ranges::reverse(chain);
  return chain;
}

void history::on(int node, const job_core&, const act::lost_state& a) {
  say_(node, "lost state: " + std::to_string(a.last) + " -> "
               + std::to_string(a.resume));
  nodes_[node].must_say = false;
  nodes_[node].reported.step = a.kept;
}

void history::on(int node, const job_core&, const act::went_back& a) {
  say_(node, "went back: " + std::to_string(a.last) + " -> "
               + std::to_string(a.kept));
  nodes_[node].must_say = false;
  nodes_[node].reported.step = a.kept;
}

const step_record* history::find(const version& v) const {
  const auto at = known_.find(v);
  return at == known_.end() ? nullptr : &at->second;
}

void history::on(int node, const job_core&, const act::step_known& a) {
  state& s = nodes_[node];
  const version& v = a.record.version;
  check(age(v) > age(s.reported), [&] {
    return "H-1: m" + std::to_string(node) + " reports " + text(v) + " after "
           + text(s.reported);
  });
  s.reported = v;
}

void history::on(int node, const job_core&, const act::committed& a) {
  const step_record& r = a.record;
  note_(std::bit_cast<std::uint64_t>(r.loss),
        std::bit_cast<std::uint64_t>(r.grad_norm));
  note_(r.version.step, r.data);
  const auto [at, fresh] = known_.try_emplace(r.version, r);
  step_record made_by_others = r;
  made_by_others.replicas = at->second.replicas;
  made_by_others.stages = at->second.stages;
  check(at->second == made_by_others, [&] {
    return "H-1: step " + text(r.version) + " has two losses, norms or samples";
  });
  if (!fresh)
    return;
  say_(node, "step " + text(r.version) + " committed");
  ++committed_;
  const auto made = digests_.find(r.version.made);
  if (made == digests_.end())
    return fail_("H-1: a step of an unknown sub-plan");
  const island_place& place = places_[made->second];
  // Rolled forward to: all gradients were there, and need no vote.
  const bool resumed = std::ranges::any_of(
    resumed_, [&](const auto& x) { return x.second == r.version; });
  for (const peer_id& p : participants_of(place))
    check(resumed || prepared_[r.version].contains(number_of(p)), [&] {
      return "H-2: step " + text(r.version) + " is committed before m"
             + std::to_string(number_of(p)) + " is ready";
    });
  check_samples(r.version);
  // A peer that wakes up late may learn of a step that the others, who went on
  // without it, could not reach; their newest may be the step before by then.
  const auto next = adopted_.upper_bound(r.version.made);
  const std::uint64_t tip = chain_.empty() ? 0 : chain_.back().version.step;
  if (next != adopted_.end() && (!resumed || r.version.step != tip + 1)) {
    check(!reachable(r.version, next->second), [&] {
      return "H-1: step " + text(r.version)
             + " was given up though it was there";
    });
    return;
  }
  check(r.version.step == tip + 1, [&] {
    return "H-1: step " + text(r.version) + " is committed after "
           + std::to_string(tip);
  });
  chain_.push_back(r);
}

void history::on(int node, const job_core& core, const act::run_step& a) {
  state& s = nodes_[node];
  if (s.to_end)
    check(++s.begun_to_end[a.digest] <= 1,
          "H-8: m" + std::to_string(node)
            + " goes on with a job that is to end");
  check(a.digest == s.told, "H-4: a step runs under an old sub-plan");
  check(!s.must_say, "H-1: a loss was not said");
  const island_place& place = places_[a.digest];
  for (std::uint32_t u : held_by(place, id_of(node)))
    check(core.held().contains(u) && core.held().at(u).step + 1 == a.step,
          "H-1: a step runs on old state");
  check_holdings(node, core);
}

void history::check_holdings(int node, const job_core& core) {
  check(core.copies().size() <= copied_versions_max, [&] {
    return "H-6: m" + std::to_string(node) + " keeps copies of "
           + std::to_string(core.copies().size()) + " versions";
  });
}

void history::on(int node, const job_core& core, const act::send& a) {
  if (const auto* v = std::get_if<vote>(&a.message)) {
    check(v->header.digest == nodes_[node].told,
          "H-4: a vote under an old sub-plan");
  } else if (const auto* m = std::get_if<seal>(&a.message)) {
    // A question that came early is answered as the sub-plan is taken up.
    check(m->header.digest == core.under().digest,
          "H-4: a seal of an old sub-plan");
    const auto [at, fresh] =
      seals_[m->header.digest].try_emplace(id_of(node), *m);
    const bool same = at->second.units == m->units
                      && at->second.prepared == m->prepared
                      && at->second.last == m->last;
    check(same, "H-1: a seal has changed"); // J-2
  }
}

void history::on(int node, const job_core&, const act::apply& a) {
  nodes_[node].applying = a.units;
}

void history::on(int node, const job_core&, const act::run_checkpoint& a) {
  // Not of chain_: the others may have gone on without this peer.
  const version from = resumed_.at(a.digest);
  version v{a.step, places_.at(a.digest).since};
  v = from.step == a.step ? from : v;
  const auto was = same_.find(v);
  nodes_[node].writing[a.step] = chain_to(was == same_.end() ? v : was->second);
}

void history::on(int, const job_core&, const act::finished& a) {
  check((a.reason == stop_reason::completed && a.step == shape_.steps)
          || (shape_.cancelled && a.reason == stop_reason::drained),
        "H-1: finished for no reason");
  if (chain_.size() == shape_.steps)
    ended_ = chain_;
}

void history::on(int, const job_core& core, const act::ended&) {
  check(core.held().empty(), "state is left behind");
}

std::string history::finished() {
  // A run may have ended and then lost its state, before a view recorded the
  // end.
  if (chain_.size() < ended_.size())
    chain_ = ended_;
  if (shape_.cancelled && chain_.size() < shape_.steps)
    return {};
  if (chain_.size() != shape_.steps)
    return "the committed history has " + std::to_string(chain_.size())
           + " steps";
  std::set<std::uint64_t> used;
  for (const step_record& r : chain_)
    for (std::uint32_t m = 0; m < shape_.microbatches; ++m)
      used.insert(
        sent_.at({digests_.at(r.version.made),
                  std::uint32_t(r.version.step) * shape_.microbatches + m}));
  if (used.size() != shape_.windows)
    return "H-5: the committed steps have used " + std::to_string(used.size())
           + " of " + std::to_string(shape_.windows) + " samples";
  return {};
}

} // namespace shoal::sim
