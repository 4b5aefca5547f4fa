// runtime/http/client/event_stream.cpp -- line by line.
#include "runtime/http/client/event_stream.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

event_stream::step event_stream::end_line(const taker& take) {
  constexpr std::string_view mark = "\xef\xbb\xbf", field = "data";
  const std::string whole = std::exchange(line_, {});
  std::string_view line = whole;
  if (std::exchange(first_, false) && line.starts_with(mark))
    line.remove_prefix(mark.size());
  if (line.empty()) {
    const std::string data = std::exchange(data_, {});
    return !std::exchange(has_data_, false) || take(data) ? step::more
                                                          : step::stopped;
  }
  const auto colon = std::min(line.find(':'), line.size());
  if (line.substr(0, colon) != field)
    return step::more;
  line.remove_prefix(std::min(colon + 1, line.size()));
  if (line.starts_with(' '))
    line.remove_prefix(1);
  if (data_.size() + 1 + line.size() > event_bytes_max_)
    return step::too_large;
  if (std::exchange(has_data_, true))
    data_ += '\n';
  data_ += line;
  return step::more;
}

event_stream::step
event_stream::put(std::string_view bytes, const taker& take) {
  while (ended_ == step::more && !bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const auto end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + end > event_bytes_max_)
      return ended_ = step::too_large;
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(end);
    if (bytes.empty())
      break;
    after_cr_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    ended_ = end_line(take);
  }
  return ended_;
}

} // namespace shoal::runtime
