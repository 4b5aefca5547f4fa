// runtime/core/training/ledger.cpp -- digests, and the audit of a run.
#include "runtime/core/training/ledger.hpp"

#include "runtime/core/assert.hpp"

#include <map>

namespace shoal::core {
namespace {

/// splitmix64's finaliser (G. Steele et al., OOPSLA 2014).
std::uint64_t finalise(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

} // namespace

std::uint64_t digest_of_sample(std::span<const std::int32_t> targets) noexcept {
  std::uint64_t h = finalise(targets.size() + 1);
  for (const std::int32_t t : targets)
    h = (h ^ std::uint32_t(t)) * 0x9e3779b97f4a7c15u + (h >> 29);
  return finalise(h);
}

std::uint64_t digest_of_step(std::span<const std::uint64_t> samples) noexcept {
  std::uint64_t h = finalise(samples.size() + 1);
  for (const std::uint64_t s : samples)
    h = finalise(h ^ s) + 0x9e3779b97f4a7c15u;
  return h == 0 ? 1 : h;
}

void findings::add(std::uint64_t first, std::uint64_t last) {
  count += last - first;
  for (; first < last && listed.size() < listed_max; ++first)
    listed.push_back(first);
}

audit audit_run(
  const data_order& order, std::uint32_t microbatches, std::size_t seq_len,
  const std::vector<used_data>& log,
  const std::function<void(std::uint64_t, std::span<std::int32_t>)>& targets) {
  SHOAL_ASSERT(microbatches > 0
               && order.samples_per_step() % microbatches == 0);
  const std::uint32_t sequences = order.samples_per_step() / microbatches;
  std::map<std::uint64_t, std::uint64_t> newest;
  for (const used_data& u : log)
    newest[u.step] = u.data;
  audit out;
  if (newest.empty())
    return out;
  out.steps = newest.rbegin()->first - newest.begin()->first + 1;
  std::map<std::uint64_t, std::vector<bool>> used; // by data epoch
  std::map<std::uint64_t, std::uint64_t> count;
  std::vector<std::int32_t> batch(sequences * seq_len);
  std::uint64_t due = newest.begin()->first;
  for (const auto& [step, data] : newest) {
    out.missing.add(due, step);
    due = step + 1;
    std::vector<std::uint64_t> samples;
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      for (std::uint32_t b = 0; b < sequences; ++b) {
        const std::uint32_t index = m * sequences + b;
        const std::uint64_t window = order.sample(step, index);
        const std::uint64_t epoch = order.data_epoch(step, index);
        std::vector<bool>& seen = used[epoch];
        seen.resize(order.windows());
        if (seen[window])
          out.repeated.add(window);
        seen[window] = true;
        if (++count[epoch] == order.windows())
          ++out.epochs;
        targets(window, std::span(batch).subspan(b * seq_len, seq_len));
      }
      samples.push_back(digest_of_sample(batch));
    }
    out.samples += order.samples_per_step();
    if (data == 0)
      out.unknown.add(step);
    else if (data != digest_of_step(samples))
      out.other.add(step);
    // Epochs before the one of this step are over.
    while (used.size() > 2)
      used.erase(used.begin());
  }
  return out;
}

} // namespace shoal::core
