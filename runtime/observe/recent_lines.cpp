// runtime/observe/recent_lines.cpp -- a bounded queue of lines.
#include "runtime/observe/recent_lines.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <chrono>

namespace shoal::runtime {

void recent_lines::name(std::string node) {
  std::lock_guard lock(mutex_);
  node_ = std::move(node);
}

void recent_lines::add(std::string text) {
  using namespace std::chrono;
  if (text.size() > line_bytes_max)
    text = core::shown(text, line_bytes_max);
  const auto now =
    duration_cast<milliseconds>(system_clock::now().time_since_epoch());
  std::lock_guard lock(mutex_);
  bytes_ += text.size();
  lines_.push_back({now.count(), std::move(text)});
  ++next_;
  while (lines_.size() > lines_max || bytes_ > bytes_max) {
    bytes_ -= lines_.front().text.size();
    lines_.pop_front();
  }
}

std::string recent_lines::json(std::uint64_t from, std::size_t count,
                               std::uint64_t& next) const {
  nlohmann::ordered_json out = {{"node", ""},
                                {"lines", nlohmann::ordered_json::array()}};
  std::lock_guard lock(mutex_);
  out["node"] = node_;
  next = next_;
  const std::uint64_t wanted = from < next_ ? next_ - from : 0;
  const std::size_t shown = static_cast<std::size_t>(
    std::min<std::uint64_t>({wanted, count, lines_.size()}));
  for (std::size_t i = lines_.size() - shown; i < lines_.size(); ++i)
    out["lines"].push_back({{"number", next_ - (lines_.size() - i)},
                            {"unix_ms", lines_[i].unix_ms},
                            {"text", lines_[i].text}});
  return model::json_text(out);
}

} // namespace shoal::runtime
