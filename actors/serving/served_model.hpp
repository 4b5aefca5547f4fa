// actors/serving/served_model.hpp -- a served model as a gateway knows it.
//
// Its tokenizer and sampling defaults come from the files of the model, which
// are fetched from any member; its streams are core::replay's.
//
// Threads: the gateway's; files are read on the disk queue.
// Errors:  while files cannot be fetched, requests wait.
#pragma once

#include "actors/serving/pipeline_scaler.hpp"
#include "actors/training/later.hpp"
#include "runtime/core/serving/replay.hpp"
#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/text/tokenizer.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

/// What the files say of a model's text.
struct model_text {
  std::shared_ptr<const model::tokenizer> tokenizer; ///< null: none
  std::string no_text; ///< why there is no tokenizer
  model::generation_defaults defaults;
};

class served_model {
public:
  served_model(core::job_entry entry, runtime::serve_config config)
    : scaler(config), entry_(std::move(entry)), config_(std::move(config)) {}

  const core::job_entry& entry() const noexcept { return entry_; }
  const runtime::serve_config& config() const noexcept { return config_; }
  const std::string& name() const noexcept { return entry_.name; }
  /// Null until its files are here.
  const std::shared_ptr<const model_text>& text() const noexcept {
    return text_;
  }
  core::replay& streams() noexcept { return streams_; }
  const core::replay& streams() const noexcept { return streams_; }

  /// Tokens that end a sequence.
  std::vector<core::token_id> ends() const;

  /// Fetches and reads the files of its text; `done` runs by `post` each time that
  /// it has ended, with success if text() is set.
  void fetch_text(runtime::context& node, std::vector<core::peer_id> holders,
                  const poster& post, std::function<void()> done);

  std::vector<std::function<void()>> waiting; ///< for text()
  pipeline_scaler scaler;

private:
  core::job_entry entry_;
  runtime::serve_config config_;
  std::shared_ptr<const model_text> text_;
  core::replay streams_;
};

} // namespace shoal::actors
