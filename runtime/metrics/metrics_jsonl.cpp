// runtime/metrics/metrics_jsonl.cpp -- appends lines.
#include "runtime/metrics/metrics_jsonl.hpp"

#include "runtime/metrics/event_json.hpp"
#include "runtime/posix.hpp"

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
  return posix::write_all(file_, std::as_bytes(std::span(line)));
}

} // namespace shoal::runtime
