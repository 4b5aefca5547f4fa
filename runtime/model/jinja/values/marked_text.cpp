// runtime/model/jinja/values/marked_text.cpp -- ranges that follow their bytes.
#include "runtime/model/jinja/values/marked_text.hpp"

#include <algorithm>
#include <utility>

namespace shoal::jinja {

marked_text marked_text::from_client(std::string text) {
  marked_text out{std::move(text), {}};
  if (!out.bytes.empty())
    out.foreign.push_back({0, out.bytes.size()});
  return out;
}

marked_text marked_text::made_of(std::string text, const marked_text& origin) {
  return origin.foreign.empty() ? own(std::move(text))
                                : from_client(std::move(text));
}

void marked_text::append(const marked_text& more) {
  const std::size_t offset = bytes.size();
  bytes += more.bytes;
  for (const text_range& r : more.foreign) {
    if (!foreign.empty() && foreign.back().last == r.first + offset)
      foreign.back().last = r.last + offset;
    else
      foreign.push_back({r.first + offset, r.last + offset});
  }
}

marked_text marked_text::part(std::size_t first, std::size_t last) const {
  marked_text out{bytes.substr(first, last - first), {}};
  // A text may have very many ranges, and be cut into very many parts.
  for (auto r = std::ranges::upper_bound(foreign, first, {}, &text_range::last);
       r != foreign.end() && r->first < last; ++r)
    out.foreign.push_back(
      {std::max(r->first, first) - first, std::min(r->last, last) - first});
  return out;
}

} // namespace shoal::jinja
