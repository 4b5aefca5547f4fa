// actors/checkpoint/blob_set.cpp -- fetches missing single blobs, a few at
// once; then one blob after the other.
#include "actors/checkpoint/blob_set.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "runtime/context.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>

namespace shoal::actors {
namespace {

/// What the store has of a set.
struct look {
  std::optional<core::blob_digest> missing; ///< the next blob to fetch
  std::error_code wrong; ///< a manifest or index is here, but unusable
};

/// For a blob that could not be read or understood. If it is damaged here, a
/// peer may have a good copy; else its content is invalid, or the disk cannot
/// read it now.
look look_at_unusable(const core::blob_digest& d, runtime::store& blobs) {
  std::error_code error;
  if (blobs.read(d, error))
    return {std::nullopt, std::make_error_code(std::errc::bad_message)};
  if (!blobs.contains(d))
    return {d, {}};
  return {std::nullopt, error};
}

look look_at(const blob_set::part& p, const blob_set& set,
             runtime::store& blobs) {
  if (!blobs.contains(p.manifest))
    return {p.manifest, {}};
  auto m = read_manifest(p.manifest, blobs);
  if (!m)
    return look_at_unusable(p.manifest, blobs);
  auto chosen = files_with(*m, p.tensors, p.purpose, blobs);
  if (!chosen)
    return {std::nullopt, std::make_error_code(std::errc::bad_message)};
  for (const core::blob_digest& d : chosen->unread)
    return look_at_unusable(d, blobs);
  for (const manifest_file& f : chosen->files)
    if (!blobs.contains(f.digest)
        && !(set.leave_out_passing && set.only_passes(f.digest)))
      return {f.digest, {}};
  return {};
}

look look_at(const blob_set::share& s, runtime::store& blobs) {
  if (!blobs.contains(s.manifest))
    return {s.manifest, {}};
  auto m = read_manifest(s.manifest, blobs);
  if (!m)
    return look_at_unusable(s.manifest, blobs);
  for (const manifest_file& f : files_of_parts(*m, s.units, s.parts))
    if (!blobs.contains(f.digest))
      return {f.digest, {}};
  return {};
}

/// The files of a manifest whose names are wanted.
look look_at_some(const core::blob_digest& manifest, runtime::store& blobs,
                  bool (*wanted)(const std::string& name)) {
  if (!blobs.contains(manifest))
    return {manifest, {}};
  auto m = read_manifest(manifest, blobs);
  if (!m)
    return look_at_unusable(manifest, blobs);
  for (const manifest_file& f : m->files)
    if (wanted(f.name) && !blobs.contains(f.digest))
      return {f.digest, {}};
  return {};
}

/// Reads manifests, so it runs on the disk queue.
look look_at(const blob_set& set, runtime::store& blobs) {
  for (const core::blob_digest& d : set.blobs)
    if (!blobs.contains(d))
      return {d, {}};
  for (const core::blob_digest& d : set.manifests) {
    std::vector<core::blob_digest> missing;
    if (!complete(d, blobs, &missing))
      return missing.empty() ? look_at_unusable(d, blobs)
                             : look{missing.front(), {}};
  }
  for (const core::blob_digest& d : set.texts)
    if (const look l = look_at_some(d, blobs, of_text); l.missing || l.wrong)
      return l;
  for (const core::blob_digest& d : set.weights) {
    const look l = look_at_some(
      d, blobs, [](const std::string& name) { return !of_optimizer(name); });
    if (l.missing || l.wrong)
      return l;
  }
  for (const blob_set::share& s : set.shares)
    if (const look l = look_at(s, blobs); l.missing || l.wrong)
      return l;
  for (const blob_set::part& p : set.parts)
    if (const look l = look_at(p, set, blobs); l.missing || l.wrong)
      return l;
  return {};
}

struct fetching {
  runtime::context* node = nullptr;
  blob_set set;
  std::vector<core::peer_id> holders;
  std::function<void(std::error_code)> done;

  // Single blobs.
  std::mutex mutex;
  std::vector<core::blob_digest> missing;
  std::size_t next = 0;
  std::size_t running = 0;
  std::error_code error; ///< the first error
};

/// Each takes a few messages and a sync of the disk at both ends: these
/// overlap.
constexpr std::size_t singles_at_once = 4;

/// The name of a blob in its manifest, if the set knows the name.
std::string name_of(const core::blob_digest& blob, const blob_set& set,
                    runtime::store& blobs) {
  std::vector<core::blob_digest> manifests = set.manifests;
  for (const blob_set::share& s : set.shares)
    manifests.push_back(s.manifest);
  for (const core::blob_digest& d : manifests)
    if (blobs.contains(d))
      if (auto m = read_manifest(d, blobs))
        for (const manifest_file& f : m->files)
          if (f.digest == blob)
            return f.name;
  return {};
}

/// All holders, in the order in which this blob is requested from them.
std::vector<core::peer_id>
in_order(const fetching& f, const core::blob_digest& blob) {
  std::vector<core::peer_id> out = f.holders;
  const core::peer_id* first = nullptr;
  if (auto at = f.set.first.find(blob); at != f.set.first.end())
    first = &at->second;
  else if (!f.set.first_by_name.empty())
    if (auto named =
          f.set.first_by_name.find(name_of(blob, f.set, f.node->blobs()));
        named != f.set.first_by_name.end())
      first = &named->second;
  if (!first)
    return out;
  std::erase(out, *first);
  out.insert(out.begin(), *first);
  return out;
}

void fetch(const std::shared_ptr<fetching>& f, const core::blob_digest& blob,
           std::function<void(std::error_code)> done) {
  if (f->set.memory_will_do)
    f->node->blobs().may_stay_in_memory(blob);
  if (f->set.only_passes && f->set.only_passes(blob))
    f->node->blobs().stay_in_memory(blob);
  f->node->fetch_blob(blob, in_order(*f, blob), std::move(done));
}

void go_on(const std::shared_ptr<fetching>& f) {
  f->node->disk().submit(
    [f](kernels::backend&) {
      const look l = look_at(f->set, f->node->blobs());
      if (!l.missing) {
        f->done(l.wrong);
        return;
      }
      fetch(f, *l.missing, [f](std::error_code error) {
        if (error)
          f->done(error);
        else
          go_on(f);
      });
    },
    {});
}

/// Fetches the next single blob, or goes on when the last one has come.
void fetch_single(const std::shared_ptr<fetching>& f) {
  std::unique_lock lock(f->mutex);
  const bool ends =
    f->set.as_many_as_there_are ? refused_by_disk(f->error) : bool(f->error);
  if (!ends && f->next < f->missing.size()) {
    const core::blob_digest blob = f->missing[f->next++];
    lock.unlock();
    fetch(f, blob, [f](std::error_code error) {
      {
        std::lock_guard guard(f->mutex);
        if (!f->error || refused_by_disk(error))
          f->error = error;
      }
      fetch_single(f);
    });
    return;
  }
  if (--f->running > 0)
    return;
  lock.unlock();
  if (f->error)
    f->done(f->error);
  else
    go_on(f);
}

void fetch_singles(const std::shared_ptr<fetching>& f) {
  f->node->disk().submit(
    [f](kernels::backend&) {
      std::ranges::copy_if(f->set.blobs, std::back_inserter(f->missing),
                           [&](const core::blob_digest& d) {
                             return !f->node->blobs().contains(d);
                           });
      f->running = std::min(singles_at_once, f->missing.size());
      if (f->running == 0)
        go_on(f);
      else
        for (std::size_t n = f->running; n > 0; --n)
          fetch_single(f);
    },
    {});
}

} // namespace

bool have_all(runtime::context& node, const blob_set& set) {
  const look l = look_at(set, node.blobs());
  return !l.wrong && !l.missing;
}

bool refused_by_disk(std::error_code error) {
  using std::errc;
  for (const errc e :
       {errc::no_space_on_device, errc::read_only_file_system, errc::io_error,
        errc::permission_denied, errc::file_too_large})
    if (error == e)
      return true;
  return error == std::error_condition(EDQUOT, std::generic_category());
}

void fetch_all(runtime::context& node, blob_set set,
               std::vector<core::peer_id> holders,
               std::function<void(std::error_code)> done) {
  auto f = std::make_shared<fetching>();
  f->node = &node;
  f->set = std::move(set);
  f->holders = std::move(holders);
  f->done = std::move(done);
  fetch_singles(f);
}

} // namespace shoal::actors
