// apps/common/metrics_log.cpp -- reads a log line by line.
#include "apps/common/metrics_log.hpp"

#include "runtime/jobs/event_json.hpp"

#include <string>

namespace shoal::apps {

bool next_metrics_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  for (;;) {
    const int c = bytes.sbumpc();
    if (c == std::istream::traits_type::eof()) {
      in.setstate(line.empty() ? std::ios::eofbit | std::ios::failbit
                               : std::ios::eofbit);
      return !line.empty();
    }
    if (c == '\n')
      return true;
    if (line.size() <= metrics_line_bytes_max)
      line.push_back(static_cast<char>(c));
  }
}

metrics_log read_metrics(std::istream& in, std::uint64_t steps) {
  metrics_log out;
  runtime::job_event event;
  std::string line;
  for (std::uint64_t number = 1; next_metrics_line(in, line); ++number) {
    const bool known = line.size() <= metrics_line_bytes_max
                       && runtime::from_json_line(line, event);
    const bool step = known && event.kind == runtime::job_event_kind::step;
    if (!known || (step && (event.step == 0 || event.step > steps)))
      out.impossible.add(number);
    else if (step)
      out.steps.push_back({event.step, event.data});
  }
  return out;
}

} // namespace shoal::apps
