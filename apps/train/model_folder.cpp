// apps/train/model_folder.cpp -- a model, or the newest checkpoint of a run.
#include "apps/train/model_folder.hpp"

#include "apps/terminal/confirm.hpp" // shell_path
#include "apps/terminal/slow_work.hpp"
#include "apps/train/follow.hpp"
#include "apps/train/run_lines.hpp"
#include "apps/train/run_record.hpp"
#include "apps/transfer/model_export.hpp"
#include "runtime/files/temporary_folder.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/identity/stale_files.hpp"
#include "runtime/model/gguf/gguf_directory.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

namespace shoal::apps {

static bool has_weights(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "model.safetensors", error)
         || std::filesystem::exists(folder / "model.safetensors.index.json",
                                    error);
}

/// Whether a run has no step after this one.
static bool has_ended(const std::filesystem::path& folder, std::int64_t step) {
  const auto record = read_record(folder);
  return record && step >= record->run.steps;
}

/// Whether a run has a checkpoint after its model, which is that of one, too. Times of
/// files count only where there are no checksums, as a copy may not keep them.
static bool
went_on(const std::filesystem::path& folder,
        const std::pair<std::int64_t, std::filesystem::path>& newest) {
  if (const std::int64_t step = model_step(folder); step >= 0)
    return step < newest.first;
  const auto has = checksums_of_model(folder),
             latest = checksums_of_model(newest.second);
  if (has && latest && !has->empty() && !latest->empty())
    return true; // of a checkpoint that is gone
  if (has && has->empty() && has_ended(folder, newest.first))
    return false; // the user has changed it
  std::error_code old, young;
  const auto kept =
    std::filesystem::last_write_time(folder / "config.json", old);
  const auto made =
    std::filesystem::last_write_time(newest.second / "config.json", young);
  return !old && !young && made > kept;
}

namespace {

/// Folders that are removed when nobody needs them, or when the process ends; those of
/// killed ones when the next is made. Threads: any.
class passing_folders {
public:
  ~passing_folders() {
    std::error_code ignored;
    for (const auto& f : folders_)
      std::filesystem::remove_all(f.path, ignored);
  }
  /// @param model  of make(), or any other folder, which stays
  void let_go(const std::filesystem::path& model) {
    const std::lock_guard lock(mutex_);
    std::erase_if(folders_, [&](const passing& f) {
      std::error_code ignored;
      return f.path == model.parent_path()
             && std::filesystem::remove_all(f.path, ignored) > 0;
    });
  }
  model::result<std::filesystem::path> make() {
    const std::lock_guard lock(mutex_);
    std::error_code error;
    std::string name;
    try {
      const auto temp = runtime::temporary_folder();
      runtime::remove_abandoned_dirs(temp, runtime::gguf_folder);
      name =
        (temp / (runtime::gguf_folder + std::to_string(::getpid()) + "-XXXXXX"))
          .string();
    } catch (const std::exception& e) {
      return model::failure{e.what()};
    }
    if (::mkdtemp(name.data()) == nullptr)
      return model::failure{"cannot make a folder " + name + ": "
                            + std::system_category().message(errno)};
    try {
      folders_.push_back(
        {name, std::make_unique<runtime::data_dir_lock>(name)});
    } catch (const std::exception& e) {
      std::filesystem::remove_all(name, error);
      return model::failure{e.what()};
    }
    auto model = folders_.back().path / "model"; // beside the lock
    if (!std::filesystem::create_directory(model, error))
      return model::failure{model.string() + ": " + error.message()};
    return model;
  }

private:
  struct passing {
    std::filesystem::path path;
    std::unique_ptr<runtime::data_dir_lock> lock;
  };
  std::mutex mutex_;
  std::vector<passing> folders_;
};

passing_folders& unpacked_folders() {
  static passing_folders folders;
  return folders;
}

/// A GGUF file as a folder that goes with the process.
model::result<std::filesystem::path>
unpacked(const std::filesystem::path& file,
         const std::function<bool()>& goes_on) {
  auto folder = unpacked_folders().make();
  if (!folder)
    return folder.why();
  std::cerr << "shoal: making a directory of " << file.string() << ": "
            << folder->string() << "\n";
  const auto made = model::gguf::write_directory(
    file, *folder, shown_work([&] { return !goes_on || goes_on(); }));
  if (!made)
    return model::failure{
      made.message()
      + (made.message().find("No space left") == std::string::npos
           ? ""
           : " (TMPDIR names another folder)")};
  if (!made->no_text.empty())
    std::cerr << "shoal: no tokenizer: " << made->no_text << "\n";
  return *folder;
}

} // namespace

void let_go_of(const std::filesystem::path& model) {
  unpacked_folders().let_go(model);
}

model::result<std::filesystem::path>
model_in(const std::filesystem::path& model, const download_terms& terms) {
  const auto found = local_model(model, terms);
  if (!found)
    return found.why();
  const std::filesystem::path& folder = *found;
  std::error_code error;
  if (model::gguf::is_file(folder))
    return unpacked(folder, terms.goes_on);
  auto all = checkpoints(folder);
  const auto lost = std::erase_if(all, [](const auto& checkpoint) {
    std::error_code ignored;
    return !std::filesystem::exists(checkpoint.second / "config.json", ignored);
  });
  if (std::filesystem::exists(folder / "config.json", error)
      && (all.empty() || has_weights(folder))) {
    if (all.empty() || !went_on(folder, all.back()))
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
                  : has_ended(folder, all.back().first)
                    ? "the run in " + folder.string()
                        + " has ended, but has left no model there (`shoal "
                          "train "
                        + shell_path(folder.string())
                        + " --resume` makes one): this is its last "
                          "checkpoint, "
                    : "the run in " + folder.string()
                        + " has not reached its last step: this is its newest "
                          "checkpoint, ")
              << all.back().second.string() << "\n";
    return all.back().second;
  }
  if (has_weights(folder) || lost > 0)
    return model::failure{
      folder.string() + " has "
      + (has_weights(folder) ? "a model's weights" : "checkpoints")
      + ", but no config.json, which says what model it is: put that file "
        "back, from a copy or from another checkpoint of the run"};
  if (const auto record = read_record(folder)) // the folder had no room for it
    if (const auto kept = kept_for(folder, record->jobs); !kept.empty())
      return model::failure{folder.string() + " has no model yet: "
                            + kept_text(kept, folder, false)};
  if (std::filesystem::exists(folder / record_name, error))
    return model::failure{
      folder.string()
      + " has no model yet: its run has saved no checkpoint so far (one comes "
        "every checkpoint.interval steps), and goes on, was stopped or has "
        "failed"};
  return folder; // its reader reports what is missing
}

} // namespace shoal::apps
