// tests/actors/small_record.cpp -- what a node's log tells of a run.
#include "runtime/core/assert.hpp"
#include "tests/actors/small_shoal.hpp"

namespace shoal::test {

run_record
record_of(const std::vector<runtime::job_event>& log, std::uint32_t island) {
  run_record out;
  for (const runtime::job_event& e : log) {
    using kind = runtime::job_event_kind;
    if (e.island != island && e.kind != kind::done)
      continue;
    if (e.kind == kind::step) {
      // In order, each once, unless a loss was said.
      SHOAL_ASSERT(e.step == out.losses.size() + 1
                   || (e.step <= out.losses.size() && out.lost_states > 0));
      out.repeated += out.losses.size() + 1 - e.step;
      out.losses.resize(e.step - 1);
      out.norms.resize(e.step - 1);
      out.losses.push_back(e.loss);
      out.norms.push_back(e.grad_norm);
    } else if (e.kind == kind::done)
      out.state = e.text;
    else if (e.kind == kind::checkpoint)
      ++out.checkpoints;
    else if (e.kind == kind::eval)
      ++out.evaluations;
    else if (e.kind == kind::notice) {
      ++out.notices;
      out.lost_states += e.text.starts_with("state lost")
                         || e.text.starts_with("the run went back");
      out.texts += e.text + "\n";
    }
  }
  return out;
}

} // namespace shoal::test
