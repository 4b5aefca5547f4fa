// actors/blob_set.cpp -- one missing blob after the other.
#include "actors/blob_set.hpp"

#include "actors/checkpoint_files.hpp"
#include "runtime/context.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace shoal::actors {
namespace {

/// What a look at the store says of a set.
struct look {
  std::optional<core::blob_digest> missing; ///< the next blob to fetch
  bool readable = true; ///< else a manifest or index says nonsense
};

look look_at(const blob_set::part& p, runtime::store& blobs) {
  if (!blobs.contains(p.manifest))
    return {p.manifest};
  auto m = read_manifest(p.manifest, blobs);
  if (!m)
    return {std::nullopt, false};
  auto chosen = files_with(*m, p.tensors, blobs);
  if (!chosen)
    return {std::nullopt, false};
  for (const core::blob_digest& d : chosen->unread)
    return {d, blobs.contains(d) ? false : true};
  for (const manifest_file& f : chosen->files)
    if (!blobs.contains(f.digest))
      return {f.digest};
  return {};
}

/// Reads manifests, so it is disk work.
look look_at(const blob_set& set, runtime::store& blobs) {
  for (const core::blob_digest& d : set.blobs)
    if (!blobs.contains(d))
      return {d};
  for (const core::blob_digest& d : set.manifests) {
    std::vector<core::blob_digest> missing;
    if (!complete(d, blobs, &missing))
      return missing.empty() ? look{std::nullopt, false}
                             : look{missing.front()};
  }
  for (const blob_set::part& p : set.parts)
    if (const look l = look_at(p, blobs); l.missing || !l.readable)
      return l;
  return {};
}

struct fetching {
  runtime::context* node;
  blob_set set;
  std::vector<core::peer_id> holders;
  std::function<void(std::error_code)> done;
};

/// The file of a manifest that a blob is, as far as the set knows names.
std::string name_of(const core::blob_digest& blob, const blob_set& set,
                    runtime::store& blobs) {
  for (const core::blob_digest& d : set.manifests)
    if (blobs.contains(d))
      if (auto m = read_manifest(d, blobs))
        for (const manifest_file& f : m->files)
          if (f.digest == blob)
            return f.name;
  return {};
}

/// All holders, in the order in which they are asked for this blob.
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

void go_on(const std::shared_ptr<fetching>& f) {
  f->node->disk().submit(
    [f](kernels::backend&) {
      const look l = look_at(f->set, f->node->blobs());
      if (!l.readable || !l.missing) {
        f->done(l.readable ? std::error_code{}
                           : std::make_error_code(std::errc::bad_message));
        return;
      }
      f->node->fetch_blob(*l.missing, in_order(*f, *l.missing),
                          [f](std::error_code error) {
                            if (error)
                              f->done(error);
                            else
                              go_on(f);
                          });
    },
    {});
}

} // namespace

bool have_all(runtime::context& node, const blob_set& set) {
  const look l = look_at(set, node.blobs());
  return l.readable && !l.missing;
}

void fetch_all(runtime::context& node, blob_set set,
               std::vector<core::peer_id> holders,
               std::function<void(std::error_code)> done) {
  go_on(std::make_shared<fetching>(
    fetching{&node, std::move(set), std::move(holders), std::move(done)}));
}

} // namespace shoal::actors
