// actors/blob_set.cpp -- one missing blob after the other.
#include "actors/blob_set.hpp"

#include "actors/checkpoint_files.hpp"
#include "runtime/context.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/store/store.hpp"

#include <memory>
#include <optional>

namespace shoal::actors {
namespace {

/// The next blob that is missing; reads manifests, so it is disk work.
std::optional<core::blob_digest>
next_missing(runtime::context& node, const blob_set& set) {
  for (const core::blob_digest& d : set.blobs)
    if (!node.blobs().contains(d))
      return d;
  for (const core::blob_digest& d : set.manifests) {
    std::vector<core::blob_digest> missing;
    if (!complete(d, node.blobs(), &missing) && !missing.empty())
      return missing.front();
  }
  return std::nullopt;
}

struct fetching {
  runtime::context* node;
  blob_set set;
  std::vector<core::peer_id> holders;
  std::function<void(std::error_code)> done;
};

void go_on(const std::shared_ptr<fetching>& f) {
  f->node->disk().submit(
    [f](kernels::backend&) {
      const auto digest = next_missing(*f->node, f->set);
      if (!digest) {
        // A manifest that is here but unreadable is not a missing file.
        const bool good = have_all(*f->node, f->set);
        f->done(good ? std::error_code{}
                     : std::make_error_code(std::errc::bad_message));
        return;
      }
      f->node->fetch_blob(*digest, f->holders, [f](std::error_code error) {
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
  for (const core::blob_digest& d : set.blobs)
    if (!node.blobs().contains(d))
      return false;
  for (const core::blob_digest& d : set.manifests)
    if (!complete(d, node.blobs()))
      return false;
  return true;
}

void fetch_all(runtime::context& node, blob_set set,
               std::vector<core::peer_id> holders,
               std::function<void(std::error_code)> done) {
  go_on(std::make_shared<fetching>(
    fetching{&node, std::move(set), std::move(holders), std::move(done)}));
}

} // namespace shoal::actors
