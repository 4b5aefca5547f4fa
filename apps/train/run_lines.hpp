// apps/train/run_lines.hpp -- what `train` tells of a run before it starts, and
// of a checkpoint that is not in its folder.
//
// Threads: pure functions, but for what they print.
#pragma once

#include "apps/common/commands.hpp" // node_address
#include "apps/common/progress.hpp"
#include "apps/terminal/slow_work.hpp" // quiet_for
#include "apps/train/follow.hpp"
#include "runtime/model/data/corpus.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

namespace shoal::apps {

/// Prints the run that will start: all of it as JSON, or a line with the main
/// values.
void introduce(progress& out, const runtime::run_config& run, bool as_json);

/// Tells of the file that has all keys of a run that has begun.
void say_where_keys_are(progress& out, const std::filesystem::path& folder,
                        bool as_json);

/// Warns of tensors in the folder of a model that the model does not use.
void say_unused(progress& out, const std::filesystem::path& folder);

/// Prints what text was read, and on how much of it the held-out loss is
/// measured. @param bigram  also a byte-bigram model's loss
void describe(progress& out, const runtime::run_config& run,
              const model::corpus& text, const model::corpus_report& report,
              bool bigram);

/// That a job goes on from a checkpoint: in metrics.jsonl, its lines follow.
std::string resumed_text(const std::filesystem::path& from);

/// Puts that line there, for the commands that will watch a job, if this one does
/// not.
void mark_resumed(progress& out, const std::filesystem::path& folder,
                  const std::filesystem::path& from);

/// Whether a job says that no disk takes its last checkpoint.
bool waits_for_room(const runtime::job_event& e);

/// Where the last checkpoint of a run is, since it is not in `out`, and the
/// commands that put it there. @param kept  may be empty: with a node, if any
/// @param finished  there are no steps to go on with
/// @param attach  the command that fetches it from a node; empty: there is none
std::string
kept_text(const std::filesystem::path& kept, const std::filesystem::path& out,
          bool finished, const std::string& attach = {});

/// The command that goes on with the run in `out`, for users.
/// @param named  what the command was given
/// @param now    where its client is, as address_now() says
std::string resume_text(const std::filesystem::path& out,
                        const node_address& named, node_address now);

/// Of a command that is stopped by a second signal, and whose run ends with it,
/// or goes on elsewhere. @param cancel  ends the job; empty: it ends anyway
std::string
stopped_text(const std::filesystem::path& out, const std::string& resume);
std::string unwatched_text(const std::string& job, const std::string& cancel,
                           const std::string& attach);

/// Says once what takes long, if it does; called while it goes on.
class slow_notice {
public:
  /// @pre `out` outlives it
  slow_notice(progress& out, std::string what)
    : out_(out), what_(std::move(what)) {}
  void operator()() {
    if (std::chrono::steady_clock::now() - since_ > slow_work::quiet_for
        && !std::exchange(said_, true))
      out_.aside(what_);
  }

private:
  progress& out_;
  std::string what_;
  std::chrono::steady_clock::time_point since_ =
    std::chrono::steady_clock::now();
  bool said_ = false;
};

/// Of a job of the same name, behind that notice: the folder may have been copied.
inline constexpr const char* same_run_text =
  ". If that one goes on from a copy of this folder, both train the same "
  "steps: "
  "`shoal cancel` one of them";

/// How a job has ended without a result.
std::string ended_text(const follower& watch, const std::string& job);

/// What is left of a job that was cancelled, and the commands that go on.
/// @param resume  the command that goes on with what is here
/// @param attach  the one that fetches what is not; empty: there is none
std::string cancelled_text(const follower& watch, const std::string& resume,
                           const std::string& attach);

} // namespace shoal::apps
