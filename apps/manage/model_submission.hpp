// apps/manage/model_submission.hpp -- submits the job that serves a model: for
// `serve`, and for POST /models/load.
//
//   read_folder() -> connect -> send_folder()      a model's files
//                    connect -> send_followed()    the checkpoints of a training job
//
// A node whose disk has no room for the whole model gets the job first, then its
// weights, which go on to other peers (passed_upload.hpp).
//
// Threads: blocking. Errors: a failure says what is wrong with which thing.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/remote/status_json.hpp"
#include "apps/train/model_folder.hpp"
#include "apps/transfer/model_upload.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/view.hpp"
#include "runtime/core/watch.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace shoal::apps {

/// Who submits a model.
class submission_host {
public:
  virtual ~submission_host() = default;
  virtual void say(const std::string& notice) = 0;
  /// How the user ends a wait: "Ctrl-C: end".
  virtual std::string way_to_end() const = 0;
  virtual bool goes_on() = 0;
  virtual model::watch watch_work() = 0;
};

class model_submission {
public:
  /// @pre both outlive it
  model_submission(const serve_options& o, submission_host& host)
    : o_(o), host_(host) {}
  ~model_submission() { let_go_of(folder_); }
  model_submission(const model_submission&) = delete;
  model_submission& operator=(const model_submission&) = delete;

  /// Finds the model of o.model, or downloads it, and checks its files.
  model::status read_folder();
  /// Uploads what read_folder() has found, and submits its job.
  model::status send_folder(runtime::client& client);
  /// Submits a job that serves the newest checkpoint of the training job o.model.
  model::status send_followed(runtime::client& client);

  core::job_id job() const noexcept { return job_; }
  const std::string& name() const noexcept { return name_; }
  /// Where the node answers clients; "" if it answers none.
  const std::string& endpoint() const noexcept { return endpoint_; }

private:
  /// A job whose checkpoints are served.
  struct followed {
    std::string name;
    core::job_id id = 0;
    std::uint64_t step = 0;
    core::blob_digest manifest{};
    std::vector<std::byte> listing; ///< the manifest
    std::uint64_t bytes = 0;
    runtime::serve_config config;
  };
  using give_weights = std::function<model::status(core::job_entry&)>;

  model::result<followed> find_followed(runtime::client& client);
  model::status get(runtime::client& client, const core::blob_digest& digest,
                    std::size_t bytes_max, std::vector<std::byte>& out);
  model::status read_checkpoint(runtime::client& client, followed& job);
  /// @param usual_name without --as
  /// @param weights gives the entry its weights
  /// @param bytes of the files that are uploaded; 0: none are
  model::status
  submit(runtime::client& client, const runtime::serve_config& config,
         const std::string& usual_name, const give_weights& weights,
         std::uint64_t bytes = 0);
  model::failure name_is_taken() const;
  bool waits_for_room();
  put_pieces counted(put_pieces put, const model::watch& told) const;

  const serve_options& o_;
  submission_host& host_;
  std::filesystem::path folder_; ///< with the model's files
  runtime::serve_config config_; ///< of that model
  std::uint64_t bytes_ = 0;      ///< of its weights
  core::job_id job_ = 0;
  std::string name_, endpoint_;
  core::view view_;        ///< before it was submitted
  core::peer_id node_{};   ///< the one that takes the files
  std::uint64_t room_ = 0; ///< of its disk; 0: not known
  bool passes_ = false;    ///< the node has no room for the whole model
  std::chrono::steady_clock::time_point no_room_since_{}, asked_for_room_{};
  bool room_said_ = false;
};

} // namespace shoal::apps
