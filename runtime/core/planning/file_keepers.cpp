// runtime/core/planning/file_keepers.cpp -- weighted hashes within the room of disks.
#include "runtime/core/planning/file_keepers.hpp"

#include "runtime/core/planning/layout/cost.hpp" // cost_never
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/saturating.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace shoal::core {
namespace {

/// Weights of disks: that of the largest.
constexpr std::uint64_t weight_max = 16;
/// Files are not divided: disks take part until they have this share more room than
/// the files need.
constexpr std::uint64_t slack_share = 16;
/// Peers that are named where the room is too little, and the length of a name.
constexpr std::size_t named_max = 8;
constexpr std::size_t keeper_name_wide = 24;

/// As good as random, and the same on every peer (splitmix64 by S. Vigna).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

std::uint64_t begin_of(const auto& id) {
  std::uint64_t x = 0;
  for (std::size_t i = 0; i < 8; ++i)
    x = x << 8 | id[i];
  return x;
}

/// Bytes of all files of a served job that are in use.
std::uint64_t bytes_of(const job_entry& job) {
  return saturating_mul(job.origin_bytes,
                        std::max<std::size_t>(1, job.versions.size()));
}

bool may_keep(const view& v, const member& m) {
  return m.state == working_state(v) && !m.witness;
}

/// What a job may have of a disk, beside the other served jobs.
std::uint64_t room_for(const view& v, const job_entry& job, const member& m) {
  if (m.device.disk_bytes == 0) // not known: its disk will refuse
    return cost_never;
  std::uint64_t all = bytes_of(job);
  for (const job_entry& j : v.jobs)
    if (j.id != job.id && j.kind == job_kind::serve
        && j.state == job_state::running)
      all = saturating_add(all, bytes_of(j));
  return all == 0 ? m.device.disk_bytes
                  : muldiv(m.device.disk_bytes, bytes_of(job), all);
}

std::uint64_t
room_of_all(std::span<const disk_room> disks, std::uint64_t bytes) {
  std::uint64_t sum = 0;
  for (const disk_room& d : disks)
    sum = saturating_add(sum, std::min(d.bytes, bytes));
  return sum;
}

/// All disks, the preferred first.
std::vector<disk_room>
all_disks(const view& v, const job_entry& job, const assignment* place) {
  std::vector<disk_room> out;
  const auto add = [&](const member* m) {
    if (m != nullptr && may_keep(v, *m)
        && std::ranges::find(out, m->id.peer, &disk_room::peer) == out.end())
      out.push_back({m->id.peer, room_for(v, job, *m)});
  };
  add(find_member(v, job.submitter));
  if (place != nullptr)
    for (const island_place& at : place->islands)
      for (const replica_place& r : at.replicas)
        for (const stage_place& s : r.stages)
          for (const shard_place& shard : s.shards)
            add(find_member(v, shard.where.member.peer));
  std::vector<const member*> others;
  for (const member& m : v.members)
    others.push_back(&m);
  std::ranges::sort(others, std::greater{}, [&](const member* m) {
    return std::pair(mixed(begin_of(m->id.peer) ^ mixed(job.id)), m->id.peer);
  });
  for (const member* m : others)
    add(m);
  return out;
}

/// Files on disks, while they are distributed.
class distribution {
public:
  /// @param passing disks, the first ones, on which the room of one file stays free
  distribution(std::span<const model_file> files,
               std::span<const disk_room> disks, std::size_t passing)
    : files_(files), disks_(disks), keepers_(files.size()) {
    std::uint64_t total = 0, most = 1, largest = 0;
    for (const model_file& f : files) {
      total = saturating_add(total, f.bytes);
      largest = std::max(largest, f.bytes);
    }
    for (const disk_room& d : disks) {
      // A disk that has room for all files has nothing that only passes.
      const bool all = d.bytes >= total || left_.size() >= passing;
      left_.push_back(all ? d.bytes : d.bytes - std::min(d.bytes, largest));
      most = std::max(most, std::min(d.bytes, total));
    }
    for (const disk_room& d : disks)
      weights_.push_back(std::max<std::uint64_t>(
        1, muldiv(std::min(d.bytes, total), weight_max, most)));
  }

  void run() {
    std::vector<std::size_t> order(files_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(files_[b].bytes, files_[b].digest)
             < std::pair(files_[a].bytes, files_[a].digest);
    });
    for (std::size_t copy = 0; copy < std::min(copies_kept, disks_.size());
         ++copy) { // F-1
      std::vector<std::size_t> homeless;
      for (const std::size_t f : order)
        if (const auto d = best(f))
          put(f, *d);
        else
          homeless.push_back(f);
      for (const std::size_t f : homeless)
        make_room(f);
    }
  }

  /// Whether each file is on this number of disks, or on all.
  bool all_have(std::size_t copies) const {
    return std::ranges::all_of(keepers_, [&](const auto& at) {
      return at.size() >= std::min(copies, disks_.size());
    });
  }

  std::vector<std::vector<peer_id>> keepers() const {
    std::vector<std::vector<peer_id>> out(files_.size());
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (const std::size_t d : keepers_[f])
        out[f].push_back(disks_[d].peer);
    return out;
  }

private:
  bool has(std::size_t file, std::size_t disk) const {
    return std::ranges::find(keepers_[file], disk) != keepers_[file].end();
  }
  bool fits(std::size_t file, std::size_t disk) const {
    return !has(file, disk) && files_[file].bytes <= left_[disk]; // F-2
  }
  void put(std::size_t file, std::size_t disk) {
    keepers_[file].push_back(disk);
    left_[disk] -= files_[file].bytes;
  }
  void take(std::size_t file, std::size_t disk) {
    std::erase(keepers_[file], disk);
    left_[disk] += files_[file].bytes;
  }

  /// A disk has as many tickets as its weight.
  std::uint64_t rank(std::size_t file, std::size_t disk) const {
    const std::uint64_t seed =
      begin_of(files_[file].digest) ^ mixed(begin_of(disks_[disk].peer));
    std::uint64_t best = 0;
    for (std::uint64_t ticket = 1; ticket <= weights_[disk]; ++ticket)
      best = std::max(best, mixed(seed + ticket * 0x9e3779b97f4a7c15));
    return best;
  }

  std::optional<std::size_t> best(std::size_t file) const {
    std::optional<std::size_t> out;
    const auto value = [&](std::size_t d) {
      const auto& runs = files_[file].runs;
      return std::tuple(std::ranges::find(runs, disks_[d].peer) != runs.end(),
                        rank(file, d), disks_[d].peer);
    };
    for (std::size_t d = 0; d < disks_.size(); ++d)
      if (fits(file, d) && (!out || value(d) > value(*out)))
        out = d;
    return out;
  }

  /// Where only disks have room that have the file already, one of these takes
  /// another file of a disk that has not.
  void make_room(std::size_t file) {
    for (std::size_t full = 0; full < disks_.size(); ++full) {
      if (has(file, full) || files_[file].bytes > disks_[full].bytes)
        continue;
      for (std::size_t other = 0; other < files_.size(); ++other) {
        if (!has(other, full)
            || left_[full] + files_[other].bytes < files_[file].bytes)
          continue;
        for (std::size_t to = 0; to < disks_.size(); ++to)
          if (to != full && fits(other, to)) {
            take(other, full);
            put(other, to);
            return put(file, full);
          }
      }
    }
  }

  std::span<const model_file> files_;
  std::span<const disk_room> disks_;
  std::vector<std::uint64_t> left_, weights_;     ///< by disk
  std::vector<std::vector<std::size_t>> keepers_; ///< by file
};

} // namespace

std::vector<disk_room>
disks_of(const view& v, const job_entry& job, const assignment* place) {
  std::vector<disk_room> all = all_disks(v, job, place);
  const std::uint64_t bytes = bytes_of(job);
  const std::uint64_t need =
    saturating_mul(std::min(bytes, cost_never / slack_share), copies_kept);
  std::size_t count = std::min(copies_kept, all.size());
  const auto room = [&] { return room_of_all({all.data(), count}, bytes); };
  if (room() < need) // not each of these has room for all
    while (count < all.size() && room() < need + need / slack_share)
      ++count;
  all.resize(count);
  return all;
}

std::vector<std::vector<peer_id>>
file_keepers(std::span<const model_file> files,
             std::span<const disk_room> disks) {
  // F-3: on all disks, or else on that to which the files are uploaded; and rather
  // a single copy than none that gets there.
  distribution all(files, disks, disks.size()), first(files, disks, 1),
    full(files, disks, 0);
  all.run();
  if (all.all_have(copies_kept))
    return all.keepers();
  first.run();
  if (first.all_have(1))
    return first.keepers();
  full.run();
  return full.keepers();
}

namespace {

/// "room for 50 MiB: one 30 MiB, two 20 MiB"
std::string
rooms_text(const view& v, std::vector<disk_room> all, std::uint64_t bytes) {
  std::ranges::stable_sort(all, std::greater{}, &disk_room::bytes);
  std::string out = "room for " + size_text(room_of_all(all, bytes)) + ": ";
  for (std::size_t i = 0; i < std::min(all.size(), named_max); ++i) {
    const member* m = find_member(v, all[i].peer);
    out +=
      (i > 0 ? ", " : "")
      + (m == nullptr || m->name.empty() ? short_name(all[i].peer)
                                         : shown(m->name, keeper_name_wide))
      + " " + size_text(all[i].bytes);
  }
  if (all.size() > named_max)
    out += " and " + std::to_string(all.size() - named_max) + " more peers";
  return out;
}

} // namespace

std::string
lacks_disk(const view& v, const job_entry& job, std::size_t copies) {
  const std::uint64_t bytes = bytes_of(job);
  std::vector<disk_room> all = all_disks(v, job, nullptr);
  const std::uint64_t need =
    saturating_mul(bytes, std::min(copies, all.size()));
  if (bytes == 0 || all.empty() || room_of_all(all, bytes) >= need)
    return {};
  // A peer that joins may have the room in a moment.
  if (std::ranges::any_of(v.members, [](const member& m) {
        return m.state == member_state::joining && !m.witness;
      }))
    return {};
  return "the files of the model need " + size_text(bytes)
         + (copies > 1 ? ", on " + count_text(copies, "disk") : "")
         + "; the disks of the peers have " + rooms_text(v, all, bytes);
}

std::string
cannot_be_kept(const view& v, const job_entry& job,
               std::span<const model_file> files, const peer_id& uploads) {
  const auto disks = disks_of(v, job, nullptr);
  const auto keepers = file_keepers(files, disks);
  const auto own = std::ranges::find(disks, uploads, &disk_room::peer);
  std::uint64_t left = own == disks.end() ? cost_never : own->bytes;
  std::uint64_t homeless = 0, passes = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    if (keepers[f].empty())
      homeless = std::max(homeless, files[f].bytes);
    else if (std::ranges::find(keepers[f], uploads) == keepers[f].end())
      passes = std::max(passes, files[f].bytes);
    else
      left -= std::min(left, files[f].bytes);
  }
  if (homeless == 0 && passes <= left)
    return {};
  return "the files of the model, of up to "
         + size_text(std::max(homeless, passes)) + " each, do not fit "
         + (homeless > 0 ? "the disks of the peers"
                         : "through this node's disk")
         + "; these have " + rooms_text(v, disks, bytes_of(job));
}

} // namespace shoal::core
