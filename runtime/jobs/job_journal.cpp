// runtime/jobs/job_journal.cpp -- events in memory; job_lines writes them.
#include "runtime/jobs/job_journal.hpp"

#include "runtime/files/posix.hpp"
#include "runtime/jobs/event_json.hpp"
#include "runtime/jobs/job_lines.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <tuple>

namespace shoal::runtime {

namespace fs = std::filesystem;

event_key key_of(const job_event& e) {
  switch (e.kind) {
  case job_event_kind::view:
    return {e.kind, e.epoch, 0, {}, e.island};
  case job_event_kind::notice:
    return {e.kind, e.step, 0, e.text, e.island};
  case job_event_kind::done:
    return {e.kind, 0, 0, {}, 0};
  case job_event_kind::step:
  case job_event_kind::eval:
  case job_event_kind::checkpoint:
    return {e.kind, e.step, e.epoch, {}, e.island};
  default:
    return {e.kind, e.step, 0, {}, e.island};
  }
}

namespace {

/// One job's events; positions continue when the oldest are dropped.
struct history {
  std::deque<job_event> events;
  std::uint64_t first = 0; ///< position of the oldest
  std::set<event_key> keys;
  /// For each kind: all up to this number have been seen and dropped.
  std::map<job_event_kind, std::uint64_t> forgotten;
  std::optional<job_event> last_step;
  std::optional<job_event> last_checkpoint;
  std::optional<job_event> awaited; ///< since the last step
  bool ended = false;
  std::uint64_t order = 0; ///< of the last event, among all jobs

  std::uint64_t next() const { return first + events.size(); }

  double tokens_per_s() const {
    const auto whole =
      std::chrono::duration<double>(job_journal::pace_window).count();
    double tokens = 0, seconds = 0;
    std::size_t looked = 0;
    for (auto e = events.rbegin(); e != events.rend() && seconds < whole
                                   && looked < job_journal::pace_events_max;
         ++e, ++looked)
      if (e->kind == job_event_kind::step && e->step > 0
          && e->tokens_per_s > 0) {
        const double of_step = double(e->tokens) / double(e->step);
        tokens += of_step;
        seconds += of_step / e->tokens_per_s;
      }
    return seconds > 0 ? tokens / seconds : 0;
  }

  /// Two halves of a shoal had each ended the job, and agree on one end since.
  /// Every view that lists an ended job names its end. @pre ended
  bool has_other_end(const job_event& e) const {
    const job_event& known = events.back();
    return e.epoch > known.epoch
           && std::tie(e.step, e.text, e.cause)
                != std::tie(known.step, known.text, known.cause);
  }

  /// Of a step or another deed of the job under a later view than that of its
  /// end: it goes on. Or of another end than the known one. @pre ended
  bool goes_on(const job_event& e) const {
    if (e.kind == job_event_kind::done)
      return has_other_end(e);
    return (e.kind == job_event_kind::step || e.kind == job_event_kind::view
            || e.kind == job_event_kind::checkpoint)
           && e.epoch > events.back().epoch;
  }

  bool add(const job_event& e) {
    const auto key = key_of(e);
    const auto old = forgotten.find(e.kind);
    if (old != forgotten.end() && std::get<1>(key) <= old->second)
      return false;
    const bool again = ended && e.kind == job_event_kind::done;
    if ((!again && keys.contains(key)) || (ended && !goes_on(e)))
      return false;
    if (ended) {
      keys.erase(key_of(events.back()));
      events.pop_back();
    }
    keys.insert(key);
    events.push_back(e);
    if (e.kind == job_event_kind::step)
      last_step = e; // also one that is run again after a loss
    if (e.kind == job_event_kind::checkpoint)
      last_checkpoint = e;
    if (e.waits && !e.text.starts_with(no_quorum_text))
      awaited = e;
    else if (e.kind == job_event_kind::step || e.kind == job_event_kind::done)
      awaited.reset();
    ended = e.kind == job_event_kind::done;
    if (events.size() > job_log::events_max) {
      const auto oldest = key_of(events.front());
      auto& seen = forgotten[events.front().kind];
      if (events.front().kind != job_event_kind::notice)
        seen = std::max(seen, std::get<1>(oldest));
      keys.erase(oldest);
      events.pop_front();
      ++first;
    }
    return true;
  }
};

class journal final : public job_journal {
public:
  journal(const fs::path& folder, device_queue* disk,
          std::function<void(const std::string&)> say)
    : disk_(disk) {
    if (folder.empty())
      return;
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms::owner_all);
    lines_ = std::make_shared<job_lines>(folder, std::move(say));
    load(folder);
  }
  ~journal() override {
    if (lines_)
      lines_->retry();
  }

  void add(core::job_id job, const job_event& event) override {
    put(job, event, lines_);
  }
  void add_passing(core::job_id job, const job_event& event) override {
    put(job, event, nullptr);
  }
  /// @param lines gets it, too; may be null
  void put(core::job_id job, const job_event& event,
           const std::shared_ptr<job_lines>& lines) {
    job_event e = event;
    if (e.text.size() > text_bytes_max)
      e.text.resize(text_bytes_max);
    {
      std::lock_guard lock(mutex_);
      if (e.kind == job_event_kind::done)
        e.loss = loss_at(job, e.step);
      if (!keep(job, e))
        return;
      // With the lock held, so that the lines have the order of the events.
      if (lines && disk_)
        disk_->submit([l = lines, job, e](
                        kernels::backend&) { l->append(job, to_json_line(e)); },
                      {});
      else if (lines)
        lines->append(job, to_json_line(e));
    }
    changed_.notify_all();
    std::shared_lock lock(listeners_mutex_);
    for (const auto& [number, tell] : listeners_)
      tell(job);
  }

  std::vector<job_event> read(core::job_id job, std::uint64_t from,
                              std::uint64_t& next) const override {
    std::lock_guard lock(mutex_);
    next = from;
    const auto found = jobs_.find(job);
    if (found == jobs_.end())
      return {};
    const auto& h = found->second;
    const auto begin = std::clamp(from, h.first, h.next());
    next = h.next();
    return {h.events.begin() + static_cast<std::ptrdiff_t>(begin - h.first),
            h.events.end()};
  }

  std::vector<job_event> read_all(core::job_id job) const override {
    std::uint64_t next = 0;
    return read(job, 0, next);
  }

  bool wait(core::job_id job, std::uint64_t from,
            std::chrono::milliseconds timeout) const override {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] {
      const auto found = jobs_.find(job);
      return found != jobs_.end()
             && (found->second.ended || found->second.next() > from);
    });
  }

  std::uint64_t listen(std::function<void(core::job_id job)> changed) override {
    std::unique_lock lock(listeners_mutex_);
    listeners_.emplace(++last_listener_, std::move(changed));
    return last_listener_;
  }

  void unlisten(std::uint64_t listener) override {
    std::unique_lock lock(listeners_mutex_);
    listeners_.erase(listener);
  }

  bool ended(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found != jobs_.end() && found->second.ended;
  }

  std::vector<core::job_id> jobs() const override {
    std::lock_guard lock(mutex_);
    std::vector<core::job_id> list;
    for (const auto& [job, h] : jobs_)
      list.push_back(job);
    return list;
  }

  std::optional<job_event> last_step(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? std::nullopt : found->second.last_step;
  }

  double tokens_per_s(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? 0 : found->second.tokens_per_s();
  }

  std::optional<job_event> last_checkpoint(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? std::nullopt : found->second.last_checkpoint;
  }

  std::optional<job_event> awaited(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? std::nullopt : found->second.awaited;
  }

  std::uint64_t next(core::job_id job) const override {
    std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? 0 : found->second.next();
  }

  void retry() override {
    if (!lines_ || !lines_->waits())
      return;
    if (disk_)
      disk_->submit([l = lines_](kernels::backend&) { l->retry(); }, {});
    else
      lines_->retry();
  }

private:
  /// Of a step of the job; NaN if this node does not know it, as it came later.
  /// @pre the lock is held.
  double loss_at(core::job_id job, std::uint64_t step) const {
    const auto found = jobs_.find(job);
    const auto* last = found == jobs_.end() || !found->second.last_step
                         ? nullptr
                         : &*found->second.last_step;
    return last && last->step == step
             ? last->loss
             : std::numeric_limits<double>::quiet_NaN();
  }

  /// @returns false if the event is known already. @pre the lock is held.
  bool keep(core::job_id job, const job_event& e) {
    auto& h = jobs_[job];
    if (!h.add(e))
      return false;
    h.order = ++order_;
    if (jobs_.size() > jobs_max)
      forget_one(job);
    return true;
  }

  void forget_one(core::job_id except) {
    auto oldest = jobs_.end();
    for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
      if (at->first == except)
        continue;
      const auto rank = [](const history& h) {
        return std::pair(!h.ended, h.order);
      };
      if (oldest == jobs_.end() || rank(at->second) < rank(oldest->second))
        oldest = at;
    }
    jobs_.erase(oldest);
  }

  void load(const fs::path& folder) {
    using dated = std::pair<fs::file_time_type, fs::path>;
    std::vector<dated> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      const auto file = entry.path() / "events.jsonl";
      std::error_code missing;
      const auto time = fs::last_write_time(file, missing);
      if (!missing)
        files.emplace_back(time, file);
    }
    std::sort(files.begin(), files.end());
    const auto skip = files.size() - std::min(files.size(), jobs_max);
    for (auto at = files.begin() + static_cast<std::ptrdiff_t>(skip);
         at != files.end(); ++at)
      load_file(at->second);
  }

  void load_file(const fs::path& file) {
    const auto name = file.parent_path().filename().string();
    if (name.size() != 16
        || name.find_first_not_of("0123456789abcdef") != std::string::npos)
      return;
    const core::job_id job = std::stoull(name, nullptr, 16);
    std::ifstream in = posix::open_text(file);
    for (std::string line; std::getline(in, line);) {
      job_event e;
      if (from_json_line(line, e)) // otherwise it was cut off by a crash
        keep(job, e);
    }
    if (!lines_->lacks_lines(job))
      return;
    job_event e;
    e.step = jobs_[job].last_step ? jobs_[job].last_step->step : 0;
    e.text = "here this log lacks what the disk refused until its node ended";
    e.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                  .count();
    if (keep(job, e))
      lines_->append(job, to_json_line(e));
    else
      lines_->retry(); // it ends with `done`
  }

  device_queue* disk_;
  std::shared_ptr<job_lines> lines_; ///< outlives this object while the disk
                                     ///< queue uses it
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<core::job_id, history> jobs_;
  std::uint64_t order_ = 0;
  std::shared_mutex listeners_mutex_;
  std::map<std::uint64_t, std::function<void(core::job_id)>> listeners_;
  std::uint64_t last_listener_ = 0;
};

} // namespace

std::unique_ptr<job_journal>
open_job_journal(const fs::path& folder, device_queue* disk,
                 std::function<void(const std::string&)> say) {
  return std::make_unique<journal>(folder, disk, std::move(say));
}

} // namespace shoal::runtime
