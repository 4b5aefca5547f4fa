// apps/transfer/model_export.cpp -- exports a checkpoint without its optimizer.
#include "apps/transfer/model_export.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/files/file_io.hpp"

#include <string>
#include <system_error>
#include <vector>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;

namespace {

/// Replaces a file by another; it is complete at any time.
std::error_code put(const fs::path& from, const fs::path& to) {
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
  return error;
}

/// Whether a file that a model does not have must not lie beside it: a single
/// file of weights hides an index, and an old tokenizer would be used for this
/// model.
bool hides_a_model(const std::string& name) {
  const std::string model = actors::model_files;
  return name == actors::single_name(model) || name == actors::index_name(model)
         || (name.starts_with(model + "-") && name.ends_with(".safetensors"))
         || actors::carried_on(name);
}

} // namespace

model::result<model::checksums> checksums_of_model(const fs::path& folder) {
  auto sums = model::load_checksums(folder);
  if (sums)
    std::erase_if(
      *sums, [](const auto& sum) { return actors::of_optimizer(sum.first); });
  return sums;
}

model::status export_model(const fs::path& checkpoint, const fs::path& folder) {
  const auto sums = checksums_of_model(checkpoint);
  if (!sums)
    return sums.why();
  const fs::path listed = folder / model::checksums_name;
  std::error_code error;
  fs::remove(listed, error); // they belong to the former model
  if (error)
    return failure{listed.string() + ": " + error.message()};
  for (const auto& file : fs::directory_iterator(checkpoint, error)) {
    const fs::path name = file.path().filename();
    if (actors::of_optimizer(name.string()) || name == model::checksums_name)
      continue;
    if (const auto fault = put(file.path(), folder / name))
      return failure{(folder / name).string() + ": " + fault.message()};
  }
  if (error)
    return failure{checkpoint.string() + ": " + error.message()};
  std::vector<fs::path> old;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const fs::path name = file.path().filename();
    if (hides_a_model(name.string()) && !fs::exists(checkpoint / name, error))
      old.push_back(file.path());
  }
  for (const fs::path& file : old)
    if (!error)
      fs::remove(file, error);
  if (error)
    return failure{folder.string() + ": " + error.message()};
  if (!sums->empty())
    return model::write_file(listed, model::to_json(*sums));
  return model::done{};
}

} // namespace shoal::apps
