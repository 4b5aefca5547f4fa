// tests/runtime/core/planning/file_keepers_test.cpp -- files of a served model on
// disks: room, spread, and few moves.
#include "runtime/core/planning/file_keepers.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/random.hpp"
#include "runtime/core/view.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>

BOOST_AUTO_TEST_SUITE(files_of_served_models)

using namespace shoal::core;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

peer_id peer(std::uint32_t n) {
  peer_id out{};
  cluster::random r(n + 1);
  for (auto& byte : out)
    byte = std::uint8_t(r.below(256));
  out[0] = std::uint8_t(n);
  return out;
}

std::vector<model_file>
files_of(std::size_t count, std::uint64_t bytes, std::uint64_t seed = 1) {
  std::vector<model_file> out(count);
  cluster::random r(seed);
  for (model_file& f : out) {
    for (auto& byte : f.digest)
      byte = std::uint8_t(r.below(256));
    f.bytes = bytes;
  }
  return out;
}

/// A served job whose files have `bytes`, on members with these disks.
struct shoal_of {
  shoal_of(std::uint64_t bytes, const std::vector<std::uint64_t>& disks) {
    v.number = 1;
    for (std::uint32_t i = 0; i < disks.size(); ++i) {
      member m;
      m.id.peer = peer(i);
      m.name = "n" + std::to_string(i);
      m.device.mflops = 1000;
      m.device.memory_bytes = std::uint64_t{1} << 40;
      m.device.disk_bytes = disks[i];
      v.members.push_back(m);
    }
    job.id = 7;
    job.kind = job_kind::serve;
    job.origin_bytes = bytes;
    job.submitter = peer(0);
    v.jobs.push_back(job);
  }
  std::vector<disk_room> disks() const { return disks_of(v, job, nullptr); }
  view v;
  job_entry job;
};

std::map<peer_id, std::uint64_t>
bytes_by_peer(const std::vector<model_file>& files,
              const std::vector<std::vector<peer_id>>& keepers) {
  std::map<peer_id, std::uint64_t> out;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const peer_id& p : keepers[i])
      out[p] += files[i].bytes;
  return out;
}

/// Copies that are in `after` and were not in `before`.
std::size_t moves(const std::vector<std::vector<peer_id>>& before,
                  const std::vector<std::vector<peer_id>>& after) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    for (const peer_id& p : after[i])
      out += std::ranges::find(before[i], p) == before[i].end();
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(two_disks_have_all_where_they_have_room) {
  const shoal_of s(100 * mib, {200 * mib, 200 * mib, 200 * mib, 200 * mib});
  const auto disks = s.disks();
  BOOST_TEST_REQUIRE(disks.size() == 2u);
  BOOST_TEST((disks[0].peer == peer(0))); // it has them already
  const auto files = files_of(10, 10 * mib);
  for (const auto& at : file_keepers(files, disks))
    BOOST_TEST(at.size() == 2u);
}

BOOST_AUTO_TEST_CASE(those_that_run_the_model_come_before_others) {
  shoal_of s(100 * mib, std::vector<std::uint64_t>(6, 200 * mib));
  assignment place{7, {{}}};
  place.islands[0].replicas = {
    {{stage_on(s.v.members[4].id, 0, 2), stage_on(s.v.members[3].id, 2, 4)},
     0,
     1}};
  const auto disks = disks_of(s.v, s.job, &place);
  BOOST_TEST_REQUIRE(disks.size() == 2u);
  BOOST_TEST((disks[1].peer == peer(4)));
}

BOOST_AUTO_TEST_CASE(disks_of_which_none_has_room_for_all_share_the_files) {
  const shoal_of s(100 * mib, {80 * mib, 80 * mib, 80 * mib});
  const auto disks = s.disks();
  BOOST_TEST(disks.size() == 3u);
  const auto files = files_of(50, 2 * mib);
  const auto keepers = file_keepers(files, disks);
  for (const auto& at : keepers) {
    BOOST_TEST_REQUIRE(at.size() == 2u);
    BOOST_TEST((at[0] != at[1]));
  }
  for (const auto& [p, bytes] : bytes_by_peer(files, keepers)) {
    BOOST_TEST(bytes <= 80 * mib);
    BOOST_TEST(bytes >= 40 * mib); // spread
  }
}

/// F-3. Else what is kept there fills the disk, and what is kept elsewhere could not
/// pass through it.
BOOST_AUTO_TEST_CASE(a_file_that_is_kept_elsewhere_can_pass) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      const auto files = files_of(50, 2 * mib, seed);
      for (const std::uint64_t room : {80 * mib, 70 * mib}) {
        const shoal_of s(100 * mib, {room, room, room});
        const auto keepers = file_keepers(files, s.disks());
        for (const auto& [p, bytes] : bytes_by_peer(files, keepers))
          BOOST_TEST(bytes + 2 * mib <= room);
      }
      // Two copies fit only if the others are full.
      const shoal_of s(100 * mib, {68 * mib, 66 * mib, 68 * mib});
      const auto keepers = file_keepers(files, s.disks());
      for (const auto& at : keepers)
        BOOST_TEST(at.size() == 2u);
      BOOST_TEST(bytes_by_peer(files, keepers)[peer(0)] <= 66 * mib);
      BOOST_TEST(cannot_be_kept(s.v, s.job, files, peer(0)) == "");
    }
}

/// `serve` waited for ever, without a word.
BOOST_AUTO_TEST_CASE(files_that_cannot_reach_a_disk_are_found_before) {
  const auto files = files_of(3, 60 * mib);
  const shoal_of small(180 * mib, {70 * mib, 70 * mib, 50 * mib});
  // Two disks have room for one file each, and none passes through the first.
  BOOST_TEST(lacks_disk(small.v, small.job, 1) == "");
  BOOST_TEST(
    cannot_be_kept(small.v, small.job, files, peer(0))
    == "the files of the model, of up to 60 MiB each, do not fit the "
       "disks of the peers; these have room for 190 MiB: n0 70 MiB, n1 "
       "70 MiB, n2 50 MiB");
  const shoal_of tight(180 * mib, {70 * mib, 70 * mib, 70 * mib});
  BOOST_TEST(cannot_be_kept(tight.v, tight.job, files, peer(0))
               .find("do not fit through this node's disk")
             != std::string::npos);
  // Rather a single copy than two that do not get there.
  const shoal_of enough(180 * mib, {70 * mib, 130 * mib, 130 * mib});
  BOOST_TEST(cannot_be_kept(enough.v, enough.job, files, peer(0)) == "");
}

/// F-1 and F-2, for any sizes of disks and files.
BOOST_AUTO_TEST_CASE(no_disk_has_more_than_its_room) {
  std::size_t shared = 0, short_of_room = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    cluster::random r(seed);
    std::vector<std::uint64_t> rooms(1 + r.below(7));
    for (auto& bytes : rooms)
      bytes = 1 + r.below(120 * mib);
    auto files = files_of(1 + r.below(60), 0, seed);
    std::uint64_t all = 0, largest = 0;
    for (model_file& f : files) {
      f.bytes = 1 + r.below(4 * mib);
      all += f.bytes;
      largest = std::max(largest, f.bytes);
      if (r.below(2) == 0)
        f.runs = {peer(std::uint32_t(r.below(rooms.size())))};
    }
    const shoal_of s(all, rooms);
    const auto disks = s.disks();
    const auto keepers = file_keepers(files, disks);
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::map<peer_id, std::uint64_t> room;
      std::uint64_t sum = 0;
      for (const disk_room& d : disks) {
        room[d.peer] = d.bytes;
        sum += std::min(d.bytes, all);
      }
      for (const auto& [p, bytes] : bytes_by_peer(files, keepers))
        BOOST_TEST(bytes <= room[p]);
      std::size_t alone = 0, none = 0, two = 0;
      for (const auto& at : keepers) {
        none += at.empty();
        alone += at.size() == 1;
        two += at.size() == 2;
        BOOST_TEST((at.size() < 2 || at[0] != at[1]));
      }
      const std::uint64_t slack = disks.size() * largest;
      if (sum >= all + slack)
        BOOST_TEST(none == 0u);
      if (disks.size() > 1 && sum >= 2 * all + slack) {
        BOOST_TEST(alone == 0u);
        ++shared;
      } else {
        ++short_of_room;
      }
    }
  }
  BOOST_TEST(shared > 50u);
  BOOST_TEST(short_of_room > 20u);
}

BOOST_AUTO_TEST_CASE(a_file_goes_to_peers_that_run_it) {
  const shoal_of s(90 * mib, {70 * mib, 70 * mib, 70 * mib});
  auto files = files_of(45, 2 * mib);
  for (std::size_t i = 0; i < files.size(); ++i)
    files[i].runs = {peer(std::uint32_t(i % 3))};
  const auto keepers = file_keepers(files, s.disks());
  for (std::size_t i = 0; i < files.size(); ++i)
    BOOST_TEST((std::ranges::find(keepers[i], peer(std::uint32_t(i % 3)))
                != keepers[i].end()));
}

BOOST_AUTO_TEST_CASE(a_peer_that_goes_moves_only_what_it_had) {
  shoal_of s(100 * mib, std::vector<std::uint64_t>(8, 40 * mib));
  const auto files = files_of(200, mib / 2);
  const auto before = file_keepers(files, s.disks());
  const auto had = bytes_by_peer(files, before);
  for (std::uint32_t gone = 1; gone < 8; ++gone) {
    shoal_of then = s;
    std::erase_if(then.v.members,
                  [&](const member& m) { return m.id.peer == peer(gone); });
    const auto after = file_keepers(files, then.disks());
    const auto at = had.find(peer(gone));
    const std::size_t files_of_it =
      at == had.end() ? 0 : std::size_t(at->second / (mib / 2));
    // Another disk takes part in its place, and by hash gets its share of all.
    BOOST_TEST(moves(before, after) <= files_of_it * 2 + files.size() / 8,
               "without " << gone << ": " << moves(before, after) << " moves, "
                          << files_of_it << " files were there");
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_comes_moves_nothing_if_there_is_room) {
  const shoal_of s(100 * mib, {200 * mib, 200 * mib, 200 * mib});
  shoal_of more = s;
  for (std::uint32_t i = 3; i < 9; ++i) {
    more.v.members.push_back(s.v.members[0]);
    more.v.members.back().id.peer = peer(i);
  }
  const auto files = files_of(20, 5 * mib);
  std::size_t moved = 0, tries = 0;
  for (job_id id = 1; id <= 100; ++id) {
    shoal_of a = s, b = more;
    a.job.id = b.job.id = id;
    assignment place{id, {{}}};
    place.islands[0].replicas = {{{stage_on(s.v.members[1].id, 0, 4)}, 0, 1}};
    moved += moves(file_keepers(files, disks_of(a.v, a.job, &place)),
                   file_keepers(files, disks_of(b.v, b.job, &place)));
    ++tries;
  }
  BOOST_TEST(tries == 100u);
  BOOST_TEST(moved == 0u);
}

/// As when its disk has refused: the view then has what it could take.
BOOST_AUTO_TEST_CASE(a_disk_that_has_less_room_is_passed_over) {
  shoal_of s(100 * mib, {80 * mib, 80 * mib, 80 * mib, 80 * mib});
  const auto files = files_of(50, 2 * mib);
  s.v.members[1].device.disk_bytes = 10 * mib;
  const auto keepers = file_keepers(files, s.disks());
  BOOST_TEST(bytes_by_peer(files, keepers)[peer(1)] <= 10 * mib);
  for (const auto& at : keepers)
    BOOST_TEST(at.size() == 2u);
}

BOOST_AUTO_TEST_CASE(jobs_divide_a_disk_by_their_sizes) {
  shoal_of s(100 * mib, {80 * mib, 80 * mib});
  job_entry other = s.job;
  other.id = 8;
  other.origin_bytes = 300 * mib;
  s.v.jobs.push_back(other);
  for (const disk_room& d : s.disks())
    BOOST_TEST(d.bytes == 20 * mib);
  s.v.jobs[1].state = job_state::done;
  for (const disk_room& d : s.disks())
    BOOST_TEST(d.bytes == 80 * mib);
}

BOOST_AUTO_TEST_CASE(a_witness_or_one_that_leaves_keeps_nothing) {
  shoal_of s(10 * mib, {80 * mib, 80 * mib, 80 * mib, 80 * mib});
  s.v.members[0].state = member_state::leaving;
  s.v.members[1].witness = true;
  for (const disk_room& d : s.disks())
    BOOST_TEST((d.peer == peer(2) || d.peer == peer(3)));
}

BOOST_AUTO_TEST_CASE(a_model_that_fits_no_disks_is_refused_with_what_there_is) {
  shoal_of s(100 * mib, {40 * mib, 30 * mib, 20 * mib});
  const std::string why = lacks_disk(s.v, s.job, 1);
  BOOST_TEST(why
             == "the files of the model need 100 MiB; the disks of the peers "
                "have room for 90 MiB: n0 40 MiB, n1 30 MiB, n2 20 MiB");
  BOOST_TEST(never_fits(s.v, s.job) == why);
  s.v.members[2].device.disk_bytes = 40 * mib;
  BOOST_TEST(lacks_disk(s.v, s.job, 1) == "");
  BOOST_TEST(lacks_disk(s.v, s.job, 2) != "");
  s.v.members[2].device.disk_bytes = 0; // not known
  BOOST_TEST(lacks_disk(s.v, s.job, 1) == "");
}

BOOST_AUTO_TEST_SUITE_END()
