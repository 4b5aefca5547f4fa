// actors/job/job_cleaner.cpp -- finds blobs that no job needs, and removes
// them.
#include "actors/job/job_cleaner.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/store/store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <span>

namespace shoal::actors {

namespace fs = std::filesystem;
using digests = std::set<core::blob_digest>;

namespace {

constexpr const char* list_name = "blobs";
constexpr const char* log_name = "events.jsonl"; // jobs/job_journal.cpp

/// The job of a name such as "0123456789abcdef", or 0.
core::job_id job_of(const std::string& text) {
  if (text.size() != 16
      || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return 0;
  return std::stoull(text, nullptr, 16);
}

} // namespace

/// One pass over the disk.
class job_cleaner::pass {
public:
  pass(job_cleaner& all, const core::view& v, std::chrono::seconds age_min)
    : all_(all), node_(all.node_), age_min_(age_min),
      lists_(
        [&v](core::job_id job) { return core::find_job(v, job) != nullptr; }),
      ended_([&v](core::job_id job) { return core::has_ended(v, job); }) {
    for (const core::job_entry& j : v.jobs)
      if (was_uploaded(j))
        uploaded_.insert(j.id);
    std::vector<const core::job_entry*> ended;
    for (const core::job_entry& j : v.jobs)
      if (j.state == core::job_state::running)
        running_.insert(j.id);
      else if (j.kind == core::job_kind::train)
        ended.push_back(&j);
    std::ranges::sort(ended, std::greater{}, &core::job_entry::changed);
    for (std::size_t i = 0; i < ended.size() && i < results_kept; ++i)
      keep_last(ended[i]->id);
    for (const core::job_id job : unlisted(v))
      keep_last(job);
    for (const core::job_entry& j : v.jobs)
      if (running_.contains(j.id)) {
        needed_.insert(j.data);
        add_files(j.origin, needed_);
        for (const core::model_version& version : j.versions)
          add_files(version.manifest, needed_);
        for (const core::blob_digest& d : checkpoints(j.id))
          add_files(d, needed_);
        add_shards(folder() / core::job_text(j.id), needed_);
      }
  }

  void blobs() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder(), error)) {
      const core::job_id job = job_of(entry.path().filename().string());
      if (job == 0 || running_.contains(job))
        continue;
      digests all, manifests;
      read_list(entry.path() / list_name, all, manifests);
      manifests.insert(checkpoints(job).begin(), checkpoints(job).end());
      for (const core::blob_digest& d : manifests)
        add_files(d, all);
      add_shards(entry.path(), all);
      for (const core::blob_digest& d : manifests)
        all.erase(d);
      // Only the manifests say which files there are: they go after them.
      const auto age_min =
        uploaded_.contains(job) ? std::chrono::seconds{0} : age_min_;
      if (drop(all, age_min) && drop(manifests, age_min)
          && !kept_.contains(job)) {
        fs::remove(entry.path() / list_name, error);
        for (const fs::path& list : shard_lists_of(entry.path()))
          fs::remove(list, error);
      }
    }
  }

  /// Blobs of clients that have gone.
  void left_behind() {
    std::erase_if(all_.left_behind_, [this](const core::blob_digest& d) {
      return needed_.contains(d) || drop({d}, std::chrono::seconds{0});
    });
  }

  void folders(bool starting) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder(), error)) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.starts_with("from-") && name.size() > 21
          && !running_.contains(job_of(name.substr(5, 16))))
        fs::remove_all(entry.path(), ignored);
      if (name.starts_with("writing-") && (starting || !written_now(name)))
        fs::remove_all(entry.path(), ignored);
    }
  }

private:
  fs::path folder() const { return node_.data_dir() / "jobs"; }

  /// Whether the name is "writing-<job>-<step>" of a running job.
  bool written_now(const std::string& name) const {
    return std::ranges::any_of(running_, [&](core::job_id job) {
      return name.starts_with("writing-" + std::to_string(job) + "-");
    });
  }

  /// Continues reading the job's log, which may be long.
  const std::vector<core::blob_digest>& checkpoints(core::job_id job) {
    known& k = all_.known_[job];
    for (const runtime::job_event& e : node_.log().read(job, k.next, k.next))
      if (e.kind == runtime::job_event_kind::checkpoint)
        k.checkpoints.push_back(e.digest);
    return k.checkpoints;
  }

  /// The jobs with the newest logs of those that the view neither lists nor has
  /// taken off its list. A shoal that dissolves lists none.
  std::vector<core::job_id> unlisted(const core::view& v) {
    std::vector<std::pair<fs::file_time_type, core::job_id>> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder(), error)) {
      const core::job_id job = job_of(entry.path().filename().string());
      const bool taken_off =
        !v.dissolved_into
        && std::ranges::find(v.removed, job) != v.removed.end();
      if (job == 0 || core::find_job(v, job) != nullptr || taken_off
          || checkpoints(job).empty())
        continue;
      const auto logged = fs::last_write_time(entry.path() / log_name, error);
      if (!error)
        found.emplace_back(logged, job);
    }
    std::ranges::sort(found, std::greater{});
    found.resize(std::min(found.size(), results_kept));
    std::vector<core::job_id> out;
    out.reserve(found.size());
    for (const auto& [logged, job] : found)
      out.push_back(job);
    return out;
  }

  void keep_last(core::job_id job) {
    kept_.insert(job);
    if (const auto& all = checkpoints(job); !all.empty())
      add_files(all.back(), needed_);
  }

  /// Adds a manifest and the files that it lists.
  void add_files(const core::blob_digest& manifest, digests& to) const {
    if (manifest == core::blob_digest{})
      return;
    to.insert(manifest);
    if (!node_.blobs().contains(manifest))
      return;
    if (auto m = read_manifest(manifest, node_.blobs()))
      for (const manifest_file& f : m->files)
        to.insert(f.digest);
  }

  /// Adds the shards that this peer itself has stored.
  static void add_shards(const fs::path& job, digests& to) {
    for (const fs::path& list : shard_lists_of(job))
      for (const listed_shard& s : read_shards(list))
        to.insert(s.digest);
  }

  /// The lines that remember_blobs wrote: "data <hex>" and "origin <hex>".
  static void
  read_list(const fs::path& file, digests& single, digests& manifests) {
    std::ifstream in = runtime::posix::open_text(file);
    for (std::string kind, hex; in >> kind >> hex;) {
      core::blob_digest d{};
      if (!core::from_hex(hex, d))
        continue;
      (kind == "origin" ? manifests : single).insert(d);
    }
  }

  /// @returns whether everything that may be removed is gone.
  bool drop(const digests& all, std::chrono::seconds age_min) {
    bool gone = true;
    runtime::store& blobs = node_.blobs();
    for (const core::blob_digest& d : all) {
      if (needed_.contains(d))
        continue;
      if (!blobs.contains(d)) {
        if (blobs.begun(d) > 0)
          static_cast<void>(blobs.remove(d));
        continue;
      }
      // Nothing in memory is of a job that is still to be submitted.
      const bool is_young = !blobs.in_memory(d) && blobs.age(d) < age_min;
      if (is_young || blobs.claimed(d, lists_)
          || blobs.remove_unless_pledged(d, ended_))
        gone = false;
    }
    return gone;
  }

  job_cleaner& all_;
  runtime::context& node_;
  std::chrono::seconds age_min_;
  const std::function<bool(core::job_id)> lists_; ///< whether the view does
  const std::function<bool(core::job_id)> ended_; ///< as the view says
  std::set<core::job_id> uploaded_; ///< served models that were uploaded
  std::set<core::job_id> running_;
  std::set<core::job_id> kept_;
  digests needed_;
};

bool was_uploaded(const core::job_entry& entry) {
  return entry.kind == core::job_kind::serve && entry.versions.empty()
         && entry.origin_step == 0;
}

void remember_blobs(runtime::context& node, const core::job_entry& entry) {
  const fs::path folder = node.data_dir() / "jobs" / core::job_text(entry.id);
  std::error_code error = runtime::make_folder_below(node.data_dir(), folder);
  std::string text = "data " + core::to_hex(entry.data) + "\n";
  if (entry.origin != core::blob_digest{})
    text += "origin " + core::to_hex(entry.origin) + "\n";
  const runtime::posix::descriptor fd = runtime::posix::open_regular(
    folder / list_name, O_WRONLY | O_CREAT | O_TRUNC, error);
  if (fd) // otherwise the listed blobs stay
    (void)runtime::posix::write_all(fd.get(), std::as_bytes(std::span(text)));
}

void job_cleaner::clean_up(const core::view& v, std::chrono::seconds age_min) {
  pass p(*this, v, age_min);
  p.blobs();
  p.left_behind();
  p.folders(first_);
  first_ = false;
}

} // namespace shoal::actors
