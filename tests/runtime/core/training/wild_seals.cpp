// tests/runtime/core/training/wild_seals.cpp -- seals by chance; claims about decisions.
#include "tests/runtime/core/training/wild_seals.hpp"

#include "runtime/core/planning/plan.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>
#include <stdexcept>

namespace shoal::tests {
namespace {

using namespace core;

constexpr std::uint32_t replicas_max = 3;
constexpr std::uint32_t stages_max = 3;
constexpr std::uint32_t microbatches = 4;

peer_id peer(std::uint64_t n) {
  peer_id p{};
  p[0] = std::uint8_t(n);
  return p;
}

island_place place_of(const choice& below, std::uint32_t blocks) {
  island_place a;
  a.since = 3;
  const auto replicas = std::uint32_t(1 + below(replicas_max));
  const auto stages = std::uint32_t(1 + below(std::min(stages_max, blocks)));
  std::uint8_t n = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    replica_place p;
    for (std::uint32_t s = 0; s < stages; ++s)
      p.stages.push_back(stage_on({peer(++n), 1}, s * blocks / stages,
                                  (s + 1) * blocks / stages));
    p.first_microbatch = r * microbatches / replicas;
    p.last_microbatch = (r + 1) * microbatches / replicas;
    a.replicas.push_back(p);
  }
  const std::uint64_t others = below(3); // that only seal
  for (std::uint64_t i = 1; i <= n + others; ++i)
    a.sealers.push_back({peer(i), 1});
  a.keepers = {{peer(1), 1}};
  if (others > 0)
    a.arriving.push_back({member_id{peer(n + 1u), 1}, 0, blocks + 2});
  a.data_source = a.checkpointer = a.evaluator = a.reporter = {peer(1), 1};
  return a;
}

state_version version(const choice& below) {
  return {below(5), below(4)};
}

checkpoint_ref checkpoint(const choice& below) {
  checkpoint_ref c;
  c.step = below(6);
  c.manifest[0] = std::uint8_t(below(4)); // zero: none
  c.since = below(4);
  return c;
}

std::vector<checkpoint_ref> some(const choice& below) {
  std::vector<checkpoint_ref> out;
  for (std::uint64_t n = below(4); n > 0; --n)
    out.push_back(checkpoint(below));
  return out;
}

vote vote_of(const choice& below, std::uint32_t blocks) {
  vote v;
  v.step = below(6);
  for (std::uint32_t u = 0; u < blocks + 3; ++u) // one that is not there, too
    if (below(4) != 0)
      v.units.push_back({u, 0.5 * double(below(3))});
  v.losses.resize(below(2) * microbatches + below(2), 1.0);
  v.drain = below(4) == 0;
  return v;
}

seal seal_of(const choice& below, const island_place& a, std::uint32_t blocks) {
  seal s;
  s.header = {7, digest({7, 0}, a), a.since};
  for (std::uint32_t u = 0; u < blocks + 3; ++u)
    if (below(4) != 0)
      s.units.push_back(
        {u, version(below), below(2) == 0, version(below), below(3)});
  for (std::uint64_t n = below(4); n > 0; --n)
    s.copies.push_back({std::uint32_t(below(blocks + 3)), version(below)});
  s.prepared = version(below);
  s.prepared_vote = vote_of(below, blocks);
  s.last.version = version(below);
  s.last.replicas = std::uint32_t(below(2));
  s.stop_step = below(4) == 0 ? below(6) : 0;
  s.evaluated = below(6);
  for (const checkpoint_ref& c : some(below)) {
    auto& stored = s.stored.emplace_back(stored_checkpoint{c, {}});
    for (std::uint64_t n = below(3); n > 0; --n)
      stored.lacks.push_back(
        {std::uint32_t(below(blocks + 3)), std::uint32_t(below(blocks + 4))});
  }
  s.given_up = some(below);
  s.heard = some(below);
  s.known = version(below);
  s.top = below(8);
  s.unable = below(2) == 0;
  s.has_blobs = below(2) == 0;
  s.checkpoint_lag = below(3);
  return s;
}

void require(bool holds, const char* claim) {
  if (!holds)
    throw std::logic_error(claim);
}

using source = resume_decision::source;

bool equal(const resume_decision& a, const resume_decision& b) {
  const auto moves = [](const resume_decision& d) {
    std::vector<std::tuple<std::uint32_t, peer_id, peer_id>> out;
    for (const auto& t : d.transfers)
      out.emplace_back(t.unit, t.from, t.to);
    return out;
  };
  return a.from == b.from && a.version == b.version && a.record == b.record
         && a.checkpoint == b.checkpoint && a.heard == b.heard
         && a.checkpoint_holders == b.checkpoint_holders && moves(a) == moves(b)
         && a.stop == b.stop && a.top == b.top && a.last == b.last
         && a.costly == b.costly;
}

/// Whether the seal says that the unit is at the version, or will be, or that a
/// copy of it is.
bool could_be(const seal& s, std::uint32_t unit, const state_version& v) {
  return std::ranges::any_of(s.units,
                             [&](const held_unit& u) {
                               return u.unit == unit
                                      && (u.applied == v
                                          || (u.prepared && s.prepared == v));
                             })
         || std::ranges::any_of(s.copies, [&](const unit_copy& c) {
              return c.unit == unit && c.version == v;
            });
}

void check_live(const sealed_place& s, const resume_decision& d) {
  for (const auto& t : d.transfers) {
    require(t.from != t.to, "nobody fetches from itself");
    require(s.seals.contains(t.from), "a sealer serves");
    require(could_be(s.seals.at(t.from), t.unit, d.version),
            "who serves said that it can");
  }
  const auto left_out = [&](std::uint32_t unit, const peer_id& p) {
    return std::ranges::any_of(d.differing, [&](const differing_unit& x) {
      return x.unit == unit && x.at == p;
    });
  };
  for (const auto& t : d.transfers)
    require(!left_out(t.unit, t.from), "a state that differs is not served");
  for (const peer_id& p : participants_of(s.place))
    for (std::uint32_t unit : held_by(s.place, p)) {
      const auto n = std::ranges::count_if(d.transfers, [&](const auto& t) {
        return t.unit == unit && t.to == p;
      });
      require(n <= 1, "a unit is fetched once");
      require(n == 1 || could_be(s.seals.at(p), unit, d.version),
              "each unit is there or fetched");
    }
}

bool has_part(const seal& s, const checkpoint_ref& c, part_index part) {
  return std::ranges::any_of(s.stored, [&](const stored_checkpoint& stored) {
    return stored.checkpoint.manifest == c.manifest
           && std::ranges::none_of(stored.lacks, [&](const part_range& r) {
                return r.contains(part);
              });
  });
}

void check_checkpoint(const sealed_place& s, const resume_decision& d) {
  require(d.checkpoint.manifest != blob_digest{}, "the checkpoint exists");
  require(d.checkpoint.step <= d.last, "it is of a step that was committed");
  require(!is_given_up(d.checkpoint, d.given_up), "it is not given up");
  require(d.version == state_version{d.checkpoint.step, s.place.since},
          "the run goes on at it");
  require(!d.checkpoint_holders.empty() || d.costly,
          "one that nobody has is named only where that saves something");
  if (d.checkpoint_holders.empty())
    return;
  for (part_index part = 0; part < s.blocks + 2; ++part)
    require(std::ranges::any_of(s.seals,
                                [&](const auto& sealed) {
                                  return has_part(sealed.second, d.checkpoint,
                                                  part);
                                }),
            "somebody here has each part of it");
}

} // namespace

sealed_place wild_seals(const choice& below) {
  sealed_place s;
  s.blocks = std::uint32_t(1 + below(4));
  s.place = place_of(below, s.blocks);
  s.origin_step = below(2);
  s.interval = below(4);
  for (const member_id& m : s.place.sealers)
    s.seals[m.peer] = seal_of(below, s.place, s.blocks);
  return s;
}

void check_decision(const sealed_place& s) {
  const auto decide = [&] {
    return decide_resume(s.place, s.blocks, s.origin_step, s.interval, s.seals);
  };
  const resume_decision d = decide();
  require(equal(d, decide()), "the same seals lead to the same");
  require(d.top >= d.last, "the largest step is none below the newest");
  for (const peer_id& p : d.checkpoint_holders)
    require(s.seals.contains(p), "holders have sealed");
  for (const checkpoint_ref& c : d.heard)
    require(c.step <= d.last && c.manifest != blob_digest{},
            "what was heard of is credible");
  if (d.from == source::live)
    check_live(s, d);
  else
    require(d.transfers.empty() && d.in_step.empty(), "only state moves");
  if (d.from == source::checkpoint)
    check_checkpoint(s, d);
  if (d.from == source::origin)
    require(d.version == state_version{s.origin_step, s.place.since},
            "the origin is its step");
}

} // namespace shoal::tests
