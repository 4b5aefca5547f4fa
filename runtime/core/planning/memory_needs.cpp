// runtime/core/planning/memory_needs.cpp -- why a job runs nowhere.
#include "runtime/core/planning/memory_needs.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace shoal::core {
namespace {

/// "41.2 GiB"; rounded up, so that a need is never understated.
std::string amount(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1u << 20, gib = 1u << 30;
  const std::uint64_t unit = bytes >= gib ? gib : mib;
  const std::uint64_t tenths =
    bytes / unit * 10 + (bytes % unit * 10 + unit - 1) / unit;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10)
         + (unit == gib ? " GiB" : " MiB");
}

std::uint64_t sum_of(const std::map<peer_id, std::uint64_t>& memory,
                     const std::vector<const member*>& members) {
  std::uint64_t sum = 0;
  for (const member* m : members)
    if (auto at = memory.find(m->id.peer); at != memory.end())
      sum = std::min(sum + at->second, cost_never);
  return sum;
}

/// Of a member in the list; a plan's text is bounded (limits::text_bytes_max).
constexpr std::size_t name_wide = 24;
/// Amounts that are listed, and names with each of them.
constexpr std::size_t amounts_max = 4;
constexpr std::size_t names_max = 4;

/// "24.0 GiB: a, b; 16.0 GiB: c, d, e, f and 3 more": what each member has, the
/// most first.
std::string by_member(const layout_problem& p) {
  std::map<std::uint64_t, std::vector<std::string>, std::greater<>> all;
  for (const member* m : p.members) {
    const auto at = p.memory.find(m->id.peer);
    all[at == p.memory.end() ? 0 : at->second].push_back(
      m->name.empty() ? short_name(m->id.peer) : shown(m->name, name_wide));
  }
  std::string out;
  std::size_t listed = 0, left = p.members.size();
  for (const auto& [bytes, names] : all) {
    if (listed++ == amounts_max)
      return out + "; less: " + std::to_string(left) + " more";
    out += (listed > 1 ? "; " : "") + amount(bytes) + ": ";
    for (std::size_t i = 0; i < std::min(names.size(), names_max); ++i)
      out += (i > 0 ? ", " : "") + names[i];
    if (names.size() > names_max)
      out += " and " + std::to_string(names.size() - names_max) + " more";
    left -= names.size();
  }
  return out;
}

} // namespace

std::string why_nowhere(const layout_problem& p) {
  if (p.members.empty())
    return "no member can work: all are witnesses, leaving or without a "
           "measured speed";
  if (p.job.microbatches == 0)
    return "the job has no microbatches";
  const job_entry& j = p.job;
  const std::uint64_t block = j.block_state_bytes + j.activation_bytes;
  const std::uint64_t need = std::min(j.embed_state_bytes + j.head_state_bytes
                                        + saturating_mul(j.blocks, block),
                                      cost_never);
  const std::uint64_t have = sum_of(p.memory, p.members);
  const std::uint64_t all = sum_of(p.all_memory, p.members);
  std::string out =
    "not enough memory: needs at least " + amount(need) + " (embedding "
    + amount(j.embed_state_bytes) + ", " + std::to_string(j.blocks)
    + " blocks of " + amount(block) + ", head " + amount(j.head_state_bytes)
    + "), has " + amount(have) + " on " + std::to_string(p.members.size())
    + (p.members.size() == 1 ? " member (" : " members (") + by_member(p) + ")";
  if (std::ranges::any_of(p.members, [&](const member* m) {
        const auto at = p.all_memory.find(m->id.peer);
        return at != p.all_memory.end() && at->second < m->device.memory_bytes;
      }))
    out += "; peers of one host share its memory";
  if (std::ranges::any_of(
        p.members, [](const member* m) { return m->device.memory_is_share; }))
    out +=
      "; a peer offers half of the memory that is free at its start, or as "
      "much as `shoal node --memory SIZE` says";
  if (all > have)
    out += "; " + amount(all - have)
           + " are taken by other jobs, which "
             "are older or of higher priority";
  if (need <= have && j.want_stages > 0)
    out += "; it does not fit in " + std::to_string(j.want_stages)
           + (j.want_stages == 1 ? " stage" : " stages");
  else if (need <= have)
    out += std::string("; the parts do not fit whole, with what the pipeline "
                       "keeps of its ")
           + (j.kind == job_kind::serve ? "passes" : "microbatches");
  return out;
}

} // namespace shoal::core
