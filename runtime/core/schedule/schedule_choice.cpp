// runtime/core/schedule/schedule_choice.cpp -- compares schedules.
#include "runtime/core/schedule/schedule_choice.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/job_entry.hpp"

#include <algorithm>
#include <set>

namespace shoal::core {
namespace {

/// Number of memory levels that are tried for each peer between the least that
/// a schedule keeps and the most that it can use.
constexpr std::uint32_t memory_levels = 4;

std::uint32_t peers_of(const schedule_problem& p) {
  std::set<std::uint32_t> peers;
  for (const pipeline_part& part : p.parts)
    peers.insert(part.peer);
  return std::uint32_t(peers.size());
}

/// The stages of a virtual degree; none if the parts cannot be cut like that.
std::vector<scheduled_stage>
cut(const schedule_problem& p, std::uint32_t degree) {
  std::vector<scheduled_stage> out;
  const auto parts = std::uint32_t(p.parts.size());
  if (degree > 1
      && (peers_of(p) < parts || parts < 2
          || parts * degree > pipeline_stages_max))
    return out;
  for (std::uint32_t run = 0; run < degree; ++run)
    for (std::uint32_t i = 0; i < parts; ++i) {
      const std::uint32_t blocks = p.parts[i].blocks;
      if (degree > 1 && blocks < degree)
        return {};
      out.push_back({i, blocks / degree + (run < blocks % degree ? 1 : 0), 0});
    }
  return out;
}

stage_time
time_of(const schedule_problem& p, const scheduled_stage& s, bool last) {
  const pipeline_part& part = p.parts[s.part];
  stage_time t = part.block;
  for (std::uint64_t* x : {&t.forward, &t.input_gradient, &t.weight_gradient})
    *x *= s.blocks;
  if (last) {
    t.forward += part.extra.forward;
    t.input_gradient += part.extra.input_gradient;
    t.weight_gradient += part.extra.weight_gradient;
  }
  return t;
}

/// Sets kept_max as high as memory and `level` allow.
/// @returns false if a peer cannot keep the least
bool fill_memory(const schedule_problem& p, pipeline& line,
                 const std::vector<scheduled_stage>& stages,
                 std::uint32_t level_max) {
  for (std::uint32_t peer = 0; peer < line.peers; ++peer) {
    bool fits = false;
    for (std::uint32_t level = level_max + 1; level-- > 0 && !fits;) {
      std::uint64_t bytes = 0;
      std::uint64_t memory = 0;
      for (std::uint32_t s = 0; s < line.stages(); ++s) {
        if (line.peer_of[s] != peer)
          continue;
        const kept_range k = kept_of(line, s);
        line.kept_max[s] =
          k.least + (k.wanted - k.least) * level / memory_levels;
        bytes += p.kept_bytes * stages[s].blocks * line.kept_max[s];
        memory = p.parts[stages[s].part].memory;
      }
      fits = bytes <= memory;
    }
    if (!fits)
      return false;
  }
  return true;
}

std::optional<schedule_choice>
try_level(const schedule_problem& p, schedule_kind kind, std::uint32_t degree,
          std::uint32_t level) {
  schedule_choice out{kind, degree, cut(p, degree), 0, 0};
  if (out.stages.empty())
    return std::nullopt;
  pipeline line;
  line.kind = kind;
  line.last = p.microbatches;
  for (const scheduled_stage& s : out.stages) {
    line.peer_of.push_back(p.parts[s.part].peer);
    line.peers = std::max(line.peers, line.peer_of.back() + 1);
  }
  line.kept_max.assign(line.stages(), 0);
  if (!fill_memory(p, line, out.stages, level))
    return std::nullopt;
  complete(line);
  std::vector<stage_time> times;
  std::uint64_t busy = 0;
  for (std::uint32_t s = 0; s < line.stages(); ++s) {
    times.push_back(time_of(p, out.stages[s], s + 1 == line.stages()));
    busy += times.back().total() * p.microbatches;
    out.stages[s].kept_max = line.kept_max[s];
  }
  out.step = estimate_step(line, times);
  const std::uint64_t all = std::max<std::uint64_t>(1, out.step * line.peers);
  out.bubble_permille =
    std::uint32_t(1000 - std::min<std::uint64_t>(1000, busy * 1000 / all));
  return out;
}

} // namespace

std::uint64_t
estimate_step(const pipeline& p, std::span<const stage_time> times) {
  const std::uint32_t count = p.last - p.first;
  const std::uint64_t most = std::max<std::uint64_t>(
    2, simulated_items_max / (3 * std::max(1u, p.stages())));
  // At most twice the number in transit: that contains the steady state.
  pipeline shorter = p;
  shorter.last =
    p.first
    + std::uint32_t(std::min<std::uint64_t>({count, most, 4 * p.stages() + 8}));
  std::vector<std::uint64_t> busy(p.peers, 0);
  for (std::uint32_t s = 0; s < p.stages(); ++s)
    busy[p.peer_of[s]] += times[s].total();
  const std::uint64_t rest = p.last - shorter.last;
  return simulate(shorter, times).span
         + rest * (busy.empty() ? 0 : std::ranges::max(busy));
}

std::optional<schedule_choice>
try_schedule(const schedule_problem& p, schedule_kind kind,
             std::uint32_t virtual_degree) {
  return try_level(p, kind, virtual_degree, memory_levels);
}

namespace {

/// Upper limit of the time of a third of a block, whatever a job or a member
/// claims: for a step's 2^12 microbatches, 2^12 blocks and three parts
/// (limits.hpp) the sum is then less than 2^60 ns. It is 17 s.
constexpr std::uint64_t third_max = std::uint64_t{1} << 34;

std::uint64_t per_third(std::uint64_t flops, std::uint64_t mflops) {
  __extension__ using wide = unsigned __int128;
  return std::uint64_t(std::min<wide>(
    third_max, wide(flops) * 1000 / 3 / std::max<std::uint64_t>(1, mflops)));
}

std::uint64_t
at_or_zero(const std::map<peer_id, std::uint64_t>& of, const peer_id& peer) {
  auto at = of.find(peer);
  return at == of.end() ? 0 : at->second;
}

/// @param shares for each peer, the number of replicas among which its
/// remaining memory is divided
schedule_problem
problem_of(const replica_place& r, const job_entry& job,
           const std::map<peer_id, std::uint64_t>& mflops,
           std::map<peer_id, std::uint64_t> memory,
           const std::map<peer_id, std::uint64_t>& shares, nanoseconds hop) {
  schedule_problem p;
  p.microbatches = r.last_microbatch - r.first_microbatch;
  p.kept_bytes = job.activation_bytes;
  p.kind = job.want_schedule;
  p.virtual_degree = job.want_virtual;
  for (std::size_t s = 0; s < r.stages.size(); ++s) {
    const stage_place& at = r.stages[s];
    const std::uint32_t blocks = at.last_block - at.first_block;
    const std::uint64_t state =
      blocks * job.block_state_bytes + (s == 0 ? job.embed_state_bytes : 0)
      + (s + 1 == r.stages.size() ? job.head_state_bytes : 0);
    std::uint64_t& left = memory[at.lead().peer];
    left -= std::min(left, state);
    const std::uint64_t speed = at_or_zero(mflops, at.lead().peer);
    const std::uint64_t block = per_third(job.block_flops, speed);
    const std::uint64_t head = per_third(job.head_flops, speed);
    p.parts.push_back({*index_of(r, at.lead().peer),
                       blocks,
                       {block, block, block, std::uint64_t(hop)},
                       {head, head, head, 0},
                       0});
  }
  for (std::size_t s = 0; s < r.stages.size(); ++s)
    p.parts[s].memory =
      memory[r.stages[s].lead().peer] / shares.at(r.stages[s].lead().peer);
  return p;
}

} // namespace

void set_schedule(island_place& a, const job_entry& job,
                  const std::map<peer_id, std::uint64_t>& mflops,
                  const std::map<peer_id, std::uint64_t>& memory,
                  nanoseconds hop) {
  if (a.replicas.empty())
    return;
  std::map<peer_id, std::uint64_t> shares;
  for (const replica_place& r : a.replicas) {
    std::set<peer_id> in;
    for (const stage_place& s : r.stages)
      if (in.insert(s.lead().peer).second)
        ++shares[s.lead().peer];
  }
  std::vector<schedule_problem> problems;
  for (const replica_place& r : a.replicas)
    problems.push_back(problem_of(r, job, mflops, memory, shares, hop));
  const std::vector<schedule_choice> chosen = choose_schedule(problems);
  a.schedule = chosen.front().kind;
  for (std::size_t r = 0; r < a.replicas.size(); ++r) {
    std::vector<stage_place> stages;
    std::uint32_t block = 0;
    for (const scheduled_stage& s : chosen[r].stages) {
      stages.push_back({a.replicas[r].stages[s.part].shards, block,
                        block + s.blocks, s.kept_max});
      block += s.blocks;
    }
    a.replicas[r].stages = std::move(stages);
  }
}

namespace {

/// Numbers of runs of blocks per peer to try. Several only if the job asks for
/// them: they spread a peer's units over the model, so that more has to move
/// when a peer is lost.
std::vector<std::uint32_t> degrees_of(const schedule_problem& p) {
  if (p.virtual_degree > 0)
    return {std::uint32_t(p.virtual_degree)};
  if (p.kind != schedule_kind::interleaved)
    return {1};
  std::vector<std::uint32_t> out;
  for (std::uint32_t d = 2; d <= virtual_degree_max; ++d)
    out.push_back(d);
  return out;
}

} // namespace

std::vector<schedule_choice>
choose_schedule(const std::vector<schedule_problem>& replicas) {
  SHOAL_ASSERT(!replicas.empty());
  const schedule_problem& first = replicas.front();
  std::vector<schedule_choice> best;
  std::uint64_t best_step = 0;
  auto consider = [&](schedule_kind kind, std::uint32_t degree,
                      std::uint32_t level) {
    std::vector<schedule_choice> all;
    std::uint64_t slowest = 0;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      auto one = try_level(replicas[r], kind, degree, level);
      if (!one)
        return;
      slowest = std::max(slowest, one->step);
      all.push_back(std::move(*one));
    }
    if (best.empty()
        || slowest < best_step - best_step * schedule_gain_permille / 1000) {
      best = std::move(all);
      best_step = slowest;
    }
  };
  auto allowed = [&](schedule_kind k) {
    return !first.kind || first.kind == k;
  };
  const bool many = peers_of(first) > 1;
  const auto degrees = degrees_of(first);
  // Begin with the one that keeps and sends least.
  for (std::uint32_t degree : degrees) {
    if (degree == 1 && allowed(schedule_kind::one_f_one_b))
      consider(schedule_kind::one_f_one_b, 1, memory_levels);
    if (many && allowed(schedule_kind::zero_bubble))
      for (std::uint32_t level = 0; level <= memory_levels; ++level)
        consider(schedule_kind::zero_bubble, degree, level);
    if (many && degree > 1 && allowed(schedule_kind::interleaved))
      consider(schedule_kind::interleaved, degree, memory_levels);
  }
  if (best.empty()) // what is wanted is impossible
    consider(schedule_kind::one_f_one_b, 1, memory_levels);
  if (best.empty()) { // this does not fit either: as placed
    for (const schedule_problem& p : replicas) {
      schedule_choice c;
      c.stages = cut(p, 1);
      best.push_back(std::move(c));
    }
  }
  return best;
}

} // namespace shoal::core
