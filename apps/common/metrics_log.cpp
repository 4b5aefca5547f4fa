// apps/common/metrics_log.cpp -- reads a log line by line.
#include "apps/common/metrics_log.hpp"

#include "runtime/jobs/event_json.hpp"

#include <iterator>
#include <map>
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
  struct entry {
    std::uint64_t data;
    std::int64_t unix_ms;
  };
  std::map<std::uint64_t, entry> newest; // by step
  metrics_log out;
  runtime::job_event event;
  std::string line;
  for (std::uint64_t number = 1; next_metrics_line(in, line); ++number) {
    const bool known = line.size() <= metrics_line_bytes_max
                       && runtime::from_json_line(line, event);
    const bool step = known && event.kind == runtime::job_event_kind::step;
    if (!known || (step && (event.step == 0 || event.step > steps))) {
      out.impossible.add(number);
      continue;
    }
    if (!step)
      continue;
    const auto [at, fresh] =
      newest.try_emplace(event.step, entry{event.data, event.unix_ms});
    if (fresh)
      continue;
    if (at->second.unix_ms != event.unix_ms) // else the same line once more
      newest.erase(std::next(at), newest.end());
    at->second = {event.data, event.unix_ms};
  }
  for (const auto& [step, is] : newest)
    out.steps.push_back({step, is.data});
  return out;
}

} // namespace shoal::apps
