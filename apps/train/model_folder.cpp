// apps/train/model_folder.cpp -- a model, or the newest checkpoint of a run.
#include "apps/train/model_folder.hpp"

#include "apps/train/follow.hpp"
#include "apps/train/run_record.hpp"

#include <iostream>
#include <vector>

namespace shoal::apps {

static bool has_weights(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "model.safetensors", error)
         || std::filesystem::exists(folder / "model.safetensors.index.json",
                                    error);
}

model::result<std::filesystem::path>
model_in(const std::filesystem::path& folder) {
  std::error_code error;
  auto all = checkpoints(folder);
  const auto lost = std::erase_if(all, [](const auto& checkpoint) {
    std::error_code ignored;
    return !std::filesystem::exists(checkpoint.second / "config.json", ignored);
  });
  if (std::filesystem::exists(folder / "config.json", error)) {
    // A model has its checkpoint's file, or a copy, which is not older.
    if (all.empty()
        || std::filesystem::last_write_time(all.back().second / "config.json",
                                            error)
             <= std::filesystem::last_write_time(folder / "config.json", error)
        || error)
      return folder;
    std::cerr << "shoal: the run in " << folder.string()
              << " went on after it had left a model: this is its newest "
                 "checkpoint, "
              << all.back().second.string() << "\n";
    return all.back().second;
  }
  if (!all.empty()) {
    std::cerr << "shoal: "
              << (has_weights(folder)
                    ? "the model in " + folder.string()
                        + " cannot be read, as its config.json is missing: "
                          "this is the newest checkpoint, "
                    : "the run in " + folder.string()
                        + " has not ended: this is its newest checkpoint, ")
              << all.back().second.string() << "\n";
    return all.back().second;
  }
  if (has_weights(folder) || lost > 0)
    return model::failure{
      folder.string() + " has "
      + (has_weights(folder) ? "a model's weights" : "checkpoints")
      + ", but no config.json, which says what model it is: put that file "
        "back, from a copy or from another checkpoint of the run"};
  if (std::filesystem::exists(folder / record_name, error))
    return model::failure{
      folder.string()
      + " has no model yet: its run has not ended and has saved no checkpoint "
        "so far (one comes every checkpoint.interval steps)"};
  return folder; // its reader reports what is missing
}

} // namespace shoal::apps
