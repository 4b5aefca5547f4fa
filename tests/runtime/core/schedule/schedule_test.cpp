// tests/runtime/core/schedule/schedule_test.cpp -- orders, limits and bubbles
// of the pipeline schedules.
//
// All small pipelines are simulated on a time line; the invariants of an order
// (schedule.hpp, S-1 to S-4) are checked on every item of it.
#include "runtime/core/schedule/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

BOOST_AUTO_TEST_SUITE(schedule)

using namespace shoal::core;

namespace {

constexpr schedule_kind kinds[] = {schedule_kind::one_f_one_b,
                                   schedule_kind::interleaved,
                                   schedule_kind::zero_bubble};

/// Stages dealt out to `peers` in turn, `degree` to each.
pipeline dealt(schedule_kind kind, std::uint32_t peers, std::uint32_t degree,
               std::uint32_t count, std::uint32_t kept = 0) {
  pipeline p;
  p.kind = kind;
  p.peers = peers;
  p.first = 3;
  p.last = 3 + count;
  for (std::uint32_t s = 0; s < peers * degree; ++s) {
    p.peer_of.push_back(s % peers);
    p.kept_max.push_back(kept);
  }
  complete(p);
  return p;
}

/// Microbatches are measured in thousandths of a forward of a whole peer.
std::vector<stage_time> equal_times(const pipeline& p, stage_time whole) {
  const std::uint64_t parts = p.stages() / p.peers;
  return std::vector<stage_time>(
    p.stages(), {whole.forward / parts, whole.input_gradient / parts,
                 whole.weight_gradient / parts, whole.transfer});
}

std::uint64_t idle(const timeline& t) {
  std::uint64_t sum = 0;
  for (std::uint64_t b : t.busy)
    sum += t.span - b;
  return sum / t.busy.size();
}

using key = std::pair<std::uint32_t, std::uint32_t>; ///< stage, microbatch

/// What is wrong by S-1 to S-3, or runs before its input is there.
std::string fault(const pipeline& p, const std::vector<stage_time>& times,
                  const timeline& t) {
  std::map<work_kind, std::map<key, std::uint64_t>> ended;
  std::vector<std::uint64_t> free(p.peers, 0);
  std::map<std::pair<work_kind, std::uint32_t>, std::uint32_t> next;
  std::vector<std::uint32_t> kept(p.stages(), 0);
  for (const timeline::entry& e : t.items) {
    const work_item& w = e.item;
    if (e.peer != p.peer_of[w.stage])
      return "another peer's stage";
    if (e.begin < free[e.peer])
      return "two items at a time";
    free[e.peer] = e.end;
    if (w.microbatch != p.first + next[{w.kind, w.stage}]++)
      return "not once each in ascending order"; // S-1
    ended[w.kind][{w.stage, w.microbatch}] = e.end;
    auto early = [&](work_kind kind, std::uint32_t stage) {
      auto at = ended[kind].find({stage, w.microbatch});
      if (at == ended[kind].end())
        return true;
      const bool far = p.peer_of[stage] != p.peer_of[w.stage];
      const std::uint64_t hop =
        far ? times[std::min(stage, w.stage)].transfer : 0;
      return e.begin < at->second + hop;
    };
    switch (w.kind) {
    case work_kind::forward:
      if (w.stage > 0 && early(work_kind::forward, w.stage - 1))
        return "F before its input";
      if (++kept[w.stage] > p.kept_max[w.stage])
        return "keeps too many"; // S-3
      break;
    case work_kind::input_gradient:
      if (early(work_kind::forward, w.stage)) // S-2
        return "B before F";
      if (w.stage + 1 < p.stages()
          && early(work_kind::input_gradient, w.stage + 1))
        return "B before its input";
      break;
    case work_kind::weight_gradient:
      if (early(work_kind::input_gradient, w.stage))
        return "W before B";
      --kept[w.stage];
      break;
    }
  }
  const auto all = 3 * std::size_t{p.stages()} * (p.last - p.first);
  return t.items.size() == all ? "" : "items are missing";
}

/// What a block costs: products P each way and for the weights, attention A
/// forward and twice that back.
stage_time realistic(std::uint64_t products, std::uint64_t attention) {
  return {products + attention, products + 2 * attention, products, 0};
}

} // namespace

BOOST_AUTO_TEST_CASE(all_small_pipelines_run_soundly) {
  const std::vector<stage_time> whole{{60, 60, 60, 0},   {60, 60, 60, 7},
                                      {60, 120, 60, 1},  {60, 84, 48, 40},
                                      {120, 60, 12, 90}, {12, 12, 120, 0}};
  for (schedule_kind kind : kinds)
    for (std::uint32_t peers = 1; peers <= 4; ++peers)
      for (std::uint32_t degree = 1; degree <= 3; ++degree)
        for (std::uint32_t count = 1; count <= 9; ++count)
          for (std::uint32_t kept : {0u, 1u, 2u, peers, 2 * peers - 1})
            for (const stage_time& w : whole) {
              BOOST_TEST_CONTEXT("kind " << int(kind) << " peers " << peers
                                         << " degree " << degree << " count "
                                         << count << " kept " << kept) {
                const pipeline p = dealt(kind, peers, degree, count, kept);
                const auto times = equal_times(p, w);
                BOOST_TEST(fault(p, times, simulate(p, times, true)) == "");
              }
            }
}

BOOST_AUTO_TEST_CASE(unlike_stages_on_any_peers_run_soundly) {
  for (unsigned seed = 1; seed <= 600; ++seed) {
    std::mt19937 rng(seed);
    auto below = [&](unsigned n) { return std::uint32_t(rng() % n); };
    pipeline p;
    p.kind = kinds[below(3)];
    p.peers = 1 + below(4);
    p.last = 1 + below(12);
    const std::uint32_t stages = p.peers + below(6);
    std::vector<stage_time> times;
    for (std::uint32_t s = 0; s < stages; ++s) {
      p.peer_of.push_back(s < p.peers ? s : below(p.peers)); // all have one
      p.kept_max.push_back(below(3) == 0 ? 0 : 1 + below(8));
      times.push_back({below(50), below(50), below(50), below(20)});
    }
    std::ranges::shuffle(p.peer_of, rng);
    complete(p);
    BOOST_TEST_CONTEXT("seed " << seed)
    BOOST_TEST(fault(p, times, simulate(p, times, true)) == "");
  }
}

BOOST_AUTO_TEST_CASE(any_order_of_arrivals_is_survived) {
  // No clock: a random peer tries, inputs arrive in random order.
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 rng(seed);
    auto below = [&](unsigned n) { return std::uint32_t(rng() % n); };
    const pipeline p = dealt(kinds[below(3)], 1 + below(4), 1 + below(3),
                             1 + below(7), below(3));
    std::vector<work_order> orders;
    for (std::uint32_t i = 0; i < p.peers; ++i)
      orders.emplace_back(p, i);
    std::map<key, bool> forward, back, on_the_way_f, on_the_way_b;
    for (auto m = p.first; m < p.last; ++m)
      forward[{0, m}] = back[{p.stages() - 1, m}] = true;
    std::size_t ran = 0;
    const auto all = 3 * std::size_t{p.stages()} * (p.last - p.first);
    for (std::size_t turn = 0; ran < all && turn < 200'000; ++turn) {
      for (auto [from, to] :
           {std::pair(&on_the_way_f, &forward), {&on_the_way_b, &back}})
        if (!from->empty() && below(3) == 0) {
          auto at = from->begin();
          std::advance(at, below(unsigned(from->size())));
          to->insert(*at);
          from->erase(at);
        }
      const auto item = orders[below(p.peers)].next([&](const work_item& w) {
        const auto& here = w.kind == work_kind::forward ? forward : back;
        return here.contains({w.stage, w.microbatch});
      });
      if (!item)
        continue;
      ++ran;
      if (item->kind == work_kind::forward && item->stage + 1 < p.stages())
        on_the_way_f[{item->stage + 1, item->microbatch}] = true;
      if (item->kind == work_kind::input_gradient && item->stage > 0)
        on_the_way_b[{item->stage - 1, item->microbatch}] = true;
    }
    BOOST_TEST_CONTEXT("seed " << seed)
    BOOST_TEST(ran == all);
  }
}

/// Replicas whose stages share peers at random, without a clock: all work ends,
/// and the weight gradients of a peer run in one order, whatever the order of
/// arrivals.
BOOST_AUTO_TEST_CASE(a_peer_in_several_replicas_sums_in_one_order) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 shape(seed);
    auto drawn = [&](unsigned n) { return std::uint32_t(shape() % n); };
    const std::uint32_t replicas = 2 + drawn(3), peers = 2 + drawn(4);
    const schedule_kind kind = kinds[drawn(3)];
    std::vector<pipeline> lines;
    std::vector<std::vector<std::uint32_t>> who(replicas); // by stage
    std::uint32_t next = 0;
    for (std::uint32_t r = 0; r < replicas; ++r) {
      pipeline& p = lines.emplace_back();
      p.kind = kind;
      p.first = next;
      p.last = next += 1 + drawn(5);
      std::map<std::uint32_t, std::uint32_t> local;
      const std::uint32_t stages = 1 + drawn(4);
      for (std::uint32_t s = 0; s < stages; ++s) {
        who[r].push_back(drawn(peers));
        const auto at =
          local.try_emplace(who[r].back(), std::uint32_t(local.size())).first;
        p.peer_of.push_back(at->second);
        p.kept_max.push_back(drawn(3));
      }
      p.peers = std::uint32_t(local.size());
      complete(p);
    }
    for (unsigned turn = 0; turn < 4; ++turn) {
      std::mt19937 rng(1000 * seed + turn);
      auto below = [&](std::size_t n) { return std::size_t(rng() % n); };
      std::vector<work_order> orders;
      for (std::uint32_t i = 0; i < peers; ++i) {
        std::vector<pipeline_role> roles;
        for (std::uint32_t r = 0; r < replicas; ++r)
          if (const auto at = std::ranges::find(who[r], i); at != who[r].end())
            roles.push_back(
              {r, &lines[r],
               lines[r].peer_of[std::size_t(at - who[r].begin())]});
        orders.emplace_back(roles);
      }
      using place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
      std::map<place, bool> forward, back;
      std::vector<std::pair<std::map<place, bool>*, place>> on_the_way;
      for (std::uint32_t r = 0; r < replicas; ++r)
        for (auto m = lines[r].first; m < lines[r].last; ++m)
          forward[{r, 0, m}] = back[{r, lines[r].stages() - 1, m}] = true;
      std::vector<std::vector<work_item>> weights(peers);
      bool left = true;
      for (std::size_t tries = 0; left && tries < 200'000; ++tries) {
        if (!on_the_way.empty() && below(3) == 0) {
          const std::size_t one = below(on_the_way.size());
          (*on_the_way[one].first)[on_the_way[one].second] = true;
          on_the_way.erase(on_the_way.begin() + long(one));
        }
        const std::size_t peer = below(peers);
        const auto item = orders[peer].next([&](const work_item& w) {
          const auto& here = w.kind == work_kind::forward ? forward : back;
          return here.contains({w.replica, w.stage, w.microbatch});
        });
        if (!item)
          continue;
        const work_item& w = *item;
        if (w.kind == work_kind::forward
            && w.stage + 1 < lines[w.replica].stages())
          on_the_way.push_back(
            {&forward, {w.replica, w.stage + 1, w.microbatch}});
        if (w.kind == work_kind::input_gradient && w.stage > 0)
          on_the_way.push_back({&back, {w.replica, w.stage - 1, w.microbatch}});
        if (w.kind == work_kind::weight_gradient)
          weights[peer].push_back(w);
        left = std::ranges::any_of(
          orders, [](const work_order& o) { return !o.finished(); });
      }
      BOOST_TEST_CONTEXT("seed " << seed << " turn " << turn) {
        BOOST_TEST(!left); // S-4
        auto key = [&](const work_item& w) {
          return std::tuple(w.microbatch - lines[w.replica].first, w.replica);
        };
        for (const auto& order : weights)
          for (std::size_t b = 0; b < order.size(); ++b)
            for (std::size_t a = 0; a < b; ++a)
              BOOST_TEST((order[a].replica == order[b].replica
                          || key(order[a]) < key(order[b]))); // S-5
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(one_f_one_b_keeps_what_is_behind_it) {
  for (std::uint32_t peers = 1; peers <= 6; ++peers)
    for (std::uint32_t count = 1; count <= 8; ++count) {
      const pipeline p = dealt(schedule_kind::one_f_one_b, peers, 1, count);
      const timeline t = simulate(p, equal_times(p, {60, 60, 60, 1}), true);
      for (std::uint32_t s = 0; s < peers; ++s)
        BOOST_TEST(t.kept[s] == live_microbatches_max(s, peers, count));
      for (std::size_t i = 0; i < t.items.size(); ++i)
        if (t.items[i].item.kind == work_kind::input_gradient) {
          // The weight gradient follows at once.
          auto after = std::find_if(
            t.items.begin() + long(i) + 1, t.items.end(),
            [&](const auto& e) { return e.peer == t.items[i].peer; });
          BOOST_REQUIRE(after != t.items.end());
          BOOST_TEST((after->item.kind == work_kind::weight_gradient));
        }
    }
}

BOOST_AUTO_TEST_CASE(bubbles_of_equal_times_are_those_of_the_papers) {
  // F = B = W = 1, no transfers, P peers. 1F1B with a backward pass in one
  // piece: 3 (P - 1). Here B goes out before W: 2 (P - 1). ZB-H1 with what the
  // first stage keeps by 1F1B: P - 1, and less is not possible while all peers
  // begin a step together and the last one waits for the first microbatch.
  for (std::uint32_t peers = 2; peers <= 8; ++peers)
    for (std::uint32_t count : {2 * peers, 4 * peers, 4 * peers + 3}) {
      auto bubble = [&](schedule_kind kind, std::uint32_t degree,
                        std::uint32_t kept, stage_time whole) {
        const pipeline p = dealt(kind, peers, degree, count, kept);
        return idle(simulate(p, equal_times(p, whole)));
      };
      const stage_time whole{60, 60, 60, 0};
      const stage_time in_one_piece{60, 120, 0, 0};
      const std::uint64_t unit = 60 * (peers - 1);
      using enum schedule_kind;
      BOOST_TEST(bubble(one_f_one_b, 1, 0, in_one_piece) == 3 * unit);
      BOOST_TEST(bubble(one_f_one_b, 1, 0, whole) == 2 * unit);
      BOOST_TEST(bubble(zero_bubble, 1, peers, whole) == unit);
      BOOST_TEST(bubble(zero_bubble, 1, 0, whole) == unit);
      for (std::uint32_t degree : {2, 3, 4})
        if (count % peers == 0) {
          BOOST_TEST(bubble(interleaved, degree, 0, whole)
                     == 2 * unit / degree);
          BOOST_TEST(bubble(zero_bubble, degree, 0, whole) == unit / degree);
        }
    }
}

BOOST_AUTO_TEST_CASE(zero_bubble_leaves_a_third_at_most) {
  // F:B:W of blocks whose attention takes from 0 to 0.3 of the time of the
  // products (sequences of twice the width); transfers of up to 2 % of a
  // forward.
  for (std::uint64_t attention : {0, 100, 300})
    for (std::uint64_t transfer : {0, 1, 20})
      for (std::uint32_t peers : {2, 3, 4, 6, 8})
        for (std::uint32_t count : {2 * peers, 4 * peers, 8 * peers + 1}) {
          stage_time w = realistic(1000, attention);
          w.transfer = transfer;
          const stage_time in_one_piece{
            w.forward, w.input_gradient + w.weight_gradient, 0, transfer};
          auto bubble = [&](schedule_kind kind, std::uint32_t degree,
                            stage_time whole) {
            const pipeline p = dealt(kind, peers, degree, count);
            return idle(simulate(p, equal_times(p, whole)));
          };
          using enum schedule_kind;
          BOOST_TEST_CONTEXT("attention " << attention << " transfer "
                                          << transfer << " peers " << peers
                                          << " count " << count) {
            const std::uint64_t ours = bubble(one_f_one_b, 1, w);
            // Against 1F1B as published, and, with two runs of blocks on each
            // peer, against ours, which sends B before W.
            BOOST_TEST(3 * bubble(zero_bubble, 1, w)
                       <= bubble(one_f_one_b, 1, in_one_piece));
            if (count % peers == 0)
              BOOST_TEST(3 * bubble(zero_bubble, 2, w) <= ours);
            BOOST_TEST(bubble(zero_bubble, 1, w) <= ours);
          }
        }
}

BOOST_AUTO_TEST_CASE(less_memory_never_makes_zero_bubble_worse_than_1f1b) {
  for (std::uint32_t peers : {2, 3, 4, 6})
    for (std::uint64_t transfer : {0, 5})
      for (std::uint32_t extra = 0; extra < peers; ++extra) {
        pipeline p = dealt(schedule_kind::zero_bubble, peers, 1, 4 * peers);
        for (std::uint32_t s = 0; s < peers; ++s) {
          const kept_range k = kept_of(p, s);
          p.kept_max[s] = std::min(k.least + extra, k.wanted);
        }
        complete(p);
        const pipeline q =
          dealt(schedule_kind::one_f_one_b, peers, 1, 4 * peers);
        const stage_time w{60, 70, 50, transfer};
        BOOST_TEST_CONTEXT("peers " << peers << " extra " << extra
                                    << " transfer " << transfer)
        BOOST_TEST(simulate(p, equal_times(p, w)).span
                   <= simulate(q, equal_times(q, w)).span + 2 * transfer);
      }
}

BOOST_AUTO_TEST_CASE(evaluation_runs_forward_only) {
  const pipeline p = dealt(schedule_kind::zero_bubble, 2, 2, 4);
  work_order order = work_order::forward_only(p, 1, 5);
  std::map<std::uint32_t, std::uint32_t> next; // by stage
  while (!order.finished()) {
    const auto item = order.next([](const work_item&) { return true; });
    BOOST_REQUIRE(item);
    BOOST_TEST((item->kind == work_kind::forward));
    BOOST_TEST((item->stage == 1 || item->stage == 3));
    BOOST_TEST(item->microbatch == next[item->stage]++);
  }
  BOOST_TEST(next[1] == 5u);
  BOOST_TEST(next[3] == 5u);
}

BOOST_AUTO_TEST_CASE(the_last_weight_gradient_is_known) {
  const pipeline p = dealt(schedule_kind::zero_bubble, 1, 1, 3);
  work_order order(p, 0);
  std::uint32_t weights = 0;
  while (!order.finished()) {
    const auto item = order.next([](const work_item&) { return true; });
    BOOST_REQUIRE(item);
    weights += item->kind == work_kind::weight_gradient ? 1 : 0;
    BOOST_TEST(order.gradients_final(0) == (weights == 3));
  }
}

BOOST_AUTO_TEST_SUITE_END()
