// apps/manage/passed_upload.hpp -- uploads a model to a node whose disk has not the
// room for all of it.
//
// The job is submitted first, with the list of the model's files. Then the node
// gets the weights, file by file, as far as its disk has room; the peers that keep
// them fetch them, and what is kept elsewhere is removed here.
//
//   list() -> submit the job -> weights()
//
// Threads: blocking. Cost: reads and hashes all files twice. Errors: a failure says
// why; without weights() the job waits for them.
#pragma once

#include "apps/transfer/model_upload.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/planning/file_keepers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace shoal::apps {

class passed_upload {
public:
  /// @pre `client` outlives it
  /// @param room of the node's disk: files are cut to less than that
  passed_upload(std::filesystem::path directory, runtime::client& client,
                std::uint64_t room)
    : directory_(std::move(directory)), client_(client),
      part_bytes_(
        std::clamp(room / room_share, part_bytes_min, upload_part_bytes)) {}

  /// Uploads all but the weights.
  model::result<uploaded_model> list();

  /// @param goes_on asked while the node has no room
  /// @param told how far it is
  model::status
  weights(const std::function<bool()>& goes_on, const model::watch& told = {});

  /// The weights of the list.
  [[nodiscard]] std::vector<core::model_file> weight_files() const;

private:
  model::status put_others();
  model::status changed() const;

  /// Files on their way take at most this share of the disk, if tensors are small
  /// enough.
  static constexpr std::uint64_t room_share = 8;
  static constexpr std::uint64_t part_bytes_min = std::uint64_t{1} << 20;

  const std::filesystem::path directory_;
  runtime::client& client_;
  const std::uint64_t part_bytes_;
  struct file {
    core::blob_digest digest{};
    std::uint64_t bytes = 0;
    bool is_weights = false;
  };
  std::vector<file> files_; ///< in the order of the upload
};

} // namespace shoal::apps
