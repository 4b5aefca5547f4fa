// tests/bench/plan_bench.cpp -- the time of planning.
//
// usage: plan_bench [runs]      (default 5)
//
// Prints, for shoals of equal members, of unlike members and of unlike members
// with a job that asks for many stages, the median time of make_plan without
// and with a previous assignment, and the result.
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace shoal::core;

namespace {

view make_view(std::size_t members, bool unlike, std::uint32_t blocks,
               std::int32_t stages) {
  view v;
  v.number = 10;
  std::uint64_t state = 1;
  auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (std::size_t i = 0; i < members; ++i) {
    member m;
    m.id.peer[0] = std::uint8_t(i >> 8);
    m.id.peer[1] = std::uint8_t(i);
    m.id.incarnation = 1;
    m.host = "host" + std::to_string(i / 8);
    m.device.kind = "cuda";
    m.device.mflops = unlike ? 20'000'000 * (2 + below(8)) : 100'000'000;
    m.device.memory_bytes = (unlike ? 24 * (1 + below(4)) : 80) << 30;
    m.networks = {{"host", 5'000, 200'000'000'000},
                  {"ib", 5'000, 50'000'000'000}};
    v.members.push_back(m);
  }
  job_entry j; // about 70 billion parameters in blocks of 0.85
  j.id = 5;
  j.blocks = blocks;
  j.microbatches = 256;
  j.block_flops = 21'000'000'000'000;
  j.head_flops = 6'000'000'000'000;
  j.block_state_bytes = 13'600'000'000;
  j.embed_state_bytes = 4'200'000'000;
  j.head_state_bytes = 4'200'000'000;
  j.activation_bytes = 100'000'000;
  j.boundary_bytes = 134'000'000;
  j.want_stages = stages;
  v.jobs.push_back(j);
  return v;
}

double median_ms(int runs, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(
                      std::chrono::steady_clock::now() - start)
                      .count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

} // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  struct kind {
    const char* name;
    bool unlike;
    bool wish; ///< as many stages as there are members, at most 64
  };
  for (std::size_t n : {4, 8, 16, 32, 64, 128, 256, 512, 1024})
    for (const kind& k : {kind{"equal", false, false},
                          {"unlike", true, false},
                          {"wish", true, true}}) {
      // A model that fits: deeper for more members.
      const auto blocks =
        std::uint32_t(std::min<std::size_t>(80, std::max<std::size_t>(2, n)));
      view v = make_view(n, k.unlike, blocks,
                         k.wish ? std::min<std::int32_t>(64, int(n)) : -1);
      plan p;
      const double fresh = median_ms(runs, [&] { p = make_plan(v); });
      view next = v;
      next.previous = p.jobs;
      ++next.number;
      next.members.erase(next.members.begin() + std::ptrdiff_t(n / 2));
      const double again = median_ms(runs, [&] { (void)make_plan(next); });
      const island_place& a = p.jobs.front().islands.front();
      std::size_t used = 0;
      for (const auto& r : a.replicas)
        used += r.stages.size();
      std::printf("%5zu %-6s fresh %8.1f ms, after a death %8.1f ms: "
                  "%zu replicas, %zu stages, step %.3f s\n",
                  n, k.name, fresh, again, a.replicas.size(), used,
                  double(predict(v, v.jobs.front().id, a).step) / 1e9);
    }
  return 0;
}
