// runtime/observe/flight_record.cpp -- a ring buffer, and files written from
// it.
#include "runtime/observe/flight_record.hpp"

#include "runtime/files/file.hpp"
#include "runtime/files/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

namespace shoal::runtime {
namespace {

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// Keeps the newest files, and those that cannot be listed or removed.
void drop_oldest(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator(folder, ignored);
       !ignored && at != std::filesystem::directory_iterator();
       at.increment(ignored))
    if (at->path().extension() == ".jsonl")
      files.push_back(at->path());
  std::ranges::sort(files); // names begin with the time
  for (std::size_t i = 0; i + flight_record::files_kept < files.size(); ++i)
    std::filesystem::remove(files[i], ignored);
}

} // namespace

void flight_record::add(const char* what, core::job_id job, std::uint64_t step,
                        std::uint64_t a, std::uint64_t b,
                        const core::peer_id& peer) noexcept {
  event e{now_us(), what, job, step, a, b, {}};
  std::copy_n(peer.begin(), e.peer.size(), e.peer.begin());
  std::lock_guard lock(mutex_);
  if (ring_.empty())
    ring_.resize(events_kept);
  ring_[added_++ % events_kept] = e;
}

std::vector<flight_record::event> flight_record::events() const {
  std::lock_guard lock(mutex_);
  std::vector<event> out;
  const std::uint64_t first = added_ < events_kept ? 0 : added_ - events_kept;
  for (std::uint64_t i = first; i < added_; ++i)
    out.push_back(ring_[i % events_kept]);
  return out;
}

std::filesystem::path
flight_record::write(const std::filesystem::path& folder, const reason& why,
                     std::error_code& error) const {
  std::filesystem::create_directories(folder, error);
  if (!error) // as the other folders of a node
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all,
                                 error);
  if (error)
    return {};
  const std::int64_t now = now_us();
  const std::string name =
    std::to_string(now) + "-step" + std::to_string(why.step);
  std::filesystem::path path = folder / (name + ".jsonl");
  nlohmann::json head;
  head["reason"] = why.text;
  head["job"] = why.job;
  head["step"] = why.step;
  head["peer"] = core::to_hex(why.peer);
  head["unix_us"] = now;
  head["under_way"] = why.under_way;
  std::string text = model::json_text(head) + '\n';
  for (const event& e : events()) {
    nlohmann::json line;
    line["unix_us"] = e.unix_us;
    line["event"] = e.what;
    line["job"] = e.job;
    line["step"] = e.step;
    line["a"] = e.a;
    line["b"] = e.b;
    if (e.peer != std::array<std::uint8_t, 4>{})
      line["peer"] = core::to_hex(e.peer);
    text += model::json_text(line) + '\n';
  }
  if (replace_file(path, std::as_bytes(std::span(text)), 0644))
    return {};
  drop_oldest(folder);
  return path;
}

} // namespace shoal::runtime
