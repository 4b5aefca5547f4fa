// apps/transfer/model_export.cpp -- exports a checkpoint without its optimizer.
#include "apps/transfer/model_export.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/files/file_io.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;

namespace {

/// Whether a file lies beside the weights, where users change it.
bool beside_weights(const std::string& name) {
  return name == "config.json" || actors::carried_on(name);
}

/// Replaces a file by another; it is complete at any time.
model::status put(const fs::path& from, const fs::path& to) {
  if (beside_weights(to.filename().string())) {
    // A link would let a user's change of one reach the other.
    const auto bytes =
      model::read_file(from, std::numeric_limits<std::uint64_t>::max());
    return bytes ? model::write_file(to, *bytes) : model::status(bytes.why());
  }
  std::error_code error;
  const fs::path partial = to.string() + ".partial";
  fs::remove(partial, error);
  fs::create_hard_link(from, partial, error);
  if (error)
    fs::copy_file(from, partial, fs::copy_options::overwrite_existing, error);
  if (!error)
    fs::rename(partial, to, error);
  std::error_code ignored; // rename() does not replace a link to the same file
  fs::remove(partial, ignored);
  if (error)
    return failure{to.string() + ": " + error.message()};
  return model::done{};
}

/// Whether a file that a model does not have must not lie beside it: a single
/// file of weights hides an index.
bool hides_a_model(const std::string& name) {
  const std::string model = actors::model_files;
  return name == actors::single_name(model) || name == actors::index_name(model)
         || (name.starts_with(model + "-") && name.ends_with(".safetensors"));
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const auto bytes = fs::file_size(a, error);
  if (error || bytes != fs::file_size(b, error) || error)
    return false;
  std::ifstream one(a, std::ios::binary), other(b, std::ios::binary);
  using in = std::istreambuf_iterator<char>;
  return one && other && std::equal(in(one), in(), in(other), in());
}

/// Whether the file `name` of `folder` is as the checkpoint or another of its run
/// has it.
bool is_exported(const fs::path& folder, const fs::path& name,
                 const fs::path& checkpoint) {
  if (same_bytes(folder / name, checkpoint / name))
    return true;
  std::error_code error;
  for (fs::directory_iterator at(checkpoint.parent_path(), error), end;
       !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with("step-")
        && same_bytes(folder / name, at->path() / name))
      return true;
  return false;
}

} // namespace

model::result<model::checksums> checksums_of_model(const fs::path& folder) {
  auto sums = model::load_checksums(folder);
  if (sums)
    std::erase_if(
      *sums, [](const auto& sum) { return actors::of_optimizer(sum.first); });
  return sums;
}

model::result<std::vector<std::string>>
export_model(const fs::path& checkpoint, const fs::path& folder) {
  const auto sums = checksums_of_model(checkpoint);
  if (!sums)
    return sums.why();
  const fs::path listed = folder / model::checksums_name;
  std::error_code error;
  fs::remove(listed, error); // they belong to the former model
  if (error)
    return failure{listed.string() + ": " + error.message()};
  std::vector<std::string> kept;
  std::vector<fs::path> old;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const fs::path name = file.path().filename();
    const bool in_place = fs::exists(checkpoint / name, error);
    if (beside_weights(name.string()) && file.is_regular_file(error)) {
      if (!is_exported(folder, name, checkpoint))
        kept.push_back(name.string());
      else if (!in_place)
        old.push_back(file.path());
    } else if (hides_a_model(name.string()) && !in_place) {
      old.push_back(file.path());
    }
  }
  if (error)
    return failure{folder.string() + ": " + error.message()};
  std::ranges::sort(kept);
  for (const auto& file : fs::directory_iterator(checkpoint, error)) {
    const fs::path name = file.path().filename();
    if (std::ranges::binary_search(kept, name.string()))
      continue;
    if (actors::of_optimizer(name.string()) || name == model::checksums_name)
      continue;
    if (auto done = put(file.path(), folder / name); !done)
      return done.why();
  }
  if (error)
    return failure{checkpoint.string() + ": " + error.message()};
  for (const fs::path& file : old)
    if (!error)
      fs::remove(file, error);
  if (error)
    return failure{folder.string() + ": " + error.message()};
  if (!sums->empty())
    if (auto put = model::write_file(listed, model::to_json(*sums)); !put)
      return put.why();
  return kept;
}

std::string
kept_files_text(const std::vector<std::string>& names,
                const fs::path& checkpoint, const fs::path& folder) {
  if (names.empty())
    return {};
  const bool one = names.size() == 1;
  return core::listed(names) + " in " + folder.string()
         + (one ? " stays as it is, since it was"
                : " stay as they are, since they were")
         + " changed or added there; the run's own files are in "
         + checkpoint.string();
}

} // namespace shoal::apps
