// runtime/links/link_local.cpp -- pairs the two halves of a transfer.
#include "runtime/links/link_local.hpp"

#include <cstring>

namespace shoal::runtime::links {

using transport::errc;

void local::expect(transport::bulk_tag tag, shared_bytes into,
                   link_hub::callback done) {
  meet(receives_, sends_, tag, {std::move(into), std::move(done)});
}

void local::send(transport::bulk_tag tag, shared_bytes from,
                 link_hub::callback done) {
  meet(sends_, receives_, tag, {std::move(from), std::move(done)});
}

void local::meet(halves& mine, halves& others, transport::bulk_tag tag,
                 half own) {
  std::error_code refused;
  halves::node_type other;
  {
    std::lock_guard lock(mutex_);
    if (closed_)
      refused = errc::canceled;
    else if (mine.contains(tag))
      refused = std::make_error_code(std::errc::invalid_argument);
    else if (other = others.extract(tag); other.empty()) {
      if (mine.size() < link_service::transfers_max) {
        mine.emplace(tag, std::move(own));
        return;
      }
      refused = errc::would_block;
    }
  }
  if (refused)
    return own.done(refused);
  if (&mine == &receives_)
    copy(tag.plan, other.mapped(), own);
  else
    copy(tag.plan, own, other.mapped());
}

void local::copy(std::uint64_t plan, const half& from, const half& into) {
  std::error_code result;
  const auto bytes = from.bytes.bytes;
  if (bytes.size() != into.bytes.bytes.size())
    result = errc::size_mismatch;
  else if (!bytes.empty())
    std::memcpy(into.bytes.bytes.data(), bytes.data(), bytes.size());
  if (!result) {
    std::lock_guard lock(mutex_);
    copied_.of(named_.job_of(plan)).sent_bytes += bytes.size();
  }
  into.done(result);
  from.done(result);
}

void local::name_plan(std::uint64_t plan, std::uint64_t job) {
  std::lock_guard lock(mutex_);
  named_.name_plan(plan, job);
}

std::map<std::uint64_t, std::uint64_t> local::copied() const {
  std::lock_guard lock(mutex_);
  std::map<std::uint64_t, std::uint64_t> out;
  for (const auto& [job, moved] : copied_.jobs)
    out[job] = moved.sent_bytes;
  return out;
}

void local::cancel(std::uint64_t plan) {
  std::vector<half> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto* side : {&receives_, &sends_}) {
      auto at = side->lower_bound({plan, 0, 0});
      while (at != side->end() && at->first.plan == plan) {
        ended.push_back(std::move(at->second));
        at = side->erase(at);
      }
    }
  }
  for (const auto& h : ended)
    h.done(errc::canceled);
}

void local::close() {
  halves ended[2];
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    ended[0].swap(receives_);
    ended[1].swap(sends_);
  }
  for (const auto& side : ended)
    for (const auto& [tag, h] : side)
      h.done(errc::canceled);
}

} // namespace shoal::runtime::links
