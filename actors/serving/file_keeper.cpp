// actors/serving/file_keeper.cpp -- looks, fetches, removes.
#include "actors/serving/file_keeper.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/serving/offered_room.hpp"
#include "runtime/context.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/view.hpp"
#include "runtime/model/units.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace shoal::actors {

using core::blob_digest;
using core::peer_id;

namespace {

/// Pause after a fetch that has failed, and after one that the own disk refused:
/// by then a view says how much room there is.
constexpr std::chrono::seconds fetch_again_after{1};
constexpr std::chrono::seconds after_refusal{5};

/// A stage of the served model: who runs which units.
struct stage_units {
  peer_id peer{};
  model::unit_index first = 0, last = 0;
  friend bool operator==(const stage_units&, const stage_units&) = default;
};

std::vector<stage_units>
stages_of(const core::assignment& place, model::unit_index head) {
  std::vector<stage_units> out;
  for (const core::island_place& at : place.islands)
    for (const core::replica_place& r : at.replicas)
      for (std::size_t s = 0; s < r.stages.size(); ++s) {
        const core::stage_place& stage = r.stages[s];
        out.push_back({stage.lead().peer,
                       s == 0 ? 0 : model::unit_index(stage.first_block) + 1,
                       s + 1 == r.stages.size()
                         ? head + 1
                         : model::unit_index(stage.last_block) + 1});
      }
  return out;
}

std::vector<blob_digest> manifests_of(const core::job_entry& job) {
  std::vector<blob_digest> out;
  for (const core::model_version& v : core::served_versions(job))
    out.push_back(v.manifest);
  return out;
}

/// The index by which files are found. @returns null if there is none
const manifest_file* index_of(const manifest& m) {
  return m.has(single_name(model_files)) ? nullptr
                                         : m.find(index_name(model_files));
}

} // namespace

/// The files of the versions, with the peers that run them: read once for each
/// place.
struct file_keeper::files_of_view {
  std::vector<blob_digest> manifests;
  std::vector<stage_units> stages;
  std::vector<core::model_file> files;
  bool read = false;
};

struct file_keeper::look {
  std::vector<blob_digest> lists; ///< manifests and indexes that are missing
  bool unreadable = false;        ///< one of those that are here
  std::size_t files = 0, kept = 0;
  std::uint64_t kept_bytes = 0;
  std::size_t alone = 0;    ///< files that have one keeper, for want of room
  std::size_t homeless = 0; ///< files that have none
  std::set<blob_digest> kept_files;
  /// Files that are to be here, the largest first, and where they may be.
  std::vector<std::pair<blob_digest, std::vector<peer_id>>> missing;
  /// Files that are here and need not be, with their keepers.
  std::vector<std::pair<blob_digest, std::vector<peer_id>>> removable;
  bool short_of_room = false;
  bool concerned = false;
};

namespace {

/// Adds the files of a version. @returns the lists that are missing for that;
/// nothing if one of them cannot be read, which those who load it mend or tell of
std::optional<std::vector<blob_digest>>
add_files(const blob_digest& version, const model::unit_layout& layout,
          const std::vector<stage_units>& stages, runtime::store& blobs,
          std::vector<core::model_file>& out) {
  if (!blobs.contains(version))
    return std::vector{version};
  const auto listed = read_manifest(version, blobs);
  if (!listed)
    return std::nullopt;
  const manifest_file* index = index_of(*listed);
  if (index != nullptr && !blobs.contains(index->digest))
    return std::vector{index->digest};
  std::map<blob_digest, std::size_t> at;
  for (std::size_t i = 0; i < out.size(); ++i)
    at[out[i].digest] = i;
  for (const manifest_file& f : listed->files)
    if (!of_optimizer(f.name) && (index == nullptr || f.name != index->name)
        && at.try_emplace(f.digest, out.size()).second)
      out.push_back({f.digest, f.bytes, {}});
  for (const stage_units& s : stages) {
    std::vector<std::string> tensors;
    for (model::unit_index u = s.first; u < s.last; ++u)
      std::ranges::move(tensors_of(layout, u), std::back_inserter(tensors));
    const auto chosen =
      files_with(*listed, tensors, model::purpose::serving, blobs);
    if (!chosen)
      return std::nullopt;
    for (const manifest_file& f : chosen->files)
      if (const auto found = at.find(f.digest); found != at.end()) {
        auto& runs = out[found->second].runs;
        if (std::ranges::find(runs, s.peer) == runs.end())
          runs.push_back(s.peer);
      }
  }
  return std::vector<blob_digest>();
}

} // namespace

file_keeper::file_keeper(runtime::context& node, core::job_id job,
                         std::shared_ptr<const model::unit_layout> layout,
                         std::shared_ptr<needed_checkpoints> needed, bool keeps,
                         weights_owner& owner, poster post,
                         std::function<void()> changed)
  : node_(node), job_(job), layout_(std::move(layout)),
    needed_(std::move(needed)), keeps_(keeps), owner_(owner),
    post_([post = std::move(post),
           here = std::weak_ptr(alive_)](std::function<void()> run) {
      post([here, run = std::move(run)] {
        if (!here.expired())
          run();
      });
    }),
    changed_(std::move(changed)), files_(std::make_shared<files_of_view>()) {
}

void file_keeper::set(std::shared_ptr<const core::view> view,
                      core::assignment place) {
  view_ = std::move(view);
  place_ = std::make_shared<const core::assignment>(std::move(place));
  look_again();
}

void file_keeper::look_again() {
  const core::job_entry* job = view_ ? core::find_job(*view_, job_) : nullptr;
  if (job == nullptr)
    return;
  if (looking_) {
    outdated_ = true;
    return;
  }
  looking_ = true;
  outdated_ = false;
  auto found = std::make_shared<look>();
  node_.disk().submit(
    [found, node = &node_, layout = layout_, all = files_, place = place_,
     entry = *job, keeps = keeps_,
     disks = core::disks_of(*view_, *job, place_.get())](kernels::backend&) {
      runtime::store& blobs = node->blobs();
      const auto stages = stages_of(*place, layout->head_unit());
      const auto manifests = manifests_of(entry);
      const peer_id self = node->self();
      const bool shares =
        std::ranges::find(disks, self, &core::disk_room::peer) != disks.end();
      found->concerned =
        std::ranges::find(stages, self, &stage_units::peer) != stages.end()
        || (keeps
            && (shares || std::ranges::any_of(manifests, [&](const auto& m) {
                  return blobs.contains(m);
                })));
      if (!found->concerned)
        return;
      if (!all->read || all->manifests != manifests || all->stages != stages) {
        *all = {manifests, stages, {}, true};
        for (const blob_digest& m : manifests) {
          const auto lists = add_files(m, *layout, stages, blobs, all->files);
          found->unreadable = found->unreadable || !lists;
          if (lists)
            std::ranges::copy(*lists, std::back_inserter(found->lists));
        }
        all->read = found->lists.empty() && !found->unreadable;
      }
      // A version whose lists nobody has holds up no other one.
      if (all->files.empty())
        return;
      const auto keepers = core::file_keepers(all->files, disks);
      std::vector<std::size_t> order(all->files.size());
      for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return all->files[a].bytes > all->files[b].bytes;
      });
      std::uint64_t absent = 0;
      bool held = false; // in memory, and kept
      for (const std::size_t i : order) {
        const core::model_file& f = all->files[i];
        const bool here = blobs.contains(f.digest);
        const auto& at = keepers[i];
        const bool kept = std::ranges::find(at, self) != at.end();
        found->homeless += at.empty();
        found->alone +=
          !at.empty() && at.size() < std::min(core::copies_kept, disks.size());
        absent += here && !blobs.in_memory(f.digest) ? 0 : f.bytes;
        if (kept) {
          found->kept_files.insert(f.digest);
          ++found->kept;
          found->kept_bytes += f.bytes;
        }
        if (kept) {
          blobs.belongs_on_disk(f.digest);
          held = held || blobs.in_memory(f.digest);
        }
        if (kept && !here)
          found->missing.emplace_back(f.digest, at);
        else if (here && !kept && !at.empty() && !blobs.in_memory(f.digest))
          found->removable.emplace_back(f.digest, at);
      }
      if (held)
        blobs.settle();
      found->files = all->files.size();
      const runtime::store::space room = blobs.room();
      found->short_of_room = room.all_bytes > 0 && room.to_fill() < absent;
    },
    [this, found, post = post_] {
      post([this, found] {
        looking_ = false;
        looked(*found);
      });
    });
}

void file_keeper::looked(const look& found) {
  if (!found.lists.empty())
    fetch_lists(found);
  else if (found.unreadable && keeps_)
    look_after(fetch_again_after);
  else if (!found.unreadable && std::exchange(told_wait_, false))
    owner_.load_waits({});
  if (found.files == 0 && (!found.lists.empty() || found.unreadable))
    return;
  share_->set(found.kept_files, found.short_of_room);
  changed_();
  if (outdated_)
    return look_again();
  if (!keeps_ || !found.concerned)
    return;
  report(found);
  if (!found.missing.empty())
    fetch(found);
  const bool some = found.short_of_room && !found.removable.empty();
  if (some)
    remove_some(found);
  look_after(some ? remove_every : look_every);
}

void file_keeper::fetch_lists(const look& found) {
  if (std::exchange(fetching_lists_, true))
    return;
  blob_set set;
  set.blobs = found.lists;
  set.as_many_as_there_are = true; // each is of another version
  fetch_all(node_, std::move(set), owner_.members(),
            [this, post = post_](std::error_code error) {
              post([this, error] {
                fetching_lists_ = false;
                if (refused_by_disk(error)) {
                  told_wait_ = true;
                  owner_.load_waits(why_not_fetched(error));
                }
                if (error)
                  look_after(fetch_again_after);
                else
                  look_again();
              });
            });
}

void file_keeper::report(const look& found) {
  std::string text = "keeps " + std::to_string(found.kept) + " of "
                     + core::count_text(found.files, "file") + " ("
                     + core::size_text(found.kept_bytes) + ")";
  if (found.alone > 0)
    text += "; for " + core::count_text(found.alone, "file")
            + " no second disk has room";
  if (found.homeless > 0)
    text +=
      "; for " + core::count_text(found.homeless, "file") + " no disk has room";
  if ((found.kept > 0 || found.homeless > 0) && text != said_)
    node_.say("[serve] " + (said_ = text));
}

void file_keeper::fetch(const look& found) {
  if (std::exchange(fetching_, true))
    return;
  blob_set set;
  set.as_many_as_there_are = true; // others may still be uploaded
  for (const auto& [file, keepers] : found.missing) {
    set.blobs.push_back(file);
    for (const peer_id& k : keepers)
      if (k != node_.self())
        set.first[file] = k;
  }
  fetch_all(node_, std::move(set), owner_.members(),
            [this, post = post_](std::error_code error) {
              post([this, error] {
                fetching_ = false;
                if (!error) {
                  refused_ = false;
                  return look_again();
                }
                if (!refused_by_disk(error))
                  return look_after(fetch_again_after);
                if (!std::exchange(refused_, true))
                  owner_.say("the disk takes no more files of the model: "
                             + error.message() + "; other peers keep them");
                disk_has_refused();
                look_after(after_refusal);
              });
            });
}

/// Asks the keepers of files that need not be here.
void file_keeper::remove_some(const look& found) {
  if (std::exchange(removing_, true))
    return;
  struct asked {
    const std::chrono::steady_clock::time_point until =
      std::chrono::steady_clock::now() + runtime::store::pledged_for / 2;
    std::mutex mutex;
    std::size_t left = 0;
    std::map<blob_digest, bool> everywhere;
  };
  const auto all = std::make_shared<asked>();
  const std::size_t count = std::min(asked_max, found.removable.size());
  for (std::size_t i = 0; i < count; ++i) {
    all->everywhere[found.removable[i].first] = true;
    all->left += found.removable[i].second.size();
  }
  for (std::size_t i = 0; i < count; ++i)
    for (const peer_id& k : found.removable[i].second)
      node_.has_blob(
        found.removable[i].first, job_, k,
        [this, all, file = found.removable[i].first, post = post_](bool yes) {
          std::vector<blob_digest> files;
          {
            const std::lock_guard lock(all->mutex);
            all->everywhere[file] = all->everywhere[file] && yes;
            if (--all->left > 0)
              return;
            for (const auto& [f, everywhere] : all->everywhere)
              if (everywhere)
                files.push_back(f);
          }
          post([this, files = std::move(files), until = all->until] {
            remove(files, until);
          });
        });
}

/// Those that nothing else needs, and that are still not kept here.
/// @param until time up to which their keepers have pledged to keep them
void file_keeper::remove(std::vector<blob_digest> files,
                         std::chrono::steady_clock::time_point until) {
  if (files.empty()) {
    removing_ = false;
    return;
  }
  auto others = std::make_shared<core::view>(*view_);
  std::erase_if(others->jobs, [this](const auto& j) { return j.id == job_; });
  const auto ended = [view = view_](core::job_id job) {
    return core::has_ended(*view, job);
  };
  node_.disk().submit(
    [node = &node_, needed = needed_, others, files = std::move(files), until,
     ended, share = share_](kernels::backend&) {
      std::set<blob_digest> wanted;
      if (needed)
        wanted = needed->of_others(*node, *others, core::island_id{});
      for (const blob_digest& f : files)
        if (!wanted.contains(f) && share->only_passes(f)
            && std::chrono::steady_clock::now() < until)
          static_cast<void>(node->blobs().remove_unless_pledged(f, ended));
    },
    [this, post = post_] {
      post([this] {
        removing_ = false;
        look_again();
      });
    });
}

void file_keeper::disk_has_refused() {
  node_.disk().submit([node = &node_, view = view_](
                        kernels::backend&) { offer_room(*node, *view, true); },
                      {});
}

/// The earlier one, if another look is due.
void file_keeper::look_after(std::chrono::seconds pause) {
  const auto now = std::chrono::steady_clock::now();
  const auto due = now + pause;
  if (next_look_ > now && next_look_ <= due)
    return;
  next_look_ = due;
  owner_.run_later(pause, [this, due, here = std::weak_ptr(alive_)] {
    if (here.expired() || next_look_ != due)
      return;
    next_look_ = {};
    look_again();
  });
}

} // namespace shoal::actors
