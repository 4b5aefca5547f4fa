// tests/actors/all_reduce_test.cpp -- sums of replicas, in any order of events.
//
// Replicas on a fabric that ends the transfers that both ends know of in an
// order drawn from a seed, each with a queue that runs its work when drawn.
#include "actors/drawn_links.hpp"
#include "actors/reduction/all_reduce.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <random>
#include <set>

BOOST_AUTO_TEST_SUITE(all_reduce_)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;
using actors::all_reduce;

namespace {

struct replica {
  replica(network& all, std::size_t n, std::shared_ptr<void> lease)
    : links(all, peer(n)) {
    all_reduce::config c;
    c.links = &links;
    c.sums = &queue;
    c.buffers = &buffers;
    c.plan = 7;
    c.self = peer(n);
    c.lease = std::move(lease);
    c.reduced = [this](std::uint64_t step, std::uint32_t bucket,
                       std::error_code error) {
      BOOST_TEST(!error);
      BOOST_TEST(step == this->step);
      BOOST_TEST(ended.insert(bucket).second); // once
    };
    sums = std::make_unique<all_reduce>(c);
  }
  hub links;
  drawn_queue queue;
  actors::buffer_pool buffers;
  std::vector<std::shared_ptr<std::vector<float>>> values; ///< by bucket
  std::set<std::uint32_t> ended;
  std::deque<std::uint32_t> to_be_ready;
  std::uint64_t step = 0;
  std::unique_ptr<all_reduce> sums;
};

struct field {
  field(std::size_t replicas, std::uint32_t seed) : random(seed) {
    for (std::size_t r = 0; r < replicas; ++r)
      all.push_back(std::make_unique<replica>(wire, r, lease));
  }

  /// Buckets of odd sizes, the largest of them several windows long.
  void begin(std::uint64_t step) {
    constexpr std::size_t piece = all_reduce::piece_bytes / sizeof(float);
    const std::size_t sizes[] = {1, piece, 3 * piece + 17,
                                 piece * (2 * all_reduce::window + 1), 5};
    wanted.assign(std::size(sizes), {});
    for (std::size_t r = 0; r < all.size(); ++r) {
      replica& mine = *all[r];
      mine.step = step;
      mine.ended.clear();
      mine.values.clear();
      std::vector<all_reduce::bucket> buckets;
      for (std::uint32_t b = 0; b < std::size(sizes); ++b) {
        auto v = std::make_shared<std::vector<float>>(sizes[b]);
        auto x = std::uint32_t(random());
        for (float& value : *v)
          value = float((x = x * 1664525u + 1013904223u) >> 8) / 1e4f;
        // The sum in replica order.
        if (r == 0)
          wanted[b] = *v;
        else
          for (std::size_t i = 0; i < v->size(); ++i)
            wanted[b][i] += (*v)[i];
        all_reduce::bucket& bucket = buckets.emplace_back();
        bucket.index = b;
        for (std::size_t n = 0; n < all.size(); ++n)
          bucket.holders.push_back(peer(n));
        bucket.values = {v, std::as_writable_bytes(std::span(*v))};
        mine.values.push_back(v);
        mine.to_be_ready.push_back(b);
      }
      std::ranges::shuffle(mine.to_be_ready, random);
      mine.sums->begin(step, std::move(buckets));
    }
  }

  /// Something happens. @returns false if nothing is left to happen.
  bool turn() {
    std::vector<std::function<void()>> can;
    for (auto& r : all) {
      if (!r->to_be_ready.empty())
        can.push_back([&r] {
          const std::uint32_t b = r->to_be_ready.front();
          r->to_be_ready.pop_front();
          r->sums->ready(r->step, b);
        });
      if (!r->queue.waiting.empty())
        can.push_back([&r] { r->queue.run_one(); });
    }
    for (auto& [k, t] : wire)
      if (t.into && t.from)
        can.push_back([this, k = k] { carry(wire, k, random); });
    if (can.empty())
      return false;
    can[random() % can.size()]();
    return true;
  }

  std::mt19937 random;
  network wire;
  std::shared_ptr<void> lease = std::make_shared<int>();
  std::vector<std::unique_ptr<replica>> all;
  std::vector<std::vector<float>> wanted;
};

} // namespace

BOOST_DATA_TEST_CASE(every_replica_has_the_same_sum_in_any_order,
                     bdata::xrange(1, 5) * bdata::xrange(3), replicas, seed) {
  field f{std::size_t(replicas), std::uint32_t(seed)};
  for (std::uint64_t step : {3u, 4u}) {
    f.begin(step);
    while (f.turn()) {
    }
    for (auto& r : f.all) {
      BOOST_TEST(r->ended.size() == f.wanted.size());
      for (std::size_t b = 0; b < f.wanted.size(); ++b)
        BOOST_TEST((*r->values[b] == f.wanted[b])); // to the last bit
    }
    BOOST_TEST(f.wire.empty());
  }
}

BOOST_AUTO_TEST_CASE(no_more_than_a_window_of_parts_is_posted_ahead) {
  field f(2, 1);
  f.begin(1);
  // Two lanes come from the other: parts and sums.
  for (auto& r : f.all)
    BOOST_TEST(r->links.posted == int(2 * all_reduce::window));
}

BOOST_DATA_TEST_CASE(after_a_stop_and_a_cancel_nothing_is_written,
                     bdata::xrange(0, 48, 4), turns) {
  field f(3, std::uint32_t(turns));
  f.begin(1);
  for (int i = 0; i < turns * 7; ++i)
    f.turn();
  replica& gone = *f.all[1];
  gone.sums.reset();
  gone.links.cancel(7);
  std::vector<std::vector<float>> before;
  for (const auto& v : gone.values)
    before.push_back(*v);
  const int posted = gone.links.posted;
  const std::size_t ended = gone.ended.size();
  gone.to_be_ready.clear();
  while (f.turn()) {
  }
  BOOST_TEST(gone.links.posted == posted);
  BOOST_TEST(gone.ended.size() == ended);
  for (std::size_t b = 0; b < before.size(); ++b)
    BOOST_TEST((*gone.values[b] == before[b]));
  // Nobody but the field and the other two holds the lease.
  for (std::size_t r : {0u, 2u}) {
    f.all[r]->sums.reset();
    f.all[r]->links.cancel(7);
  }
  while (f.turn()) {
  }
  BOOST_TEST(f.lease.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
