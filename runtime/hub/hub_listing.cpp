// runtime/hub/hub_listing.cpp -- reads the hub's JSON.
#include "runtime/hub/hub_listing.hpp"

#include "runtime/files/json.hpp"
#include "runtime/files/json_scan.hpp"
#include "runtime/hub/hub_name.hpp"

#include <algorithm>
#include <optional>

namespace shoal::hub {
namespace {

using json = nlohmann::json;
using model::failure;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

std::optional<std::uint64_t> bytes_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()
      || found->get<std::uint64_t>() > file_bytes_max)
    return std::nullopt;
  return found->get<std::uint64_t>();
}

/// A hash of this many digits, or nothing.
std::string hash_at(const json& object, const char* key, std::size_t digits) {
  std::string hash = text_at(object, key);
  return hash.size() == digits && is_hex(hash) ? hash : std::string();
}

std::optional<hub_file> file_of(const json& entry) {
  if (!entry.is_object())
    return std::nullopt;
  hub_file out;
  out.path = text_at(entry, "rfilename");
  if (!is_file_path(out.path))
    return std::nullopt;
  auto bytes = bytes_at(entry, "size");
  out.hash = hash_at(entry, "blobId", 40);
  if (const auto lfs = entry.find("lfs");
      lfs != entry.end() && lfs->is_object()) {
    out.kind = hash_kind::sha256;
    out.hash = hash_at(*lfs, "sha256", 64);
    bytes = bytes_at(*lfs, "size"); // entry's may be that of the pointer
  }
  if (!bytes)
    out.hash.clear();
  out.bytes = bytes.value_or(0);
  return out;
}

} // namespace

const hub_file* hub_listing::find(std::string_view path) const {
  const auto found = std::ranges::find(files, path, &hub_file::path);
  return found == files.end() ? nullptr : &*found;
}

/// Ten for each file.
static constexpr std::size_t values_max = 10 * listed_files_max;

model::result<hub_listing>
parse_listing(std::string_view text, std::string_view where) {
  const std::string source(where);
  if (text.size() > listing_bytes_max)
    return failure{source + ": has more than "
                   + std::to_string(listing_bytes_max) + " bytes"};
  if (model::count_values(text, values_max + 1) > values_max)
    return failure{source + ": has more than " + std::to_string(values_max)
                   + " values"};
  const auto all = model::parse_json_object<json>(text, where);
  if (!all)
    return all.why();
  hub_listing out;
  out.commit = text_at(*all, "sha");
  if (!is_commit(out.commit))
    return failure{source + ": names no commit (\"sha\")"};
  const auto files = all->find("siblings");
  if (files == all->end() || !files->is_array())
    return failure{source + ": lists no files (\"siblings\")"};
  if (files->size() > listed_files_max)
    return failure{source + ": lists more than "
                   + std::to_string(listed_files_max) + " files"};
  for (const json& entry : *files)
    if (auto file = file_of(entry))
      out.files.push_back(*std::move(file));
  return out;
}

std::vector<const hub_file*> describing_files(const hub_listing& listing) {
  std::vector<const hub_file*> out;
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "merges.txt", "tokenizer.model", "chat_template.jinja",
        "chat_template.json"})
    if (const hub_file* file = listing.find(name))
      out.push_back(file);
  return out;
}

std::vector<std::string> gguf_files(const hub_listing& listing) {
  std::vector<std::string> out;
  for (const hub_file& file : listing.files)
    if (file.path.ends_with(".gguf"))
      out.push_back(file.path);
  std::ranges::sort(out);
  return out;
}

} // namespace shoal::hub
