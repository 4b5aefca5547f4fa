// tests/runtime/core/planning/plan_oracle_test.cpp -- the plans of 2,000 views.
//
// Peers with the same planner_version must compute the same plan for the same
// view, also when one of them has been built from a later commit. So the plans
// of views drawn by a fixed generator are recorded here, as one hash for each
// hundred. A plan is written as text in terms that outlive the data structures.
#include "runtime/core/planner_version.hpp"
#include "runtime/core/random.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(plan_oracle)

namespace {

constexpr int views_per_line = 100;

/// recorded[i]: of views 100 i .. 100 i + 99. When plans change on purpose,
/// raise planner_version, and put in what the test prints.
constexpr std::uint32_t recorded_version = 8;
constexpr std::uint64_t recorded[] = {
  0x71e7335e3e00efcc, 0xa235436dfefaf4fb, 0x508eb228f517863f,
  0xcdb02d8fc2970203, 0x63c4aa75b1cf83e1, 0x4fe6b9d75cb4fda9,
  0x05360fd1008ac42d, 0x4788269ea49ba6db, 0x3df961af90829737,
  0x2d0817a405b77298, 0x7f87bde6d88962fb, 0xd3300dc06df978d9,
  0xc41cd4edd086c29d, 0xda4a64c5ef303f89, 0xdf81de47f2b0d9e3,
  0x87ffe0575df2e56c, 0x90225b1132296c4a, 0x2012d2f746a96b60,
  0x4c2310012bfb1118, 0x16620c97b8dd308c,
};

std::string written(const member_id& m) {
  return std::to_string(m.peer[0]) + "." + std::to_string(m.incarnation);
}

std::string written(const std::vector<member_id>& all) {
  std::string out;
  for (const member_id& m : all)
    out += " " + written(m);
  return out;
}

std::string written(const std::vector<holder_place>& all) {
  std::string out;
  for (const holder_place& f : all)
    out += " " + written(f.where.member) + ":" + std::to_string(f.first_unit)
           + "-" + std::to_string(f.last_unit);
  return out;
}

/// All of a place that peers act on.
std::string written(job_id job, const island_place& a) {
  std::string out = "job " + std::to_string(job) + " since "
                    + std::to_string(a.since) + " schedule "
                    + std::to_string(int(a.schedule));
  for (const replica_place& r : a.replicas) {
    out += "\n replica " + std::to_string(r.first_microbatch) + "-"
           + std::to_string(r.last_microbatch) + ":";
    for (const stage_place& s : r.stages)
      out += " " + written(s.lead()) + ":" + std::to_string(s.first_block) + "-"
             + std::to_string(s.last_block) + "/" + std::to_string(s.kept_max);
  }
  return out + "\n keepers" + written(a.keepers) + "\n sealers"
         + written(a.sealers) + "\n roles " + written(a.data_source) + " "
         + written(a.evaluator) + " " + written(a.checkpointer) + " "
         + written(a.reporter) + "\n followers" + written(a.followers)
         + " every " + std::to_string(a.copy_every) + "\n arriving"
         + written(a.arriving) + (a.replicas.empty() ? "\n waits\n" : "\n");
}

/// FNV-1a.
void add(std::uint64_t& hash, const std::string& text) {
  for (const char c : text)
    hash = (hash ^ std::uint8_t(c)) * 0x100000001b3u;
}

class drawn_views {
public:
  view first() {
    // Arguments are evaluated in any order: each draw is a statement.
    const std::size_t members = 1 + below(12);
    const auto blocks = std::uint32_t(1 + below(16));
    const auto microbatches = std::uint32_t(1 + below(16));
    view v = make_view(members, blocks, microbatches);
    for (member& m : v.members)
      vary(m);
    vary(v.jobs.front());
    for (job_id id = 6; id < 8 && below(3) == 0; ++id) {
      v.jobs.push_back(v.jobs.front());
      v.jobs.back().id = id;
      v.jobs.back().priority = std::int32_t(below(3)) - 1;
      vary(v.jobs.back());
    }
    return v;
  }

  /// The view after this one: somebody goes, comes, or is measured.
  view after(const view& before) {
    view v = next_view(before);
    const std::size_t at = v.members.empty() ? 0 : below(v.members.size());
    switch (below(6)) {
    case 0:
    case 1:
      if (v.members.size() > 1) {
        v.members.erase(v.members.begin() + std::ptrdiff_t(at));
        std::erase_if(v.cuts, [&](const cut_pair& c) {
          return !find_member(v, c.low.peer) || !find_member(v, c.high.peer);
        });
      }
      break;
    case 2:
      if (v.members.size() < 14) {
        member m = make_member(std::uint8_t(100 + v.number));
        m.id.incarnation = v.number;
        vary(m);
        v.members.push_back(m);
      }
      break;
    case 3:
      vary(v.members[at]);
      break;
    case 4:
      if (!v.previous.empty())
        mark(v, mark_kind::retried);
      break;
    default:
      if (!v.previous.empty() && !was(v).arriving.empty())
        mark(v, mark_kind::arrived);
      else if (v.members.size() > 1 && v.cuts.empty())
        v.cuts.push_back({v.members[0].id, v.members[1].id});
    }
    return v;
  }

private:
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

  void vary(member& m) {
    m.device.mflops = below(10) == 0 ? 0 : 20'000 + 10'000 * below(20);
    m.device.memory_bytes = 20'000'000 + below(300'000'000);
    m.device.host_threads = std::uint32_t(below(2) * 8);
    m.device.threads = std::uint32_t(1 + below(8));
    m.witness = below(12) == 0;
    m.host = below(3) == 0 ? "h" + std::to_string(below(2)) : "";
    m.state = below(12) == 0 ? member_state::leaving : member_state::active;
    m.networks.clear();
    if (below(3) != 0)
      m.networks.push_back({"lan" + std::to_string(below(2)),
                            nanoseconds(10'000 + below(1'000'000)),
                            std::uint64_t{1'000'000} << below(12)});
  }

  void vary(job_entry& j) {
    if (below(2) == 0) {
      j.want_replicas = std::int32_t(below(5)) - 1;
      j.want_stages = std::int32_t(below(5)) - 1;
    }
    j.want_copies = std::uint32_t(below(3));
    j.want_copy_every = std::uint32_t(below(3));
    j.block_state_bytes = 1'000'000 << below(6);
    j.boundary_bytes = 10'000 << below(8);
    if (below(4) == 0)
      j.want_schedule = schedule_kind(1 + below(3));
    if (below(6) == 0)
      j.want_virtual = 2;
  }

  cluster::random random_{20'261'125};
};

} // namespace

BOOST_AUTO_TEST_CASE(the_plans_of_a_planner_version_stay) {
  BOOST_TEST(planner_version == recorded_version);
  drawn_views drawn;
  std::size_t runs = 0, waits = 0, followed = 0, arriving = 0;
  std::string lines;
  bool same = true;
  view v;
  for (std::size_t line = 0; line < std::size(recorded); ++line) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < views_per_line; ++i) {
      v = i % 5 == 0 ? drawn.first() : drawn.after(v);
      for (const assignment& of : make_plan(v).jobs) {
        BOOST_TEST_REQUIRE(of.islands.size() == 1u);
        const island_place& a = of.islands[0];
        add(hash, written(of.job, a));
        ++(a.replicas.empty() ? waits : runs);
        followed += a.followers.size();
        arriving += a.arriving.size();
      }
    }
    same = same && hash == recorded[line];
    char text[64];
    std::snprintf(text, sizeof text, "  0x%016llx,\n",
                  static_cast<unsigned long long>(hash));
    lines += text;
  }
  BOOST_TEST(same, "plans have changed; they are now\n" << lines);
  BOOST_TEST(runs > 1000u); // the views are not empty ones
  BOOST_TEST(waits > 100u);
  BOOST_TEST(followed > 100u);
  BOOST_TEST(arriving > 50u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
