// tests/fuzz/audit_fuzz.cpp -- any bytes as the metrics of a run of 40 steps.
//
// Runs all that `shoal audit` does with the file: it must end, and may call a
// run proven only if each of its steps is there with its own samples. If the
// first byte is odd, the honest log is put before the input, so that changes of
// a correct run are tried as well.
#include "apps/common/metrics_log.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/jobs/event_json.hpp"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

using namespace shoal;

namespace {

constexpr std::uint64_t steps = 40, windows = 7;
constexpr std::uint32_t microbatches = 2, samples = 6;
constexpr std::size_t length = 3;

void text(std::uint64_t window, std::span<std::int32_t> targets) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = std::int32_t(window * length + i);
}

std::uint64_t digest_of(const core::data_order& order, std::uint64_t step) {
  std::vector<std::uint64_t> digests;
  constexpr std::uint32_t each = samples / microbatches;
  for (std::uint32_t m = 0; m < microbatches; ++m) {
    std::vector<std::int32_t> batch(each * length);
    for (std::uint32_t b = 0; b < each; ++b)
      text(order.sample(step, m * each + b),
           std::span(batch).subspan(b * length, length));
    digests.push_back(core::digest_of_sample(batch));
  }
  return core::digest_of_step(digests);
}

std::string honest_log(const core::data_order& order) {
  std::string out;
  for (std::uint64_t s = 1; s <= steps; ++s) {
    runtime::job_event e;
    e.kind = runtime::job_event_kind::step;
    e.step = s;
    e.data = digest_of(order, s);
    out += runtime::to_json_line(e) + "\n";
  }
  return out;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const core::data_order order(5, windows, samples);
  static const std::string honest = honest_log(order);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] % 2 == 1)
    file = honest + file.substr(1);
  std::istringstream in(file);
  const apps::metrics_log log =
    apps::read_metrics(in, steps, size % (steps + 1));
  SHOAL_ASSERT(in.eof());
  for (const core::used_data& u : log.steps)
    SHOAL_ASSERT(u.step >= 1 && u.step <= steps);
  const core::audit a =
    core::audit_run(order, microbatches, length, log.steps, text);
  SHOAL_ASSERT(a.steps <= steps && a.missing.count < steps);
  if (!a.proven())
    return 0;
  std::vector<std::uint64_t> newest(steps + 1);
  for (const core::used_data& u : log.steps)
    newest[u.step] = u.data;
  std::uint64_t proven = 0;
  for (std::uint64_t s = 1; s <= steps; ++s)
    if (newest[s] != 0) {
      SHOAL_ASSERT(newest[s] == digest_of(order, s));
      ++proven;
    }
  SHOAL_ASSERT(proven == a.steps);
  return 0;
}
