// runtime/hub/download_room.cpp -- all downloads of this process, under one lock.
#include "runtime/hub/download_room.hpp"

#include "runtime/core/text/amounts.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace shoal::hub {
namespace {

struct all_rooms {
  std::mutex mutex; ///< guards all of them
  std::set<download_room*> rooms;
};

all_rooms& all() {
  static all_rooms one;
  return one;
}

/// Of a file that several want, one of them knows best how much is lacking: the one
/// that downloads it now. The others know what was lacking when they began.
void add_smaller(download_room::lacking& to,
                 const download_room::lacking& files) {
  for (const auto& [file, bytes] : files)
    if (const auto [at, is_new] = to.emplace(file, bytes); !is_new)
      at->second = std::min(at->second, bytes);
}

} // namespace

download_room::download_room(std::filesystem::path folder)
  : folder_(std::move(folder)) {
  const std::lock_guard lock(all().mutex);
  all().rooms.insert(this);
}

download_room::~download_room() {
  const std::lock_guard lock(all().mutex);
  all().rooms.erase(this);
}

model::status download_room::reserve(
  const lacking& files,
  const std::function<model::result<std::uint64_t>()>& free) {
  if (files.empty())
    return model::done{};
  const std::lock_guard lock(all().mutex);
  lacking others, own = own_;
  for (const download_room* room : all().rooms)
    if (room != this && room->folder_ == folder_)
      add_smaller(others, room->own_);
  add_smaller(own, files);
  std::uint64_t needed = 0, reserved = 0;
  for (const auto& [file, bytes] : own)
    if (const auto at = others.find(file); at != others.end())
      at->second = std::min(at->second, bytes);
    else
      needed += bytes;
  for (const auto& [file, bytes] : others)
    reserved += bytes;
  const auto room = needed == 0 ? model::result<std::uint64_t>(needed) : free();
  if (room && *room - std::min(*room, reserved) < needed)
    return model::failure{
      "it needs " + core::size_text(needed) + ", and " + core::size_text(*room)
      + " are free"
      + (reserved > 0 ? ", of which " + core::size_text(reserved)
                          + " are reserved for other downloads under way"
                      : std::string())};
  own_ = std::move(own);
  return model::done{};
}

void download_room::lacks(const std::string& file, std::uint64_t bytes) {
  const std::lock_guard lock(all().mutex);
  if (const auto at = own_.find(file); at != own_.end())
    at->second = bytes;
}

} // namespace shoal::hub
