// tests/runtime/wire/same_bytes_test.cpp -- the bytes that are sent, stored and
// hashed do not change.
//
// Peers of one shoal may run different versions, and a disk holds data of an
// earlier one. Each case hashes the bytes of many random messages and compares
// with a pinned number. A case that fails after a change that should keep the
// bytes has found a defect. After a new field the number differs: first make
// sure that only the expected cases fail, then pin the printed number. (The
// numbers also change with the output of random_fields.)
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/random_message.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(same_bytes)

namespace cl = core::cluster;
using tests::random_message;

namespace {

constexpr std::uint64_t seeds = 2000;

/// FNV-1a over all that was added.
class fingerprint {
public:
  void add(const std::vector<std::byte>& bytes) {
    add(bytes.size());
    for (std::byte b : bytes)
      one(static_cast<std::uint8_t>(b));
  }
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      one(static_cast<std::uint8_t>(number >> shift));
  }
  std::string hex() const {
    std::ostringstream out;
    out << std::hex << state_;
    return out.str();
  }

private:
  void one(std::uint8_t b) { state_ = (state_ ^ b) * 0x100000001b3u; }
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

/// Of the encoded messages of kinds [first, last).
std::string encoded(std::size_t first, std::size_t last) {
  fingerprint all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    random_message random(seed);
    for (std::size_t kind = first; kind < last; ++kind)
      all.add(codec::encode(random.any(kind)));
  }
  return all.hex();
}

/// The result of view(), with some lists and numbers as in early views:
/// canonical bytes leave out later additions that are empty.
core::view view_of(std::uint64_t seed) {
  core::view v = random_message(seed).view();
  const std::uint64_t empty = seed * 0x9e3779b97f4a7c15u;
  const auto often = [&](int bit) { return ((empty >> (20 + bit)) & 3) != 0; };
  if (often(24))
    v.outages.clear();
  if (often(26))
    for (core::member& m : v.members)
      m.device.disk_bytes = 0;
  if (often(0))
    v.removed.clear();
  if (often(2))
    v.superseded.clear();
  if (often(4))
    v.stalled.clear();
  if (often(6)) {
    v.key = {};
    v.revoked.clear();
    v.lapsed.clear();
    v.invites.clear();
  }
  if (often(8))
    v.cuts.clear();
  for (core::member& m : v.members) {
    if (often(10)) {
      m.device.host_threads = 0;
      m.device.stream_mbps = 0;
      m.networks.clear();
    }
    if (often(12)) {
      m.device.host_memory_bytes = 0;
      m.device.memory_is_share = false;
    }
    if (often(14))
      m.roles.clear();
  }
  for (core::job_entry& j : v.jobs) {
    if (often(16)) {
      j.submitted_ms = 0;
      j.user.clear();
    }
    if (often(18))
      j.cause.clear();
    if (often(20))
      j.marks.clear();
  }
  for (core::assignment& a : v.previous)
    for (core::island_place& at : a.islands)
      if (often(22))
        at.arriving.clear();
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(of_clusters_messages) {
  BOOST_TEST(encoded(0, random_message::cluster_kinds) == "c9e1bf885a11a899");
}

BOOST_AUTO_TEST_CASE(of_jobs_messages) {
  BOOST_TEST(encoded(random_message::cluster_kinds,
                     random_message::cluster_kinds + random_message::job_kinds)
             == "b51bb74a29d1693a");
}

BOOST_AUTO_TEST_CASE(of_messages_of_served_models) {
  constexpr std::size_t first =
    random_message::cluster_kinds + random_message::job_kinds;
  BOOST_TEST(encoded(first, first + random_message::serve_kinds)
             == "3cd8064e257c236d");
}

BOOST_AUTO_TEST_CASE(of_other_messages) {
  BOOST_TEST(encoded(random_message::cluster_kinds + random_message::job_kinds
                       + random_message::serve_kinds,
                     random_message::kinds)
             == "a4a3e3b8d602288a");
}

BOOST_AUTO_TEST_CASE(of_records) {
  fingerprint all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    all.add(codec::encode_record(random_message(seed).record()));
  BOOST_TEST(all.hex() == "7c9ed37df331a0fb");
}

BOOST_AUTO_TEST_CASE(of_canonical_views) {
  fingerprint all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    all.add(codec::canonical(view_of(seed)));
  BOOST_TEST(all.hex() == "768b53149523485a");
}

BOOST_AUTO_TEST_CASE(of_digests_of_places) {
  fingerprint all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const core::assignment& a : view_of(seed).previous)
      for (std::uint32_t i = 0; i < a.islands.size(); ++i)
        all.add(core::digest({a.job, i}, a.islands[i]));
  BOOST_TEST(all.hex() == "8edd2d80f632e6be");
}

BOOST_AUTO_TEST_CASE(of_bounds_of_sizes) {
  fingerprint all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const core::view v = view_of(seed);
    all.add(core::bytes_bound(v));
    for (const core::member& m : v.members)
      all.add(core::bytes_bound(m));
    for (const core::job_entry& j : v.jobs)
      all.add(core::bytes_bound(j));
    for (const core::assignment& a : v.previous)
      all.add(core::bytes_bound(a));
  }
  BOOST_TEST(all.hex() == "dae1a771d79e32d4");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
