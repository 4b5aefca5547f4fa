// runtime/core/serving/stage_tables.cpp -- passes in their order.
#include "runtime/core/serving/stage_tables.hpp"

#include <utility>

namespace shoal::core {

namespace {

/// Brings a table up to date. @returns whether it has `want` pages then
bool renew(std::vector<page_id>& table, std::uint64_t kept,
           const std::vector<page_id>& fresh, std::size_t want) {
  if (kept > table.size() || kept + fresh.size() != want)
    return false;
  table.resize(kept);
  table.insert(table.end(), fresh.begin(), fresh.end());
  return true;
}

} // namespace

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
  ready_pass out{std::move(at->second), {}, {}};
  waiting_.erase(at);
  ++next_;
  for (const std::uint64_t id : out.pass.ended)
    tables_.erase(id);
  for (const serve_row& r : out.pass.rows) {
    table& t = tables_[r.sequence];
    const std::size_t want = pages_for(std::size_t(r.first) + r.tokens.size());
    const bool has_windows = r.windows_kept != 0 || !r.windows.empty();
    if (!renew(t.pages, r.pages_kept, r.pages, want)
        || !renew(t.windows, r.windows_kept, r.windows,
                  has_windows ? want : 0)) {
      broken_ = true;
      return std::nullopt;
    }
    out.tables.push_back(t.pages);
    out.windows.push_back(t.windows);
  }
  return out;
}

void stage_tables::answered(serve_chosen a) {
  answers_[a.number] = std::move(a);
  while (answers_.size() > answers_max)
    answers_.erase(answers_.begin());
}

} // namespace shoal::core
