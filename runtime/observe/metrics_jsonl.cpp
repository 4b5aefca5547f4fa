// runtime/observe/metrics_jsonl.cpp -- appends lines.
#include "runtime/observe/metrics_jsonl.hpp"

#include "runtime/files/posix.hpp"
#include "runtime/jobs/event_json.hpp"

namespace shoal::runtime {

metrics_jsonl::metrics_jsonl(const std::filesystem::path& file)
  : file_(
    ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_ < 0)
    throw std::system_error(posix::last_error(), file.string());
}

metrics_jsonl::~metrics_jsonl() {
  ::close(file_);
}

std::error_code metrics_jsonl::add(const job_event& event) {
  const auto line = to_json_line(event) + "\n";
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const auto error = posix::write_all(file_, std::as_bytes(std::span(line)));
  // Half a line would be joined with the next. (-1: not a file on a disk.)
  if (error && before >= 0)
    static_cast<void>(::ftruncate(file_, before));
  return error;
}

} // namespace shoal::runtime
