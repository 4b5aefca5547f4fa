// apps/common/progress.hpp -- shows a run's events to the user and writes them
// to files.
//
// On a terminal one line that is rewritten (step, loss, tokens/s, time left; fewer
// figures where it is narrow), with permanent lines for views, evaluations and notices;
// otherwise plain lines; with --json only JSON, one line for each event. A folder set by
// write_to() gets metrics.jsonl and TensorBoard event files.
//
// Threads: one, except for aside().
#pragma once

#include "runtime/jobs/job_log.hpp"
#include "runtime/jobs/run_config.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace shoal::runtime {
class metrics_jsonl;
class tensorboard_writer;
} // namespace shoal::runtime

namespace shoal::apps {

class progress {
public:
  progress(const runtime::run_config& run, bool as_json);
  ~progress();

  /// From now on writes files below `out`, including earlier events. Throws
  /// std::system_error if that folder cannot be written.
  /// @param replayed  events that metrics.jsonl already contains will come
  /// again; each is kept once
  void write_to(const std::filesystem::path& out, bool replayed);

  /// @param late it was before what has been shown: another node knew of it
  void show(const runtime::job_event& e, bool late = false);
  /// The same without a line of text: what there is to say of it is said
  /// otherwise. Files get it, and so does --json.
  void keep(const runtime::job_event& e);
  /// With --json: the whole run, as an event.
  void say_config();
  /// A permanent line, or an event with that text, and with "job" if given.
  /// @pre event is "notice", or one of said_events() that has a text
  void say(const std::string& event, const std::string& text,
           const std::string& job = {});
  /// A line of the node in this process, to stderr: between the lines of the
  /// run, never inside one. Any thread.
  void aside(const std::string& text);
  /// Ends a line that is being rewritten.
  void settle();

private:
  void step(const runtime::job_event& e);
  void record(const runtime::job_event& e);
  void lasting(const std::string& text);

  const runtime::run_config& run_;
  bool json_;
  bool terminal_;
  std::mutex lines_;            ///< guards open_line_ and the terminal
  bool open_line_ = false;      ///< the line is being rewritten
  double seconds_per_step_ = 0; ///< smoothed
  double bubble_sum_ = 0;       ///< per cent, of the steps with a known value
  std::uint64_t bubble_steps_ = 0;
  std::vector<runtime::job_event> early_; ///< events before write_to()
  std::set<runtime::event_key> recorded_; ///< of replayed events
  std::unique_ptr<runtime::metrics_jsonl> metrics_;
  std::unique_ptr<runtime::tensorboard_writer> tensorboard_;
};

} // namespace shoal::apps
