// tests/runtime/wire/largest_test.cpp -- what the largest shoal sends about the
// deepest model fits into a message.
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/wire/codec.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(largest)

using namespace core;
namespace cl = core::cluster;

namespace {

constexpr std::uint32_t blocks = limits::blocks_max;

/// Members as they are usual: a name, an address, two measured networks.
view largest_view() {
  view v;
  v.number = 1000;
  for (std::size_t i = 0; i < cl::members_max; ++i) {
    member m;
    for (std::size_t b = 0; b < m.id.peer.size(); ++b)
      m.id.peer[b] = std::uint8_t(b == 0 ? i >> 8 : i * (b + 7));
    m.id.incarnation = 1 + i;
    m.instance = ~std::uint64_t{0} - i;
    m.name = "rack-12-machine-" + std::to_string(i);
    m.addresses = {"rack-12-machine-" + std::to_string(i) + ".example:7766"};
    m.host = "host" + std::to_string(i / 8);
    m.device.mflops = 100'000'000;
    m.device.memory_bytes = std::uint64_t{80} << 30;
    m.networks = {{"host", 5'000, 200'000'000'000},
                  {"ib", 5'000, 50'000'000'000}};
    v.members.push_back(m);
  }
  std::ranges::sort(v.members, {}, &member::id);
  job_entry j;
  j.id = 5;
  j.name = "deep";
  j.run_json = std::string(4096, 'x');
  j.blocks = blocks;
  j.microbatches = 4096;
  j.block_flops = 21'000'000'000;
  j.head_flops = 6'000'000'000;
  j.block_state_bytes = 13'600'000;
  j.embed_state_bytes = 4'200'000;
  j.head_state_bytes = 4'200'000;
  j.activation_bytes = 100'000;
  j.boundary_bytes = 134'000;
  v.jobs.push_back(j);
  return v;
}

template <class Message>
std::size_t encoded(const Message& m) {
  std::vector<std::byte> bytes = codec::encode(envelope(m));
  envelope read;
  const std::error_code error = codec::decode(bytes, read);
  BOOST_TEST(!error, error.message()); // within the limits of its fields
  return bytes.size();
}

/// What `peer` says of its parts when all of them have been hashed, at as many
/// versions as there are.
std::pair<vote, seal> said_by(const member_parts& m) {
  vote v;
  v.header = {5, ~std::uint64_t{0}, 1000, 0};
  v.step = 1'000'000;
  v.losses.assign(4096, 2.5);
  v.samples.assign(4096, ~std::uint64_t{0});
  seal s;
  s.header = v.header;
  for (const part_index p : m.held) {
    const state_version hashed{1'000'000 - p, 1000};
    v.units.push_back({p, 0.125});
    v.digests.push_back({p, ~std::uint64_t{0}});
    s.units.push_back({p, {1'000'000, 1000}, true, hashed, ~std::uint64_t{0}});
    s.copies.push_back({p, hashed});
  }
  s.prepared = {1'000'001, 1000};
  s.prepared_vote = v;
  for (std::uint64_t step = 0; step < checkpoints_told_max; ++step) {
    // Shared, so that the parts that a store has are scattered.
    auto& stored = s.stored.emplace_back();
    stored.checkpoint = {step, blob_digest{1}, 1000};
    for (part_index p = 0; p < job_units_max; p += 2)
      stored.lacks.push_back({p, p + 1});
    s.given_up.push_back({step, blob_digest{2}, 1000});
    s.heard.push_back({step, blob_digest{3}, 1000});
  }
  return {v, s};
}

void fits(const member_parts& m) {
  const auto [v, s] = said_by(m);
  const std::size_t of_vote = encoded(job_message(v));
  const std::size_t of_seal = encoded(job_message(s));
  BOOST_TEST_MESSAGE(m.held.size() << " parts: a vote of " << of_vote
                                   << " bytes, a seal of " << of_seal);
  BOOST_TEST(of_vote <= codec::message_bytes_max);
  BOOST_TEST(of_seal <= codec::message_bytes_max);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_view_of_all_members_with_a_job_on_each_fits) {
  view v = largest_view();
  const plan p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 1u);
  const holdings h(p.jobs[0].islands.at(0));
  BOOST_TEST(h.members().size() > cl::members_max / 2);
  v.previous = p.jobs;
  const std::size_t bytes = encoded(cl::message(cl::decided{v}));
  BOOST_TEST_MESSAGE("a view of " << bytes << " bytes");
  BOOST_TEST(bytes <= view_bytes_max);
  BOOST_TEST(bytes_bound(v) <= view_bytes_max);
  const auto most = std::ranges::max_element(
    h.members(), {}, [](const member_parts& m) { return m.held.size(); });
  fits(*most);
}

BOOST_AUTO_TEST_CASE(votes_and_seals_about_all_parts_of_a_model_fit) {
  member_parts all;
  all.held.add(part_table(blocks).all());
  fits(all);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
