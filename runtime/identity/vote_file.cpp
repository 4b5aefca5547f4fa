// runtime/identity/vote_file.cpp -- records on disk, or in a spare folder.
#include "runtime/identity/vote_file.hpp"

#include "runtime/core/setup_error.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/wire/codec.hpp"

#include <sys/stat.h>

#include <utility>

namespace shoal::runtime {

namespace fs = std::filesystem;
namespace cl = core::cluster;

namespace {

/// File names by the kind of record, in the order of the variant.
constexpr const char* record_files[] = {"view.record", "vote.record",
                                        "key.record"};

/// Whether it is a folder that no other user can write to.
bool is_own(const fs::path& folder) {
  struct stat is {};
  return ::lstat(folder.c_str(), &is) == 0 && S_ISDIR(is.st_mode)
         && is.st_uid == ::geteuid() && (is.st_mode & 077) == 0;
}

bool make_own(const fs::path& folder) {
  return ::mkdir(folder.c_str(), 0700) == 0
         || (errno == EEXIST && is_own(folder));
}

template <class Record>
void take(std::optional<Record>& out, cl::record&& r, const fs::path& file) {
  if (!std::holds_alternative<Record>(r))
    throw setup_error(file.string() + " holds another kind");
  out = std::get<Record>(std::move(r));
}

} // namespace

vote_file::vote_file(fs::path folder, std::vector<fs::path> spare,
                     std::function<bool()> lost)
  : folder_(std::move(folder)), spare_(std::move(spare)),
    lost_(std::move(lost)) {
  if (!folder_.empty())
    for (const char* name : record_files)
      kinds_.push_back({slot_file(folder_ / name), 0, {}, {}});
}

bool vote_file::set_aside(const fs::path& folder) {
  bool any = false;
  for (const char* name :
       {record_files[0], record_files[1]}) // the keys are the cluster's
    if (const fs::path file = folder / name; fs::exists(file)) {
      fs::rename(file, folder / (std::string(name) + ".former"));
      any = true;
    }
  return any;
}

cl::history vote_file::load() {
  cl::history out;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    kind& k = kinds_[i];
    auto newest = k.disk.load();
    fs::path from = k.disk.path();
    bool away = false;
    for (const fs::path& folder : spare_) {
      if (!is_own(folder))
        continue;
      slot_file file(folder / record_files[i]);
      auto found = file.load();
      if (found && (!newest || found->sequence > newest->sequence)) {
        newest = std::move(found);
        from = file.path();
        spare_in_use_ = folder;
        away = true;
      }
    }
    if (!newest)
      continue;
    cl::record r;
    if (auto error = codec::decode_record(newest->record, r))
      throw setup_error(from.string() + " is damaged (" + error.message()
                        + ")");
    if (i == 0)
      take(out.view, std::move(r), from);
    else if (i == 1)
      take(out.vote, std::move(r), from);
    else
      take(out.keys, std::move(r), from);
    k.sequence = newest->sequence;
    if (away) {
      k.away = std::move(newest->record);
      k.error = std::make_error_code(std::errc::io_error); // from that time
    }
  }
  return out;
}

std::error_code vote_file::write(const cl::record& r) {
  if (folder_.empty())
    return {};
  kind& k = kinds_[r.index()];
  ++k.sequence;
  k.away = codec::encode_record(r);
  return store(k);
}

std::error_code vote_file::write_to_disk(kind& k) {
  return lost() ? std::make_error_code(std::errc::no_such_file_or_directory)
                : k.disk.write(k.sequence, k.away);
}

/// Stores a record on the disk, otherwise in memory.
std::error_code vote_file::store(kind& k) {
  k.error = write_to_disk(k);
  if (!k.error) {
    k.away.clear();
    clear_spare(k);
    return {};
  }
  for (const fs::path& folder : spare_) {
    if (!make_own(folder))
      continue;
    slot_file file(folder / k.disk.path().filename());
    try {
      static_cast<void>(file.load());
    } catch (const setup_error&) {
      // It is of no use any more, whatever it was.
    }
    if (!file.write(k.sequence, k.away)) {
      spare_in_use_ = folder;
      return {};
    }
    ::rmdir(folder.c_str()); // if empty: it was made for this record
  }
  spare_in_use_.clear();
  return k.error;
}

void vote_file::clear_spare(const kind& k) {
  const bool all = !disk_error();
  for (const fs::path& folder : spare_) {
    if (!is_own(folder))
      continue;
    std::error_code ignored; // its number is older than the disk's
    fs::remove(folder / k.disk.path().filename(), ignored);
    if (all)
      fs::remove(folder, ignored);
  }
  if (all)
    spare_in_use_.clear();
}

void vote_file::retry() {
  for (kind& k : kinds_)
    if (k.error) {
      k.error = write_to_disk(k);
      if (!k.error) {
        k.away.clear();
        clear_spare(k);
      }
    }
}

std::error_code vote_file::disk_error() const {
  for (const kind& k : kinds_)
    if (k.error)
      return k.error;
  return {};
}

std::error_code vote_file::erase() {
  if (folder_.empty())
    return {};
  const bool gone = lost();
  for (std::size_t i : {0, 1}) { // a view without its vote would count
    kind& k = kinds_[i];
    if (auto error = gone ? std::error_code() : k.disk.remove())
      return error; // together with memory it is still correct
    k.away.clear();
    k.error = {};
    clear_spare(k);
  }
  return gone ? std::error_code() : posix::sync_folder(folder_);
}

std::vector<fs::path> spare_folders(const core::peer_id& self) {
  const std::string name = "shoal-votes-" + core::to_hex(self).substr(0, 16);
  std::error_code none;
  std::vector<fs::path> out{fs::path("/dev/shm") / name};
  if (const fs::path temp = fs::temp_directory_path(none); !none)
    out.push_back(temp / name);
  return out;
}

} // namespace shoal::runtime
