// runtime/hub/hub_cache.cpp -- paths, links, refs and locks.
#include "runtime/hub/hub_cache.hpp"

#include "runtime/files/file_io.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/files/safetensors_begin.hpp"

#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace shoal::hub {
namespace {

namespace fs = std::filesystem;
namespace posix = runtime::posix;

constexpr std::size_t ref_bytes_max = 128;
constexpr char tag_text[] =
  "Signature: 8a477f597d28d172789f06886806bc55\n"
  "# This file is a cache directory tag created by huggingface_hub.\n"
  "# For information about cache directory tags, see:\n"
  "#\thttps://bford.info/cachedir/\n";

/// How often a lock is tried: a download takes seconds or more.
constexpr std::chrono::milliseconds lock_every{100};

std::string folder_name(std::string repository) {
  const auto slash = repository.find('/');
  return "models--" + repository.replace(slash, 1, "--");
}

model::status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return model::file_failure(folder, "cannot be made", error);
  return model::done{};
}

/// Whether the file behind `fd` is still the one at `path`: another process may
/// have removed it before this one had the lock.
bool is_at(const fs::path& path, int fd) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0
         && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

} // namespace

hub_cache::hub_cache(const fs::path& root, const std::string& repository)
  : root_(root), folder_(folder_name(repository)) {
}

fs::path hub_cache::blob(const std::string& hash) const {
  return root_ / folder_ / "blobs" / hash;
}

fs::path hub_cache::snapshot(const std::string& commit) const {
  return root_ / folder_ / "snapshots" / commit;
}

bool hub_cache::has_blob(const std::string& hash) const {
  std::error_code error;
  return fs::is_regular_file(blob(hash), error);
}

model::status hub_cache::make_folders() const {
  for (const fs::path& folder :
       {root_ / folder_ / "blobs", root_ / ".locks" / folder_})
    if (auto made = make_folder(folder); !made)
      return made;
  const fs::path tag = root_ / "CACHEDIR.TAG";
  std::error_code error;
  if (!fs::exists(tag, error)) // a help for others: not worth a failure
    static_cast<void>(model::write_file(tag, tag_text));
  return model::done{};
}

model::result<blob_lock>
hub_cache::lock(const std::string& hash,
                const std::function<bool()>& waits) const {
  const fs::path file = root_ / ".locks" / folder_ / (hash + ".lock");
  for (;;) {
    std::error_code error;
    posix::descriptor fd =
      posix::open_regular(file, O_RDWR | O_CREAT, error, 0666);
    if (error)
      return model::file_failure(file, "cannot be opened", error);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_at(file, fd.get()))
        return blob_lock(std::move(fd));
      continue;
    }
    if (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP)
      return blob_lock(posix::descriptor());
    if (errno != EWOULDBLOCK && errno != EINTR)
      return model::file_failure(file, "cannot be locked", posix::last_error());
    if (!waits())
      return model::failure{"stopped while another process downloads "
                            + blob(hash).string()};
    std::this_thread::sleep_for(lock_every);
  }
}

model::status
hub_cache::link(const std::string& commit, const std::string& path,
                const std::string& hash) const {
  const fs::path place = snapshot(commit) / path;
  std::error_code error;
  if (fs::exists(place, error))
    return model::done{};
  if (auto made = make_folder(place.parent_path()); !made)
    return made;
  fs::path target = "../..";
  for (char c : path)
    if (c == '/')
      target /= "..";
  target /= "blobs/" + hash;
  fs::create_symlink(target, place, error);
  if (error == std::errc::file_exists && !fs::exists(place, error)) {
    fs::remove(place, error); // its blob was removed
    fs::create_symlink(target, place, error);
  }
  if (error && error != std::errc::file_exists)
    return model::file_failure(place, "cannot be linked to its blob", error);
  return model::done{};
}

model::status hub_cache::write_ref(const std::string& revision,
                                   const std::string& commit) const {
  if (revision == commit || commit_of(revision) == commit)
    return model::done{};
  const fs::path file = root_ / folder_ / "refs" / revision;
  if (auto made = make_folder(file.parent_path()); !made)
    return made;
  return model::write_file(file, commit);
}

std::optional<std::string>
hub_cache::commit_of(const std::string& revision) const {
  if (is_commit(revision))
    return revision;
  const auto text =
    model::read_file(root_ / folder_ / "refs" / revision, ref_bytes_max);
  if (!text)
    return std::nullopt;
  std::string commit = text->substr(0, text->find('\n'));
  return is_commit(commit) ? std::optional(std::move(commit)) : std::nullopt;
}

hub_cache::found
hub_cache::look(const std::string& commit, const std::string& file) const {
  const fs::path folder = snapshot(commit);
  std::error_code error;
  const auto has = [&](const std::string& name) {
    return fs::is_regular_file(folder / name, error);
  };
  if (!file.empty())
    return has(file) ? found::all : found::nothing;
  if (!has("config.json"))
    return found::nothing;
  if (!has("model.safetensors")) {
    const fs::path place = folder / "model.safetensors.index.json";
    const auto text = model::read_file(place, model::header_bytes_max);
    if (!text)
      return found::nothing;
    const auto index = model::parse_index(*text, place.string());
    if (!index || !std::ranges::all_of(index->files(), has))
      return found::nothing;
  }
  return has("tokenizer.json") ? found::all : found::weights;
}

} // namespace shoal::hub
