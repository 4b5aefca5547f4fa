// apps/follow.cpp -- events to lines, checkpoints to files.
#include "apps/follow.hpp"

#include "actors/checkpoint_export.hpp"
#include "actors/checkpoint_manifest.hpp"

#include <algorithm>

namespace shoal::apps {

namespace fs = std::filesystem;
using runtime::job_event;
using runtime::job_event_kind;

/// "step-12" -> 12, or -1.
static std::int64_t step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with("step-"))
    return -1;
  try {
    return std::stoll(name.substr(5));
  } catch (const std::exception&) {
    return -1;
  }
}

std::vector<std::pair<std::int64_t, fs::path>>
checkpoints(const fs::path& out) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(out / "checkpoint", error))
    if (const auto step = step_of(entry.path()); step >= 0)
      found.emplace_back(step, entry.path());
  std::ranges::sort(found);
  return found;
}

follower::follower(runtime::client& client, progress& out, follow_config config)
  : client_(client), out_(out), config_(std::move(config)) {
}

std::error_code follower::run(core::job_id job) {
  const auto error = client_.follow(
    job,
    [this](const job_event& e) {
      on(e);
      return true;
    },
    std::chrono::seconds(60), config_.hooks);
  fetch_pending();
  out_.settle();
  return error;
}

void follower::on(const job_event& e) {
  const bool old = events_++ < config_.old;
  job_event shown = e;
  if (e.kind == job_event_kind::checkpoint) {
    pending_ = e;
    if (!old) {
      fetch_pending();
      if (newest_step_ == e.step)
        shown.text = newest_.string();
    }
  } else if (e.kind == job_event_kind::done) {
    state_ = e.text;
    last_step_ = std::max(last_step_, e.step);
    fetch_pending();
    if (!config_.folder.empty()) {
      if (newest_.empty() || newest_step_ != e.step)
        out_.say("notice", "the model of step " + std::to_string(e.step)
                             + " could not be saved");
      else
        saved_ = export_model();
    }
    shown.loss = last_loss_;
  } else if (e.kind == job_event_kind::step) {
    last_loss_ = e.loss;
    last_step_ = e.step;
  }
  if (config_.seen)
    config_.seen(e);
  out_.show(shown);
}

void follower::fetch_pending() {
  if (pending_.kind != job_event_kind::checkpoint)
    return;
  const job_event wanted = std::move(pending_);
  pending_ = {};
  if (config_.folder.empty()
      || (!newest_.empty() && wanted.digest == newest_digest_))
    return; // the last, told of again
  const fs::path folder = bring_home(wanted);
  if (folder.empty())
    return;
  newest_ = folder;
  newest_step_ = wanted.step;
  newest_digest_ = wanted.digest;
  const auto all = checkpoints(config_.folder);
  std::error_code ignored;
  for (std::size_t i = 0; i + std::size_t(config_.keep) < all.size(); ++i)
    if (all[i].second != newest_) // a run that went back has fewer steps
      fs::remove_all(all[i].second, ignored);
}

/// Fetches a checkpoint into OUT/checkpoint/step-N. @returns the folder, or
/// nothing (that is said).
fs::path follower::bring_home(const job_event& e) {
  const fs::path folder =
    config_.folder / "checkpoint" / ("step-" + std::to_string(e.step));
  const fs::path partial = folder.string() + ".partial";
  auto failed = [&](const std::string& why) {
    out_.say("notice", "checkpoint of step " + std::to_string(e.step)
                         + " not fetched: " + why);
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    return fs::path{};
  };
  std::string json;
  std::error_code error =
    client_.get_blob(e.digest, [&](std::span<const std::byte> piece) {
      json.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return json.size() > actors::manifest_bytes_max
               ? std::make_error_code(std::errc::file_too_large)
               : std::error_code{};
    });
  auto m = actors::parse_manifest(json);
  if (error || !m)
    return failed(error ? client_.text() : m.message());
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  fs::create_directories(partial, ignored);
  for (const actors::manifest_file& f : m->files)
    if (client_.get_file(f.digest, partial / f.name))
      return failed(client_.text());
  if (auto joined = actors::join_shards(partial); !joined)
    return failed(joined.message());
  for (const fs::path& file : config_.carried) {
    fs::copy_file(file, partial / file.filename(),
                  fs::copy_options::overwrite_existing, error);
    if (error)
      return failed(file.string() + ": " + error.message());
  }
  fs::remove_all(folder, ignored);
  fs::rename(partial, folder, error);
  if (error)
    return failed(folder.string() + ": " + error.message());
  return folder;
}

/// The newest checkpoint without the optimizer, as the model of this run.
bool follower::export_model() {
  std::error_code error;
  for (const auto& file : fs::directory_iterator(newest_, error)) {
    const std::string name = file.path().filename().string();
    if (actors::of_optimizer(name))
      continue;
    const fs::path to = config_.folder / name;
    const fs::path partial = to.string() + ".partial";
    fs::remove(partial, error);
    fs::create_hard_link(file.path(), partial, error);
    if (error)
      fs::copy_file(file.path(), partial, fs::copy_options::overwrite_existing,
                    error);
    if (!error)
      fs::rename(partial, to, error);
    if (error) {
      out_.say("notice", to.string() + ": " + error.message());
      return false;
    }
  }
  if (error) {
    out_.say("notice", newest_.string() + ": " + error.message());
    return false;
  }
  // An earlier model's tokenizer is not this one's.
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    if (!fs::exists(newest_ / name, error))
      fs::remove(config_.folder / name, error);
  out_.say("notice", "model saved in " + config_.folder.string());
  return true;
}

} // namespace shoal::apps
