// runtime/observe/timeline.cpp -- trace events, written as they happen.
#include "runtime/observe/timeline.hpp"

#include "runtime/core/ids.hpp"
#include "runtime/files/json.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <system_error>

namespace shoal::runtime {

namespace {

constexpr const char* queue_names[] = {"", "device", "reductions", "disk"};

std::string arguments(timeline::details d) {
  if (d.size() == 0)
    return {};
  std::string out;
  for (const auto& [name, value] : d)
    out += (out.empty() ? "\"" : ",\"") + std::string(name)
           + "\":" + std::to_string(value);
  return ",\"args\":{" + out + "}";
}

std::string name_of(const char* what) {
  return ",\"name\":\"" + std::string(what) + "\"";
}

std::string id_of(std::uint64_t id) { // as text: numbers lose digits
  return ",\"cat\":\"job\",\"id\":\"" + core::job_text(id) + "\"";
}

std::string thread_of(timeline::queue on) {
  return ",\"tid\":" + std::to_string(unsigned(on));
}

} // namespace

timeline::timeline(const std::filesystem::path& file, const std::string& name) {
  // O_NONBLOCK: a pipe with a stalled reader must not stop the node.
  const int fd = ::open(
    file.c_str(),
    O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0)
    throw std::system_error(errno, std::generic_category(),
                            "cannot write the trace " + file.string());
  file_ = fd;
  put("[\n");
  const nlohmann::json shown{{"name", name}};
  write('M', name_of("process_name") + ",\"args\":" + model::json_text(shown),
        {});
  for (unsigned q = 1; q < std::size(queue_names); ++q)
    write('M',
          thread_of(queue(q)) + name_of("thread_name")
            + ",\"args\":{\"name\":\"" + queue_names[q] + "\"}",
          {});
}

timeline::~timeline() {
  stop();
}

void timeline::begin(queue q, const char* what, details d) {
  if (on())
    write('B', thread_of(q) + name_of(what), d);
}

void timeline::end(queue q, details d) {
  if (on())
    write('E', thread_of(q), d);
}

void timeline::open(std::uint64_t id, const char* what, details d) {
  if (on())
    write('b', id_of(id) + name_of(what), d);
}

void timeline::close(std::uint64_t id, const char* what) {
  if (on())
    write('e', id_of(id) + name_of(what), {});
}

void timeline::write(char phase, const std::string& rest, details d) {
  using namespace std::chrono;
  const double us =
    double(duration_cast<nanoseconds>(system_clock::now().time_since_epoch())
             .count())
    / 1e3;
  char head[96];
  std::snprintf(head, sizeof head, "{\"ph\":\"%c\",\"pid\":%ld,\"ts\":%.1f",
                phase, long(::getpid()), us);
  put(head + rest + arguments(d) + "},\n");
}

void timeline::put(const std::string& line) {
  std::lock_guard lock(mutex_);
  const int fd = file_.load();
  if (fd < 0)
    return;
  std::string text = line;
  if (lost_ > 0)
    text = "{\"ph\":\"M\",\"name\":\"lost_events\",\"args\":{\"count\":"
           + std::to_string(lost_) + "}},\n" + line;
  const bool full = bytes_ + text.size() > bytes_max;
  if (full)
    text = "{\"ph\":\"M\",\"name\":\"trace_is_full\"},\n";
  const ssize_t done = ::write(fd, text.data(), text.size());
  if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
    ++lost_;
    return;
  }
  lost_ = 0;
  bytes_ += text.size();
  if (full || done != ssize_t(text.size()))
    stop();
}

timeline& no_timeline() {
  static timeline none;
  return none;
}

/// Events that come later find it closed.
void timeline::stop() {
  const int fd = file_.exchange(-1);
  if (fd >= 0)
    ::close(fd);
}

} // namespace shoal::runtime
