// runtime/jobs/job_lines.cpp -- appends lines, keeps refused ones, reports that
// once.
#include "runtime/jobs/job_lines.hpp"

#include "runtime/files/file.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/jobs/event_json.hpp"
#include "runtime/jobs/job_log.hpp"

#include <chrono>
#include <cstdio>
#include <iterator>
#include <span>
#include <utility>

namespace shoal::runtime {

namespace fs = std::filesystem;

namespace {

std::string note_of_dropped(std::uint64_t count) {
  job_event e;
  e.text = std::to_string(count)
           + " lines of this log are missing here: the disk refused them, and "
             "no more could be kept";
  e.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::system_clock::now().time_since_epoch())
                .count();
  return to_json_line(e);
}

} // namespace

job_lines::job_lines(fs::path folder,
                     std::function<void(const std::string&)> say)
  : folder_(std::move(folder)), say_(std::move(say)) {
}

fs::path job_lines::file(core::job_id job) const {
  return folder_ / core::job_text(job) / "events.jsonl";
}

fs::path job_lines::mark(core::job_id job) const {
  return folder_ / core::job_text(job) / "unwritten";
}

void job_lines::append(core::job_id job, std::string line) {
  std::string news;
  {
    std::lock_guard lock(mutex_);
    keep(job, std::move(line));
    news = write_refused();
  }
  if (!news.empty() && say_)
    say_(news);
}

void job_lines::retry() {
  std::string news;
  {
    std::lock_guard lock(mutex_);
    news = write_refused();
  }
  if (!news.empty() && say_)
    say_(news);
}

bool job_lines::lacks_lines(core::job_id job) {
  std::lock_guard lock(mutex_);
  std::error_code none;
  if (!fs::exists(mark(job), none))
    return false;
  refused_[job].marked = true;
  return true;
}

/// Keeps the order of append(), for write_refused().
void job_lines::keep(core::job_id job, std::string line) {
  refused_bytes_ += line.size();
  refused_[job].lines.push_back(std::move(line));
  for (auto& [any, r] : refused_)
    while (refused_bytes_ > refused_bytes_max && !r.lines.empty()) {
      refused_bytes_ -= r.lines.front().size();
      r.lines.pop_front();
      ++r.dropped;
      ++dropped_;
    }
}

/// Until the disk refuses again. @returns the text to report, if any
std::string job_lines::write_refused() {
  std::error_code why;
  for (auto at = refused_.begin(); at != refused_.end();) {
    const auto error = write_all_of(at->first, at->second);
    if (error)
      why = error;
    at = error ? std::next(at) : refused_.erase(at);
  }
  if (why && !failing_.exchange(true))
    return "[journal] what jobs do is not written to " + folder_.string() + ": "
           + why.message()
           + "; it is kept in memory, and written when there is room";
  if (why || !failing_.exchange(false))
    return {};
  const auto lost = std::exchange(dropped_, 0);
  return "[journal] what jobs do is written again to " + folder_.string()
         + (lost == 0 ? std::string{}
                      : "; of what was refused " + std::to_string(lost)
                          + " lines were too many to keep");
}

std::error_code job_lines::write_all_of(core::job_id job, refused& r) {
  std::error_code error;
  if (r.dropped > 0) {
    error = write(job, note_of_dropped(r.dropped));
    if (!error)
      r.dropped = 0;
  }
  while (!error && !r.lines.empty()) {
    error = write(job, r.lines.front());
    if (error)
      break;
    refused_bytes_ -= r.lines.front().size();
    r.lines.pop_front();
  }
  std::error_code none;
  if (!error && r.marked) {
    fs::remove(mark(job), none);
  } else if (error && !r.marked) { // an empty file needs no space, if its
                                   // folder exists
    r.marked = bool(posix::open_regular(mark(job), O_WRONLY | O_CREAT, none));
  }
  return error;
}

std::error_code job_lines::write(core::job_id job, const std::string& line) {
  const auto path = file(job);
  std::error_code error = make_folder_below(folder_, path.parent_path());
  if (error)
    return error;
  const posix::descriptor fd =
    posix::open_regular(path, O_RDWR | O_CREAT | O_APPEND, error);
  if (error)
    return error;
  // A line that was cut off by a crash or a full disk must not spoil the next
  // one.
  std::string text = line + "\n";
  const auto end = ::lseek(fd.get(), 0, SEEK_END);
  char last = '\n';
  if (end > 0 && ::pread(fd.get(), &last, 1, end - 1) == 1 && last != '\n')
    text.insert(0, 1, '\n');
  return posix::write_all(fd.get(), std::as_bytes(std::span(text)));
}

} // namespace shoal::runtime
