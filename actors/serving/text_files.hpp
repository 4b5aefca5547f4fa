// actors/serving/text_files.hpp -- the files of a served model's text, as a folder.
//
// The functions that read a tokenizer want a directory of Hugging Face; the files of a
// served model are blobs.
//
// Threads: blocking; on the disk queue.
// Errors:  the last file that could not be written, and why.
#pragma once

#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <filesystem>
#include <memory>

namespace shoal::runtime {
class store;
}

namespace shoal::actors {

/// Writes the small files of a model, as far as they are here, into a folder, which is
/// emptied before.
model::status
put_text_files(const core::blob_digest& manifest, runtime::store& from,
               const std::filesystem::path& data_dir,
               const std::filesystem::path& folder);

/// The bytes of each token, by a folder that is written for it and removed.
/// @param vocabulary ids of the model
model::result<std::shared_ptr<const core::grammar::token_list>>
read_token_texts(const core::blob_digest& manifest, runtime::store& from,
                 const std::filesystem::path& data_dir,
                 const std::filesystem::path& folder, std::size_t vocabulary);

} // namespace shoal::actors
