// tests/fuzz/plan_fuzz.cpp -- plans of views that pass the codec.
//
// First byte even: the rest makes a view with extreme numbers (wild_view). Odd:
// the rest is an encoded message; if it holds a view, that is planned. Planning
// ends, with the same result twice, and the next view, which holds the plan,
// can be read.
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/wild_view.hpp"

#include <cstdlib>

using namespace shoal;
using namespace shoal::runtime;
namespace cl = shoal::core::cluster;

namespace {

/// More members only make planning slow.
constexpr std::size_t members_max = 6;

void plan(core::view v) {
  const core::plan p = core::make_plan(v);
  SHOAL_ASSERT(core::make_plan(v).jobs == p.jobs);
  for (const core::assignment& a : p.jobs) {
    const core::job_entry* j = core::find_job(v, a.job);
    SHOAL_ASSERT(j != nullptr);
    (void)core::never_fits(v, *j);
    (void)core::to_text(v, a);
    (void)core::step_flops(*j);
    if (!core::waits(a))
      SHOAL_ASSERT(core::idle_members(v, a).size() < v.members.size());
    for (const core::island_place& at : a.islands) {
      if (at.replicas.empty())
        continue;
      SHOAL_ASSERT(core::predict(v, a.job, at).step >= 0);
      SHOAL_ASSERT(core::longest_wait(v, a.job, at) >= 0);
      SHOAL_ASSERT(!core::memory_of(*j, at).empty());
      (void)core::mflops_of(v, at);
    }
  }
  for (const auto& [peer, bytes] : core::memory_for_jobs(v, v.previous))
    SHOAL_ASSERT(bytes <= core::find_member(v, peer)->device.memory_bytes);
  v.previous = p.jobs;
  envelope out;
  SHOAL_ASSERT(!codec::decode(codec::encode(cl::message(cl::decided{v})), out));
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  std::size_t at = 1;
  if (data[0] % 2 == 0) {
    const auto below = [&](std::uint64_t n) -> std::uint64_t {
      std::uint64_t x = 0;
      for (std::uint64_t most = n; most > 1 && at < size; most >>= 8)
        x = x << 8 | data[at++];
      return n == 0 ? 0 : x % n;
    };
    plan(tests::wild_view(below, members_max));
    return 0;
  }
  envelope e;
  if (codec::decode(std::as_bytes(std::span(data + 1, size - 1)), e))
    return 0;
  if (const auto* m = std::get_if<cl::message>(&e))
    if (const auto* d = std::get_if<cl::decided>(m))
      if (d->value.members.size() <= members_max)
        plan(d->value);
  return 0;
}
