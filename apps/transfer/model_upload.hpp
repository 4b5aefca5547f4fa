// apps/transfer/model_upload.hpp -- uploads a model's directory to the shoal's
// store.
//
// A peer fetches the files that contain tensors of its layers. So weights (and
// an optimizer's state) are uploaded as files of at most part_bytes, however
// few and large those of the directory are: the same tensors, byte for byte,
// with an index. Small files are uploaded unchanged. Files that no run reads
// are not uploaded.
//
// Threads: blocking.
// Errors:  a failure names the file, also one that shrinks meanwhile; files that were
//          uploaded do no harm.
#pragma once

#include "apps/transfer/tokenizer_files.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"
#include "runtime/files/file_piece.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace shoal::apps {

/// Data of one file, except for larger tensors.
inline constexpr std::uint64_t upload_part_bytes = std::uint64_t{64} << 20;

/// Uploads a blob that lies in several places, under a name.
using put_pieces = std::function<model::status(
  std::span<const model::file_piece> pieces, core::blob_digest&)>;

struct uploaded_model {
  core::blob_digest manifest{};
  std::uint64_t bytes = 0; ///< of all files
};

/// Checks, before slow work is done for it, whether a directory holds a model
/// whose files are complete; for an optimizer's state, that its files can be
/// read and match their checksums.
model::status check_model(const std::filesystem::path& directory,
                          const model::watch& told = {});

/// Uploads a model or checkpoint of `step`. The calls of `put` and their bytes
/// depend on the files alone; the last one is of the manifest.
model::result<uploaded_model>
upload_model(const std::filesystem::path& directory, std::uint64_t step,
             const put_pieces& put,
             std::uint64_t part_bytes = upload_part_bytes);
/// The same without an optimizer's state.
model::result<uploaded_model>
upload_weights(const std::filesystem::path& directory, const put_pieces& put,
               std::uint64_t part_bytes = upload_part_bytes);

/// Bytes of the files of a model's weights.
model::result<std::uint64_t>
weights_bytes(const std::filesystem::path& directory);

/// Uploads only a tokenizer, which a run from random weights copies to its
/// model.
model::result<uploaded_model>
upload_tokenizer(const tokenizer_files& files, const put_pieces& put);

} // namespace shoal::apps
