// apps/transfer/checkpoint_fetcher.cpp -- one thread, and one slot for the next
// request.
#include "apps/transfer/checkpoint_fetcher.hpp"

#include "actors/checkpoint/checkpoint_export.hpp"
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/model/files/checksums.hpp"

#include <sys/stat.h>

#include <chrono>
#include <utility>

namespace shoal::apps {

namespace fs = std::filesystem;

checkpoint_fetcher::checkpoint_fetcher(fs::path folder, blob_source& source)
  : folder_(std::move(folder)), source_(source), thread_([this] { run(); }) {
}

checkpoint_fetcher::~checkpoint_fetcher() {
  {
    std::lock_guard lock(mutex_);
    stop_ = over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void checkpoint_fetcher::want(const runtime::job_event& checkpoint,
                              const std::string& where) {
  {
    std::lock_guard lock(mutex_);
    if (next_)
      outcomes_.push_back(
        {next_->checkpoint,
         {},
         busy_ ? "that of step " + std::to_string(step_)
                   + " is still being fetched, and then a newer one"
               : "a newer one was ready"});
    next_ = wish{checkpoint, where, folder_, id_of(folder_.parent_path())};
  }
  changed_.notify_all();
}

checkpoint_fetcher::file_id checkpoint_fetcher::id_of(const fs::path& folder) {
  struct stat is {};
  if (::stat(folder.c_str(), &is) != 0)
    return {};
  return {is.st_dev, is.st_ino};
}

void checkpoint_fetcher::move_to(fs::path folder) {
  std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
}

std::optional<checkpoint_fetcher::outcome> checkpoint_fetcher::take() {
  std::lock_guard lock(mutex_);
  if (outcomes_.empty())
    return std::nullopt;
  outcome out = std::move(outcomes_.front());
  outcomes_.pop_front();
  return out;
}

void checkpoint_fetcher::settle(const std::function<bool()>& give_up) {
  std::unique_lock lock(mutex_);
  while (next_ || busy_) {
    if (!stop_ && give_up) {
      lock.unlock();
      const bool enough = give_up();
      lock.lock();
      stop_ = enough;
      changed_.notify_all();
    }
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
  stop_ = over_;
}

bool checkpoint_fetcher::stopping() {
  std::lock_guard lock(mutex_);
  return stop_;
}

void checkpoint_fetcher::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!next_) {
      changed_.wait(lock);
      continue;
    }
    const wish w = *std::exchange(next_, std::nullopt);
    busy_ = true;
    step_ = w.checkpoint.step;
    lock.unlock();
    outcome done = fetch(w);
    lock.lock();
    busy_ = false;
    outcomes_.push_back(std::move(done));
    changed_.notify_all();
  }
}

checkpoint_fetcher::outcome checkpoint_fetcher::fetch(const wish& w) {
  const fs::path folder =
    w.folder / ("step-" + std::to_string(w.checkpoint.step));
  const fs::path partial = folder.string() + ".partial";
  std::error_code ignored;
  const auto in_place = [&] {
    return id_of(w.folder.parent_path()) == w.around;
  };
  auto failed = [&](const std::string& why) {
    if (in_place()) // else it is another's
      fs::remove_all(partial, ignored);
    return outcome{w.checkpoint, {}, stopping() ? "interrupted" : why};
  };
  auto unwritten = [&](const std::string& why) {
    outcome out = failed(why);
    out.why = why;
    out.unwritten = true;
    return out;
  };
  std::string why;
  auto get = [&](const core::blob_digest& digest,
                 const blob_source::piece& sink) {
    return source_.get(
      w.where, digest,
      [&](std::span<const std::byte> bytes) {
        return stopping() ? std::make_error_code(std::errc::operation_canceled)
                          : sink(bytes);
      },
      why);
  };
  if (stopping())
    return failed({});
  std::string json;
  std::error_code error =
    get(w.checkpoint.digest, [&](std::span<const std::byte> bytes) {
      json.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return json.size() > actors::manifest_bytes_max
               ? std::make_error_code(std::errc::file_too_large)
               : std::error_code{};
    });
  if (error)
    return failed(why);
  const auto m = actors::parse_manifest(json);
  if (!m)
    return failed(m.message());
  const std::string moved =
    w.folder.parent_path().string() + " was moved or removed meanwhile";
  if (!in_place())
    return unwritten(moved);
  fs::remove_all(partial, ignored);
  fs::create_directories(partial, error);
  if (error)
    return unwritten(partial.string() + ": " + error.message());
  for (const actors::manifest_file& f : m->files) {
    const fs::path place = partial / f.name;
    std::error_code fault; // of this disk
    runtime::posix::descriptor out = runtime::posix::open_regular(
      place, O_WRONLY | O_CREAT | O_TRUNC, fault, 0666);
    if (!fault)
      error = get(f.digest, [&](std::span<const std::byte> bytes) {
        return fault = runtime::posix::write_all(out.get(), bytes);
      });
    if (!fault && out.close() != 0)
      fault = runtime::posix::last_error();
    if (fault)
      return unwritten(model::file_failure(place, "write", fault).message);
    if (error)
      return failed(why);
  }
  if (auto joined = actors::join_shards(partial); !joined)
    return unwritten(joined.message());
  if (auto written = model::write_checksums(partial); !written)
    return unwritten(written.message());
  if (!in_place())
    return unwritten(moved);
  fs::remove_all(folder, ignored);
  fs::rename(partial, folder, error);
  if (error)
    return unwritten(folder.string() + ": " + error.message());
  return {w.checkpoint, folder, {}};
}

} // namespace shoal::apps
