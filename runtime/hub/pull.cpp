// runtime/hub/pull.cpp -- chooses files, looks for room, downloads and links.
#include "runtime/hub/pull.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/hub/download_room.hpp"
#include "runtime/hub/hub_cache.hpp"
#include "runtime/hub/hub_client.hpp"
#include "runtime/hub/hub_listing.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/files/safetensors_begin.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace shoal::hub {
namespace {

namespace fs = std::filesystem;
using model::failure;

constexpr char downloading[] = "downloading ";
constexpr char single_name[] = "model.safetensors";
constexpr char index_name[] = "model.safetensors.index.json";

class pulling {
public:
  pulling(const hub_settings& settings, const pull_request& request,
          const model::watch& told)
    : settings_(settings), request_(request), told_(told),
      cache_(settings.cache, request.name.repository),
      client_(settings, [this] { return tell(); }) {
    out_.commit = cache_.commit_of(request.name.revision).value_or("");
  }

  model::result<pulled> run() {
    const hub_cache::found cached =
      out_.commit.empty() ? hub_cache::found::nothing
                          : cache_.look(out_.commit, request_.name.file);
    if (settings_.offline)
      return offline(cached);
    // A model need not have a tokenizer, but another tool may have left it out.
    if (!request_.update && cached == hub_cache::found::all)
      return place();
    auto listing = client_.list(request_.name);
    if (!listing) {
      if (!client_.unreachable() || cached == hub_cache::found::nothing
          || request_.update)
        return listing.why();
      out_.notice = listing.message();
      return place();
    }
    if (is_commit(request_.name.revision)
        && listing->commit != request_.name.revision)
      return model::failure{request_.name.repository
                            + ": the hub answers with "
                              "commit "
                            + listing->commit + " instead of "
                            + request_.name.revision};
    listing_ = *std::move(listing);
    out_.commit = listing_.commit;
    out_.listed = true;
    activity_ = downloading;
    if (auto fetched = fetch_all(); !fetched)
      return fetched.why();
    return place();
  }

private:
  bool tell() {
    return !told_
           || told_(activity_ + request_.name.repository, done_,
                    std::max<std::uint64_t>(to_do_, 1));
  }

  pulled place() const {
    pulled out = out_;
    out.path = cache_.snapshot(out.commit);
    if (!request_.name.file.empty())
      out.path /= request_.name.file;
    return out;
  }

  model::result<pulled> offline(hub_cache::found cached) const {
    if (cached != hub_cache::found::nothing)
      return place();
    const hub_name& name = request_.name;
    return failure{
      name.repository
      + (name.revision == main_revision ? "" : "@" + name.revision)
      + (out_.commit.empty() ? " is not" : " is not completely")
      + " in the cache (" + settings_.cache.string()
      + "), and HF_HUB_OFFLINE is set: unset it, or copy the cache "
        "of a machine that has the model"};
  }

  model::status fetch_all() {
    std::vector<const hub_file*> files;
    if (!request_.name.file.empty()) {
      const hub_file* file = listing_.find(request_.name.file);
      if (file == nullptr)
        return failure{request_.name.repository + " has no file "
                       + core::shown(request_.name.file) + gguf_text()};
      files = {file};
    } else {
      files = describing_files(listing_);
      if (listing_.find("config.json") == nullptr)
        return failure{request_.name.repository
                       + " has no config.json, so it is no model that can be "
                         "read"
                       + gguf_text()};
    }
    if (auto fetched = fetch(files); !fetched)
      return fetched;
    if (request_.name.file.empty() && request_.weights)
      if (auto fetched = fetch_weights(); !fetched)
        return fetched;
    return request_.weights
             ? cache_.write_ref(request_.name.revision, listing_.commit)
             : model::done{};
  }

  model::status fetch_weights() {
    if (const hub_file* file = listing_.find(single_name))
      return fetch({file});
    const hub_file* index = listing_.find(index_name);
    if (index == nullptr)
      return failure{request_.name.repository + " has neither " + single_name
                     + " nor " + index_name
                     + ": weights in other formats "
                       "cannot be read"
                     + gguf_text()};
    if (auto fetched = fetch({index}); !fetched)
      return fetched;
    const fs::path place = cache_.snapshot(listing_.commit) / index_name;
    const auto text = model::read_file(place, model::header_bytes_max);
    if (!text)
      return text.why();
    const auto shards = model::parse_index(*text, place.string());
    if (!shards)
      return shards.why();
    std::vector<const hub_file*> files;
    for (const std::string& name : shards->files()) {
      const hub_file* file = listing_.find(name);
      if (file == nullptr)
        return failure{request_.name.repository + ": its " + index_name
                       + " names " + core::shown(name)
                       + ", which it does not have: choose another revision"};
      files.push_back(file);
    }
    return fetch(files);
  }

  std::string gguf_text() const {
    const auto names = gguf_files(listing_);
    return names.empty() ? std::string()
                         : "; it has files in GGUF, of which one is named as "
                             + request_.name.repository
                             + ":FILE: " + core::shown(core::listed(names));
  }

  /// Downloads what is missing, and links all.
  model::status fetch(const std::vector<const hub_file*>& files) {
    std::uint64_t missing = 0;
    std::set<std::string> counted;
    for (const hub_file* file : files) {
      if (file->hash.empty())
        return failure{
          settings_.endpoint + " gives no size or hash of "
          + request_.name.repository + "'s " + core::shown(file->path)
          + ", by which it could be checked: is HF_ENDPOINT a hub?"};
      out_.files += 1;
      out_.bytes += file->bytes;
      if (!cache_.has_blob(file->hash) && counted.insert(file->hash).second)
        missing += file->bytes;
    }
    to_do_ += missing;
    if (auto made = cache_.make_folders(); !made)
      return made;
    if (auto room = check_room(files); !room)
      return room;
    for (const hub_file* file : files) {
      if (auto fetched = fetch(*file); !fetched)
        return fetched;
      if (auto linked = cache_.link(listing_.commit, file->path, file->hash);
          !linked)
        return linked;
    }
    return model::done{};
  }

  /// Before a download that may take hours.
  model::status check_room(const std::vector<const hub_file*>& files) {
    download_room::lacking lacking;
    std::error_code error;
    for (const hub_file* file : files) {
      if (cache_.has_blob(file->hash))
        continue;
      fs::path part = cache_.blob(file->hash);
      part += ".incomplete"; // of an earlier download
      const auto here = fs::file_size(part, error);
      lacking[file->hash] =
        file->bytes - (error ? 0 : std::min<std::uint64_t>(here, file->bytes));
    }
    auto kept = room_.reserve(lacking, [&]() -> model::result<std::uint64_t> {
      const auto room = fs::space(settings_.cache, error);
      if (error)
        return failure{error.message()};
      return room.available - std::min(room.available, reserve_bytes);
    });
    if (kept)
      return kept;
    return failure{"no room for " + request_.name.repository + " in "
                   + settings_.cache.string() + ": " + kept.message()
                   + " besides the " + core::size_text(reserve_bytes)
                   + " that stay free: free some, or set HF_HUB_CACHE to a "
                     "folder on another disk"};
  }

  model::status fetch(const hub_file& file) {
    if (cache_.has_blob(file.hash))
      return model::done{};
    activity_ = "waiting for another process that downloads ";
    auto lock = cache_.lock(file.hash, [this] { return tell(); });
    activity_ = downloading;
    if (!lock)
      return lock.why();
    const std::uint64_t before = done_;
    if (!cache_.has_blob(file.hash)) { // another process may have been faster
      if (auto got = client_.download(
            request_.name, listing_.commit, file, cache_, *lock,
            [&](std::uint64_t bytes, bool checking) {
              done_ = before + bytes;
              if (!checking) // else those bytes are on the disk already
                room_.lacks(file.hash,
                            file.bytes - std::min(file.bytes, bytes));
              activity_ = checking ? "checking what is here of " : downloading;
            });
          !got)
        return got;
      out_.fetched_bytes += file.bytes;
    }
    done_ = before + file.bytes;
    room_.lacks(file.hash, 0);
    return model::done{};
  }

  const hub_settings& settings_;
  const pull_request& request_;
  const model::watch& told_;
  hub_cache cache_;
  hub_client client_;
  download_room room_{settings_.cache};
  hub_listing listing_;
  pulled out_;
  std::string activity_ = "asking the hub for ";
  std::uint64_t done_ = 0, to_do_ = 0; ///< bytes
};

} // namespace

model::result<pulled>
pull(const hub_settings& settings, const pull_request& request,
     const model::watch& told) {
  return pulling(settings, request, told).run();
}

} // namespace shoal::hub
