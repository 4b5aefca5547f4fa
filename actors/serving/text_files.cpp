// actors/serving/text_files.cpp -- blobs to files; tokens from them.
#include "actors/serving/text_files.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/openai/rules/call_rule.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace shoal::actors {

model::status
put_text_files(const core::blob_digest& manifest, runtime::store& from,
               const std::filesystem::path& data_dir,
               const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  const auto listed = read_manifest(manifest, from);
  if (!listed)
    return listed.why();
  ignored = runtime::make_folder_below(data_dir, folder);
  model::status out = model::done{};
  for (const manifest_file& f : listed->files) {
    if (!of_text(f.name))
      continue;
    std::error_code error;
    const auto blob = from.read(f.digest, error);
    if (!blob) {
      out = model::failure{f.name + ": " + error.message()};
      continue;
    }
    const std::string_view text(
      reinterpret_cast<const char*>(blob->bytes().data()),
      blob->bytes().size());
    if (auto wrote = model::write_file(folder / f.name, text); !wrote)
      out = wrote;
  }
  return out;
}

/// The bytes of each token behind others, or as the first one of a text.
static model::result<std::vector<std::string>>
token_texts(const model::tokenizer& by, bool first, std::size_t vocabulary) {
  auto bytes = by.token_bytes(first);
  if (!bytes)
    return bytes;
  // A byte that is no part of UTF-8 begins marks, and no rule allows it elsewhere.
  for (std::string& text : *bytes)
    if (text.find(openai::mark_bytes("")) != text.npos)
      text.clear();
  if (const auto* file = by.file())
    for (const char* mark : openai::special_marks)
      if (const auto id = file->id_of(mark);
          id && file->is_special(*id) && std::size_t(*id) < bytes->size())
        (*bytes)[std::size_t(*id)] = openai::mark_bytes(mark);
  bytes->resize(std::min(bytes->size(), vocabulary));
  return bytes;
}

model::result<std::shared_ptr<const core::grammar::token_list>>
read_token_texts(const core::blob_digest& manifest, runtime::store& from,
                 const std::filesystem::path& data_dir,
                 const std::filesystem::path& folder, std::size_t vocabulary) {
  const model::status put = put_text_files(manifest, from, data_dir, folder);
  const auto loaded = model::load_tokenizer(folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!loaded)
    return loaded.why();
  if (!*loaded && !put)
    return put.why();
  if (!*loaded)
    return model::failure{"the model has no tokenizer"};
  auto behind = token_texts(**loaded, false, vocabulary);
  if (!behind)
    return behind.why();
  auto first = token_texts(**loaded, true, vocabulary);
  if (!first)
    return first.why();
  return std::make_shared<const core::grammar::token_list>(*std::move(behind),
                                                           *std::move(first));
}

} // namespace shoal::actors
