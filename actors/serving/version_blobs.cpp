// actors/serving/version_blobs.cpp -- removes what only a former version needed.
#include "actors/serving/version_blobs.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

namespace shoal::actors {

void remove_version(runtime::context& node, needed_checkpoints& needed,
                    const core::view& view, const core::blob_digest& manifest) {
  // No island of these numbers: those of all jobs count.
  const auto kept = needed.of_others(node, view, core::island_id{});
  const auto listed = read_manifest(manifest, node.blobs());
  if (!listed)
    return;
  for (const manifest_file& f : listed->files)
    if (!kept.contains(f.digest) && node.blobs().contains(f.digest))
      static_cast<void>(node.blobs().remove(f.digest));
  if (!kept.contains(manifest))
    static_cast<void>(node.blobs().remove(manifest));
}

void drop_version(runtime::context& node, const job_config& config,
                  std::shared_ptr<const core::view> view,
                  const core::blob_digest& manifest) {
  if (manifest == config.entry.origin || !config.needed)
    return;
  node.disk().submit(
    [node = &node, view = std::move(view), needed = config.needed, manifest](
      kernels::backend&) { remove_version(*node, *needed, *view, manifest); },
    {});
}

} // namespace shoal::actors
