// actors/gateway/served_model.hpp -- a served model as a gateway knows it.
//
// Its tokenizer and sampling defaults come from the files of the model, which
// are fetched from any member; the streams of each of its versions are
// core::replay's.
//
// Threads: the gateway's; files are read on the disk queue.
// Errors:  while files cannot be fetched, requests wait.
#pragma once

#include "actors/gateway/pipeline_scaler.hpp"
#include "actors/gateway/prompts/prompt_model.hpp"
#include "actors/training/later.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/serving/replay.hpp"
#include "runtime/core/serving/version_turn.hpp"
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/generation_options.hpp"
#include "runtime/work/quorum_changed.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

/// A version of a model: its streams, and how its pipelines are.
struct served_version {
  core::model_version is;
  core::replay streams;
  bool was_ready = false;
  /// Since when it has had no stream at any gateway, as far as known here.
  core::nanoseconds idle_since = 0;
  /// Since when a newer one has been ready, as known here; nothing: none is.
  std::optional<core::nanoseconds> former_since;
  /// Since when it has been served, as known here.
  core::nanoseconds since = 0;
  /// Since when not all of its pipelines are ready, as known here; nothing: all are.
  std::optional<core::nanoseconds> unready_since;

  /// Whether what waits for it goes on elsewhere, if it can: since no pipeline
  /// answers; with tokens already only when that lasts.
  bool must_be_left(bool has_tokens, core::nanoseconds now) const {
    return streams.ready() == 0
           && (!has_tokens
               || (unready_since
                   && now - *unready_since >= core::version_turn::loads_max));
  }
};

class served_model {
public:
  served_model(core::job_entry entry, runtime::serve_config config)
    : scaler(config), entry_(std::move(entry)),
      prompt_(std::make_shared<prompt_model>(
        prompt_model{entry_.name, std::move(config), nullptr})) {
    versions_.push_back(std::make_shared<served_version>());
    versions_.back()->is = core::served_versions(entry_).front();
  }

  const core::job_entry& entry() const noexcept { return entry_; }
  const runtime::serve_config& config() const noexcept {
    return prompt_->config;
  }
  const std::string& name() const noexcept { return entry_.name; }
  /// Null until its files are here.
  const std::shared_ptr<const model_text>& text() const noexcept {
    return prompt_->text;
  }
  /// What other threads need of it.
  const std::shared_ptr<const prompt_model>& prompt() const noexcept {
    return prompt_;
  }
  /// Newest first; at least one.
  const std::vector<std::shared_ptr<served_version>>&
  versions() const noexcept {
    return versions_;
  }
  /// The version with which a request begins: the newest that is ready; if none
  /// is, the newest.
  const std::shared_ptr<served_version>& current() const;
  /// The one with which a request goes on behind an event; without one it begins.
  /// Null: it is not served any more.
  std::shared_ptr<served_version>
  version_for(const std::optional<openai::event_id>& after) const;
  /// What is told of a version: the step of the job that the model follows.
  std::optional<std::uint64_t> step_of(const served_version& v) const {
    return config().follows == 0 ? std::nullopt : std::optional(v.is.step);
  }
  /// Takes the versions of a view. @returns those that are gone
  std::vector<std::shared_ptr<served_version>>
  set_versions(const core::job_entry& entry, core::nanoseconds now);
  /// The versions whose pipelines are to be asked how they are: the newest one, and
  /// the others where that does not answer for long. They load again when they are
  /// asked.
  std::vector<std::shared_ptr<served_version>>
  to_ask(core::nanoseconds now) const;
  static constexpr core::nanoseconds unready_max = 5'000'000'000;

  /// Streams of all versions.
  std::size_t streams() const;

  /// Where it follows a job: the newest checkpoint of that job, as far as its log
  /// on this node says.
  struct followed {
    std::uint64_t read = 0; ///< events of the log
    std::optional<core::model_version> newest;
    core::nanoseconds proposed = 0;
    /// The checkpoint that is to be the next version.
    std::optional<core::model_version> next;
    bool fetching = false;         ///< its files
    core::nanoseconds fetched = 0; ///< when they were all here
    std::string lost; ///< a line about files that are gone; not said yet
    std::uint64_t lost_step = 0; ///< of the last such line
  } follows;

  /// Tokens that end the text of a request.
  std::vector<core::token_id>
  ends_of(const openai::generation_options& asked) const;

  /// Fetches and reads the files of its text; `done` runs by `post` each time that
  /// it has ended, with success if text() is set, else textless is.
  void fetch_text(runtime::context& node, std::vector<core::peer_id> holders,
                  const poster& post, std::function<void()> done);

  /// While no peers have room for any of its pipelines, as the newest view says, or
  /// no quorum is in contact and each of its pipelines has peers that are not.
  struct unplaced_time {
    std::uint64_t number = 0; ///< which such time
    std::string why;
    bool lasts = false; ///< it has lasted lasts_after
  };
  /// From then on requests are refused; a new plan after a death takes less.
  static constexpr std::chrono::seconds lasts_after{10};
  std::optional<unplaced_time> unplaced;
  /// Takes the place in a view. @returns the number of a time that begins, or 0
  std::uint64_t
  set_place(const core::assignment& a, const runtime::quorum_changed& quorum);
  /// Where the pipelines of a version are, and which of them are in contact.
  std::vector<core::pipeline_place>
  places(const core::assignment& a, const core::model_version& version,
         const runtime::quorum_changed& quorum) const;

  /// Since the files of its text could not be had, until they are here.
  struct textless_time {
    std::string why;    ///< of the last try
    bool late = false;  ///< lasts_after has passed
    bool lasts = false; ///< and a try has failed since: requests are refused
  };
  std::optional<textless_time> textless;

  std::vector<std::function<void()>> waiting; ///< for text()
  pipeline_scaler scaler;

private:
  void why_textless(std::string why);

  core::job_entry entry_;
  std::shared_ptr<const prompt_model> prompt_;
  std::vector<std::shared_ptr<served_version>> versions_;
  std::uint64_t times_unplaced_ = 0;
  /// Of files that have come and cannot be read: then there is no text, and why.
  static constexpr std::size_t text_tries_max = 10;
  std::size_t text_tries_ = 0;
};

} // namespace shoal::actors
