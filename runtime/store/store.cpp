// runtime/store/store.cpp -- blobs as files named by their hash.
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/store/claimed_blobs.hpp"
#include "runtime/store/held_blobs.hpp"
#include "runtime/store/loaded_blob.hpp"
#include "runtime/store/parts.hpp"
#include "runtime/store/spare_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

namespace shoal::runtime {

namespace fs = std::filesystem;
using core::blob_digest;

namespace {

/// The disk meter counts a file in steps of this size.
constexpr std::size_t block_bytes = std::size_t{4} << 20;

class disk_store;

class disk_writer final : public blob_writer {
public:
  disk_writer(disk_store& home, fs::path file, bool memory_will_do);
  disk_writer(disk_store& home, std::unique_ptr<part_files::part> part,
              bool memory_will_do);
  /// Only in memory.
  explicit disk_writer(disk_store& home)
    : home_(home), refused_(std::make_error_code(std::errc::not_enough_memory)),
      copy_(std::in_place), passes_(true) {}
  ~disk_writer() override {
    fd_.close();
    const bool stays = part_ && bytes_ > 0 && !error_ && !refused_;
    if (!committed_ && !stays && !file_.empty())
      give_up();
  }

  std::error_code append(std::span<const std::byte> bytes) override {
    if (error_ || count(bytes))
      return error_;
    if (!refused_)
      refuse(write(bytes));
    return error_ = copy_ ? std::error_code{} : refused_;
  }

  std::error_code commit(blob_digest& digest,
                         const std::optional<blob_digest>& expected) override;

  std::uint64_t written() const override { return bytes_; }

  /// Takes the bytes that the file already has.
  std::error_code take_begun();

private:
  void give_up();
  std::error_code count(std::span<const std::byte> bytes);
  std::error_code write(std::span<const std::byte> bytes);
  std::error_code sync_and_adopt(const blob_digest& digest);
  void refuse(std::error_code error);

  disk_store& home_;
  std::unique_ptr<part_files::part> part_; ///< null: a temporary file
  fs::path file_;
  posix::descriptor fd_;
  sha256_hash hash_;
  std::uint64_t bytes_ = 0;
  std::uint64_t on_disk_ = 0; ///< of these, in the store's own folder
  std::error_code error_;
  bool over_chosen_ = false; ///< not the disk itself has refused
  std::error_code refused_;  ///< by the disk
  /// The complete data, if memory is allowed to hold it.
  std::optional<std::vector<std::byte>> copy_;
  const bool passes_ = false;
  bool committed_ = false;
};

class disk_store final : public store {
public:
  explicit disk_store(fs::path folder, fs::path spare = {},
                      std::uint64_t bytes_max = 0)
    : folder_(std::move(folder)), spare_(std::move(spare)),
      bytes_max_(bytes_max), parts_(folder_ / "parts") {
    fs::create_directories(folder_ / "tmp");
    fs::permissions(folder_, fs::perms::owner_all); // holds the user's text
    // Files that a process left half written when it died.
    for (const auto& left : fs::directory_iterator(folder_ / "tmp"))
      fs::remove(left.path());
    used_ = bytes_below(folder_);
  }

  bool contains(const blob_digest& digest) const override {
    return ::access(path_of(digest).c_str(), F_OK) == 0 || in_memory(digest);
  }

  std::uint64_t size(const blob_digest& digest) const override {
    if (const auto held = held_.at(digest))
      return held->bytes().size();
    std::error_code none;
    const auto bytes = fs::file_size(path_of(digest), none);
    return none ? 0 : bytes;
  }

  std::chrono::seconds age(const blob_digest& digest) const override {
    std::error_code none;
    const auto written = fs::last_write_time(path_of(digest), none);
    return none ? std::chrono::seconds{0}
                : std::chrono::duration_cast<std::chrono::seconds>(
                  fs::file_time_type::clock::now() - written);
  }

  std::unique_ptr<blob_writer> write() override { return writer(false); }

  std::unique_ptr<blob_writer> write_of(const blob_digest& digest) override {
    if (held_.passes(digest))
      return std::make_unique<disk_writer>(*this);
    if (spare_in_use_)
      return writer(held_.needed(digest));
    used_ -= parts_.remove_old();
    const std::uint64_t begun = parts_.bytes(digest);
    auto part = parts_.begin(digest); // without those
    if (part)
      used_ -= begun;
    return part ? std::make_unique<disk_writer>(*this, std::move(part),
                                                held_.needed(digest))
                : writer(held_.needed(digest));
  }

  std::uint64_t begun(const blob_digest& digest) const override {
    return parts_.bytes(digest);
  }

  std::unique_ptr<blob_writer> go_on(const blob_digest& digest) override {
    auto part = parts_.go_on(digest);
    if (!part)
      return nullptr;
    auto writer = std::make_unique<disk_writer>(*this, std::move(part),
                                                held_.needed(digest));
    return writer->take_begun() ? nullptr : std::move(writer);
  }

  void may_stay_in_memory(const blob_digest& digest) override {
    held_.need(digest);
  }
  void stay_in_memory(const blob_digest& digest) override {
    held_.let_pass(digest);
  }
  void belongs_on_disk(const blob_digest& digest) override {
    held_.belongs_on_disk(digest);
  }
  void let_go(const blob_digest& digest) override { held_.let_go(digest); }
  bool in_memory(const blob_digest& digest) const override {
    return held_.at(digest) != nullptr;
  }

  void settle() override {
    for (const auto& [digest, held] : held_.to_settle()) {
      const auto to_disk = writer(false);
      blob_digest made{};
      if (to_disk->append(held->bytes()) || to_disk->commit(made, digest))
        continue;
      if (!held_.settled(digest))
        static_cast<void>(remove(digest));
    }
  }

  std::shared_ptr<const blob>
  read(const blob_digest& digest, std::error_code& error) override {
    error = {};
    if (auto held = held_.at(digest))
      return held;
    const auto path = path_of(digest);
    auto found = map_blob(path, error);
    if (!found) {
      if (error == std::errc::no_such_file_or_directory)
        error = errc::not_found;
      if (error == errc::not_regular) { // it has no bytes of its own
        put_aside(path, digest);
        error = errc::corrupt;
      }
      return nullptr;
    }
    {
      std::lock_guard lock(mutex_);
      if (verified_.contains(digest))
        return found;
    }
    if (hash_of(found->bytes()) != digest) {
      put_aside(path, digest);
      error = errc::corrupt;
      return nullptr;
    }
    std::lock_guard lock(mutex_);
    verified_.insert(digest);
    return found;
  }

  std::error_code verify(const blob_digest& digest) override {
    {
      std::lock_guard lock(mutex_);
      verified_.erase(digest);
    }
    std::error_code error;
    static_cast<void>(read(digest, error));
    return error;
  }

  bool set_aside(const blob_digest& digest) const override {
    return !contains(digest) && ::access(aside(digest).c_str(), F_OK) == 0;
  }

  std::error_code remove(const blob_digest& digest) override {
    const bool held = held_.forget(digest);
    {
      std::lock_guard lock(mutex_);
      verified_.erase(digest);
    }
    remove_part(digest);
    const fs::path path = path_of(digest);
    std::error_code none;
    const std::uint64_t bytes = fs::file_size(path, none);
    if (::unlink(path.c_str()) != 0) {
      const auto error = posix::last_error();
      if (error != std::errc::no_such_file_or_directory)
        return error;
      return held ? std::error_code{} : make_error_code(errc::not_found);
    }
    if (!is_in_spare(path))
      used_ -= none ? 0 : bytes;
    refused_at_ = never; // there is room again
    return {};
  }

  bool pledge(const blob_digest& digest, core::job_id job) override {
    const std::lock_guard lock(pledging_);
    return store::pledge(digest, job)
           && held_.pledge(digest, job, std::chrono::steady_clock::now());
  }

  std::error_code remove_unless_pledged(
    const blob_digest& digest,
    const std::function<bool(core::job_id)>& ended) override {
    const std::lock_guard lock(pledging_);
    return held_.pledged(digest, ended, std::chrono::steady_clock::now())
             ? make_error_code(std::errc::device_or_resource_busy)
             : remove(digest);
  }

  void claim(std::uint64_t client, const blob_digest& digest) override {
    claims_.claim(client, digest, std::chrono::steady_clock::now());
  }
  void submitted(std::uint64_t client, core::job_id job) override {
    claims_.submitted(client, job);
  }
  void drop_claims(std::uint64_t client) override { claims_.drop(client); }
  void renew_claims(std::uint64_t client) override {
    claims_.renew(client, std::chrono::steady_clock::now());
  }
  bool claimed(const blob_digest& digest,
               const std::function<bool(core::job_id)>& lists) const override {
    return claims_.claimed(digest, lists, std::chrono::steady_clock::now());
  }

  std::vector<blob_digest> list() const override {
    std::vector<blob_digest> found;
    list_in(folder_, found);
    if (spare_in_use_)
      list_in(spare_, found);
    held_.list(found);
    return found;
  }

  /// Where the blob is, or would be in the store's own folder.
  fs::path path_of(const blob_digest& digest) const {
    if (spare_in_use_)
      if (fs::path there = path_in(spare_, digest);
          ::access(there.c_str(), F_OK) == 0)
        return there;
    return path_in(folder_, digest);
  }

  /// The disk has refused: what follows goes to the spare folder.
  void refused() {
    refused_at_ = std::chrono::steady_clock::now().time_since_epoch();
    std::error_code error;
    if (spare_.empty() || spare_in_use_)
      return;
    fs::create_directories(spare_ / "tmp", error);
    if (!error)
      fs::permissions(spare_, fs::perms::owner_all, error);
    spare_in_use_ = !error;
  }

  space room() const override {
    std::error_code error;
    const auto is = fs::space(folder_, error);
    if (error)
      return {};
    space out{is.available, is.capacity, 0};
    out.reserve_bytes =
      std::min(out.all_bytes / reserve_share, reserve_bytes_max);
    if (const auto left = left_of_chosen(); left && *left < out.to_fill())
      out = {*left, bytes_max_, 0};
    const auto since =
      std::chrono::steady_clock::now().time_since_epoch() - refused_at_.load();
    if (refused_at_.load() != never && since < full_after_refusal)
      out.free_bytes = 0;
    return out;
  }

  std::uint64_t used_bytes() const override { return used_; }
  std::uint64_t unfinished_bytes() const override {
    return bytes_below(folder_ / "tmp") + bytes_below(folder_ / "parts");
  }

  /// Whether the chosen size has room for this many more.
  bool may_take(std::uint64_t bytes) const {
    const auto left = left_of_chosen();
    return !left || bytes <= *left;
  }
  void took(std::uint64_t bytes) { used_ += bytes; }
  /// Bytes of a temporary file or part that is gone.
  void dropped(std::uint64_t bytes) { used_ -= bytes; }
  bool is_in_spare(const fs::path& file) const {
    return !spare_.empty()
           && std::ranges::mismatch(spare_, file).in1 == spare_.end();
  }

  disk_meter::reading activity() const override { return meter_.read(); }
  disk_meter& meter() { return meter_; }

  held_blobs& held() { return held_; }

  /// Gives a synced file its name.
  std::error_code adopt(const fs::path& file, const blob_digest& digest) {
    const fs::path& home = is_spare(file) ? spare_ : folder_;
    const auto path = path_in(home, digest);
    if (::mkdir(path.parent_path().c_str(), 0777) == 0) {
      if (const auto error = posix::sync_folder(home))
        return error;
    } else if (errno != EEXIST) {
      return posix::last_error();
    }
    std::error_code none;
    const std::uint64_t replaced = fs::file_size(path, none);
    if (::rename(file.c_str(), path.c_str()) != 0)
      return posix::last_error();
    if (!none && home == folder_)
      used_ -= replaced;
    {
      std::lock_guard lock(mutex_);
      verified_.insert(digest);
    }
    remove_part(digest); // another writer's
    return posix::sync_folder(path.parent_path());
  }

private:
  static constexpr std::chrono::nanoseconds never{-1};

  /// Nothing if no size was chosen.
  std::optional<std::uint64_t> left_of_chosen() const {
    if (bytes_max_ == 0)
      return {};
    return bytes_max_ - std::min(bytes_max_, used_.load());
  }

  void remove_part(const blob_digest& digest) {
    used_ -= parts_.remove(digest);
  }

  static std::uint64_t bytes_below(const fs::path& folder) {
    std::uint64_t sum = 0;
    std::error_code none;
    for (fs::recursive_directory_iterator f(folder, none), end;
         !none && f != end; f.increment(none)) {
      std::error_code skip;
      if (f->is_regular_file(skip))
        if (const auto bytes = f->file_size(skip); !skip)
          sum += bytes;
    }
    return sum;
  }

  static fs::path path_in(const fs::path& folder, const blob_digest& digest) {
    const auto name = core::to_hex(digest);
    return folder / name.substr(0, 2) / name.substr(2);
  }

  static void list_in(const fs::path& store, std::vector<blob_digest>& found) {
    std::error_code none;
    for (fs::directory_iterator folder(store, none), end;
         !none && folder != end; folder.increment(none)) {
      const auto first = folder->path().filename().string();
      std::error_code skip;
      for (fs::directory_iterator file(folder->path(), skip);
           !skip && file != end; file.increment(skip)) {
        blob_digest digest;
        if (core::from_hex(first + file->path().filename().string(), digest))
          found.push_back(digest);
      }
    }
  }

  bool is_spare(const fs::path& temporary) const {
    return spare_in_use_ && temporary.parent_path() == spare_ / "tmp";
  }

  std::unique_ptr<blob_writer> writer(bool memory_will_do) {
    const auto name =
      std::to_string(::getpid()) + "-" + std::to_string(next_temporary_++);
    const fs::path& home = spare_in_use_ ? spare_ : folder_;
    return std::make_unique<disk_writer>(*this, home / "tmp" / name,
                                         memory_will_do);
  }

  /// The hash of a file as it is read from the disk.
  blob_digest hash_of(std::span<const std::byte> bytes) {
    disk_meter::piece at_work(meter_, bytes.size());
    sha256_hash hash;
    while (!bytes.empty()) {
      const auto block = bytes.first(std::min(bytes.size(), block_bytes));
      hash.add(block);
      at_work.moved(block.size());
      bytes = bytes.subspan(block.size());
    }
    return hash.finish();
  }

  fs::path aside(const blob_digest& digest) const {
    return folder_ / "corrupt" / core::to_hex(digest);
  }

  void put_aside(const fs::path& path, const blob_digest& digest) {
    std::error_code none;
    fs::create_directories(folder_ / "corrupt", none);
    fs::rename(path, aside(digest), none);
    if (none) // removed, so that it is not read again
      fs::remove(path, none);
  }

  fs::path folder_;
  fs::path spare_;                ///< may be empty
  const std::uint64_t bytes_max_; ///< of files in folder_; 0: as many as fit
  std::atomic<std::uint64_t> used_{0}; ///< bytes of the files in folder_
  /// Steady time at which the disk refused last.
  std::atomic<std::chrono::nanoseconds> refused_at_{never};
  std::atomic<bool> spare_in_use_{false};
  part_files parts_;
  disk_meter meter_;
  std::atomic<std::uint64_t> next_temporary_{0};
  mutable std::mutex mutex_;
  /// Blobs that this process has read or written completely; one entry each.
  std::set<blob_digest> verified_;
  held_blobs held_;
  claimed_blobs claims_;
  std::mutex pledging_; ///< no pledge is made while a blob is removed
};

disk_writer::disk_writer(disk_store& home, fs::path file, bool memory_will_do)
  : home_(home), file_(std::move(file)),
    fd_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
  if (!fd_)
    refuse(posix::last_error());
  if (memory_will_do)
    copy_.emplace();
  else
    error_ = refused_;
}

disk_writer::disk_writer(disk_store& home,
                         std::unique_ptr<part_files::part> part,
                         bool memory_will_do)
  : home_(home), part_(std::move(part)), file_(part_->file),
    fd_(std::move(part_->fd)) {
  if (memory_will_do)
    copy_.emplace();
}

void disk_writer::give_up() {
  ::unlink(file_.c_str());
  home_.dropped(std::exchange(on_disk_, 0));
}

void disk_writer::refuse(std::error_code error) {
  refused_ = error;
  if (error && !over_chosen_)
    home_.refused();
}

std::error_code disk_writer::take_begun() {
  std::error_code error;
  const auto begun = map_blob(file_, error);
  if (!begun)
    return error_ = error;
  for (auto bytes = begun->bytes(); !bytes.empty() && !error_;) {
    const auto block = bytes.first(std::min(bytes.size(), block_bytes));
    disk_meter::piece at_work(home_.meter(), block.size());
    count(block);
    on_disk_ += block.size(); // counted by the store
    at_work.moved(block.size());
    bytes = bytes.subspan(block.size());
  }
  return error_;
}

/// Counts bytes that are, or will be, in the file.
std::error_code disk_writer::count(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (bytes_ > store::blob_bytes_max)
    return error_ = errc::too_large;
  hash_.add(bytes);
  if (copy_ && bytes_ > home_.held().bytes_max(passes_))
    copy_.reset();
  if (copy_)
    copy_->insert(copy_->end(), bytes.begin(), bytes.end());
  return {};
}

/// Writes a block at a time, so that the meter sees a large write progress.
std::error_code disk_writer::write(std::span<const std::byte> bytes) {
  const bool own = !home_.is_in_spare(file_);
  if (own && !home_.may_take(bytes.size())) {
    over_chosen_ = true;
    return std::make_error_code(std::errc::no_space_on_device);
  }
  disk_meter::piece at_work(home_.meter(), bytes.size());
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), block_bytes));
    if (const auto error = posix::write_all(fd_.get(), block))
      return error;
    if (own) {
      home_.took(block.size());
      on_disk_ += block.size();
    }
    at_work.moved(block.size());
    bytes = bytes.subspan(block.size());
  }
  return {};
}

std::error_code
disk_writer::commit(blob_digest& digest,
                    const std::optional<blob_digest>& expected) {
  if (error_)
    return error_;
  error_ = std::make_error_code(std::errc::bad_file_descriptor); // used up
  digest = hash_.finish();
  if (expected && *expected != digest)
    return errc::corrupt;
  if (!refused_)
    refuse(sync_and_adopt(digest));
  if (!refused_ || !copy_ || !home_.held().hold(digest, std::move(*copy_)))
    return refused_;
  return {};
}

std::error_code disk_writer::sync_and_adopt(const blob_digest& digest) {
  disk_meter::piece at_work(home_.meter(), bytes_);
  if (::fsync(fd_.get()) != 0)
    return posix::last_error();
  if (fd_.close() != 0)
    return posix::last_error();
  const auto error = home_.adopt(file_, digest);
  committed_ = !error;
  if (committed_)
    at_work.moved(bytes_);
  return error;
}

} // namespace

std::unique_ptr<store> store::open(const fs::path& folder) {
  return std::make_unique<disk_store>(folder);
}

std::unique_ptr<store> open_store(const fs::path& folder, const fs::path& spare,
                                  std::uint64_t bytes_max) {
  return std::make_unique<disk_store>(folder, spare, bytes_max);
}

} // namespace shoal::runtime
