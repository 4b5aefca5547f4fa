// runtime/core/serving/stage_tables.cpp -- passes in their order.
#include "runtime/core/serving/stage_tables.hpp"

#include <utility>

namespace shoal::core {

std::optional<serve_chosen> stage_tables::put(const serve_pass& p) {
  if (p.number >= next_) {
    if (p.number < next_ + waiting_max)
      waiting_.try_emplace(p.number, p);
    return std::nullopt;
  }
  const auto at = answers_.find(p.number);
  return at == answers_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<stage_tables::ready_pass> stage_tables::next() {
  const auto at = waiting_.find(next_);
  if (broken_ || at == waiting_.end())
    return std::nullopt;
  ready_pass out{std::move(at->second), {}};
  waiting_.erase(at);
  ++next_;
  for (const std::uint64_t id : out.pass.ended)
    tables_.erase(id);
  for (const serve_row& r : out.pass.rows) {
    std::vector<page_id>& table = tables_[r.sequence];
    const std::size_t end = std::size_t(r.first) + r.tokens.size();
    if (r.pages_kept > table.size()
        || pages_for(end) != r.pages_kept + r.pages.size()) {
      broken_ = true;
      return std::nullopt;
    }
    table.resize(r.pages_kept);
    table.insert(table.end(), r.pages.begin(), r.pages.end());
    out.tables.push_back(table);
  }
  return out;
}

void stage_tables::answered(serve_chosen a) {
  answers_[a.number] = std::move(a);
  while (answers_.size() > answers_max)
    answers_.erase(answers_.begin());
}

} // namespace shoal::core
