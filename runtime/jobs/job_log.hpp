// runtime/jobs/job_log.hpp -- the history of a job, step by step.
//
// Every member keeps the log of every job: participants write what they see
// committed, the others what the reporter broadcasts. A command follows a job
// on any node and moves to another when its node dies; events have keys, so one
// that arrives twice is kept once.
//
// Threads: any. Bounded: events_max per job, the oldest go first.
#pragma once

#include "runtime/core/fields.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t event_text_bytes_max = 2048;

enum class job_event_kind : std::uint8_t {
  step = 1,   ///< a committed optimizer step
  view,       ///< another view or plan took effect
  eval,       ///< held-out loss at a step
  checkpoint, ///< published; `digest` names its manifest in the store
  notice,     ///< a line for the user; `digest`: of bytes that a client may
              ///< upload, zero if none are wanted
  done,       ///< the job ended: state in `text`, `cause`; no event follows
};

struct job_event {
  job_event_kind kind = job_event_kind::notice;
  std::uint64_t step = 0;
  std::uint64_t epoch = 0; ///< of the view; of a step, evaluation or
                           ///< checkpoint: of the assignment that made it
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  std::uint64_t tokens = 0; ///< seen since step 0
  double tokens_per_s = 0;  ///< of this step
  double bubble = 0; ///< per cent of the step's computing phase in which its
                     ///< peers did not compute; 0: not known, or none
  double computing_s = 0; ///< seconds of the step until the last backward
  double reducing_s = 0;  ///< and from there until all was reduced
  std::uint32_t peers = 0;
  std::uint64_t data = 0; ///< of a step: digest of its samples; 0: not known
  std::uint32_t bad_steps = 0; ///< of a step: as step_record::bad
  std::string text;            ///< plan, path, reason
  std::string cause;           ///< of a failure, or of another view's plan
  bool waits = false; ///< no step ends until what the text says has happened
  core::blob_digest digest{};
  std::int64_t unix_ms = 0;
  std::uint32_t island = 0; ///< of the job
};
void fields(auto& v, core::of<job_event> auto& x) {
  v("kind", x.kind, core::up_to(job_event_kind::done));
  v("step", x.step);
  v("epoch", x.epoch);
  v("loss", x.loss);
  v("grad_norm", x.grad_norm);
  v("lr", x.lr);
  v("tokens", x.tokens);
  v("tokens_per_s", x.tokens_per_s);
  v("bubble", x.bubble);
  v("computing_s", x.computing_s);
  v("reducing_s", x.reducing_s);
  v("peers", x.peers);
  v("data", x.data);
  v("bad_steps", x.bad_steps);
  v("text", x.text, core::cleaned_lines_of(event_text_bytes_max));
  v("cause", x.cause, core::cleaned_text_of(core::limits::job_cause_bytes_max));
  v("waits", x.waits);
  v("digest", x.digest);
  v("unix_ms", x.unix_ms);
  v("island", x.island, core::at_most(core::limits::islands_max - 1));
}

/// What makes two events the same: step or epoch, the text of a notice, and the
/// island. What is run again after a loss has another epoch.
using event_key = std::tuple<job_event_kind, std::uint64_t, std::uint64_t,
                             std::string, std::uint32_t>;
event_key key_of(const job_event& e);

class job_log {
public:
  virtual ~job_log() = default;
  virtual void add(core::job_id job, const job_event& event) = 0;
  /// The same of what nobody needs once this process has ended: it goes to no
  /// disk. For what clients can cause at any rate.
  virtual void add_passing(core::job_id job, const job_event& event) {
    add(job, event);
  }
  /// Events from position `from` on (positions count from 0 per node).
  virtual std::vector<job_event>
  read(core::job_id job, std::uint64_t from, std::uint64_t& next) const = 0;
  virtual std::vector<job_event> read_all(core::job_id job) const = 0;
  static constexpr std::size_t events_max = 200000;
};

} // namespace shoal::runtime
