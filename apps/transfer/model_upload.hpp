// apps/transfer/model_upload.hpp -- a model's directory into the shoal's store.
//
// A peer fetches those files that have tensors of its layers, so weights (and
// an optimizer's state) go in as files of part_bytes at most, however few and
// large those of the directory are: the same tensors, byte for byte, with an
// index. What is small enough goes as it is. Files that no run reads stay.
//
// Threads: blocking.
// Errors:  a failure names the file; what was uploaded is of no harm.
#pragma once

#include "apps/transfer/tokenizer_files.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace shoal::apps {

/// Data of one file, but for tensors that are larger.
inline constexpr std::uint64_t upload_part_bytes = std::uint64_t{64} << 20;

/// Puts a blob that lies in several places, and names it.
using put_pieces = std::function<model::status(
  std::span<const std::span<const std::byte>> pieces, core::blob_digest&)>;

struct uploaded_model {
  core::blob_digest manifest{};
  std::uint64_t bytes = 0; ///< of all files
};

/// Whether a directory holds a model whose files are whole, before slow work is
/// done for it; of an optimizer's state, that its files can be read and have
/// their checksums.
model::status check_model(const std::filesystem::path& directory,
                          const model::watch& told = {});

/// Uploads a model or checkpoint of `step`.
model::result<uploaded_model>
upload_model(const std::filesystem::path& directory, std::uint64_t step,
             const put_pieces& put,
             std::uint64_t part_bytes = upload_part_bytes);

/// Uploads only a tokenizer: what a run from random weights carries to its
/// model.
model::result<uploaded_model>
upload_tokenizer(const tokenizer_files& files, const put_pieces& put);

} // namespace shoal::apps
