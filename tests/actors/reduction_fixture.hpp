// tests/actors/reduction_fixture.hpp -- the environment of reducers' parts,
// made by hand.
//
// Peers of one sub-plan, with transfers, queues and turns whose order is drawn
// from a seed.
#pragma once

#include "actors/drawn_links.hpp"
#include "actors/reduction/reduction_context.hpp"

#include <functional>

namespace shoal::test {

using core::island_place;

/// A pipeline: peers, and how many blocks each has.
inline core::replica_place
pipeline(std::vector<std::pair<std::size_t, std::uint32_t>> blocks,
         std::uint32_t first_microbatch, std::uint32_t last_microbatch) {
  core::replica_place out;
  std::uint32_t block = 0;
  for (const auto& [n, count] : blocks) {
    core::stage_place s;
    s.shards.emplace_back().where.member.peer = peer(n);
    s.first_block = block;
    s.last_block = block += count;
    out.stages.push_back(s);
  }
  out.first_microbatch = first_microbatch;
  out.last_microbatch = last_microbatch;
  return out;
}

inline core::holder_place
follower(std::size_t n, std::uint32_t first, std::uint32_t last) {
  core::holder_place out;
  out.where.member.peer = peer(n);
  out.first_unit = first;
  out.last_unit = last;
  return out;
}

inline std::shared_ptr<const model::unit_layout>
small_layout(std::uint32_t blocks, bool tied) {
  model::model_config c;
  c.vocab_size = 16;
  c.hidden_size = 8;
  c.intermediate_size = 8;
  c.num_hidden_layers = blocks;
  c.num_attention_heads = 2;
  c.num_key_value_heads = 1;
  c.head_dim = 4;
  c.tie_word_embeddings = tied;
  c.bos_token_id.reset();
  c.eos_token_ids.clear();
  return std::make_shared<const model::unit_layout>(c);
}

/// What one peer's parts work with.
struct reduction_peer {
  reduction_peer(network& wire, std::size_t n, const island_place& place,
                 const std::shared_ptr<const model::unit_layout>& layout)
    : links(wire, peer(n)) {
    auto plan = std::make_shared<actors::sub_plan>(place);
    plan->digest = 7;
    plan->lease = std::make_shared<int>();
    here.self = peer(n);
    here.plan = plan;
    here.layout = layout;
    here.links = &links;
    here.device = &device;
    here.sums = &sums;
    here.buffers = &buffers;
    here.post = [this](std::function<void()> run) { turns.push_back(run); };
    find_units(here);
    for (const auto& units : {here.computed, here.followed})
      for (const model::unit_index u : units)
        here.states[u] = std::make_shared<model::unit_state>(
          layout, u, model::purpose::training);
  }
  std::span<float> gradient(model::unit_index u) {
    return here.states.at(u)->gradients();
  }

  hub links;
  drawn_queue device, sums;
  actors::buffer_pool buffers;
  std::deque<std::function<void()>> turns;
  actors::reduction_context here;
};

/// Peers with a part of type `Part` each, which tells an `Events` of its own.
template <class Part, class Events>
struct reduction_shoal {
  struct one : reduction_peer {
    using reduction_peer::reduction_peer;
    Events events;
    Part part{here, events};
  };

  reduction_shoal(std::size_t peers, island_place place, bool tied,
                  std::uint32_t seed)
    : random(seed) {
    const auto layout =
      small_layout(place.replicas.front().stages.back().last_block, tied);
    for (std::size_t n = 0; n < peers; ++n)
      all.push_back(std::make_unique<one>(wire, n, place, layout));
  }
  one& operator[](std::size_t n) { return *all.at(n); }

  void begin(std::uint64_t step) {
    for (auto& p : all)
      p->part.begin(step);
  }

  /// Lets all happen that can, in an order of the seed.
  void settle() {
    for (;;) {
      std::vector<std::function<void()>> can;
      for (auto& p : all) {
        for (drawn_queue* q : {&p->device, &p->sums})
          if (!q->waiting.empty())
            can.push_back([q] { q->run_one(); });
        if (!p->turns.empty())
          can.push_back([&p] {
            const auto run = std::move(p->turns.front());
            p->turns.pop_front();
            run();
          });
      }
      for (auto& [k, t] : wire)
        if (t.into && t.from)
          can.push_back([this, k = k] { carry(wire, k, random); });
      if (can.empty())
        return;
      can[random() % can.size()]();
    }
  }

  std::mt19937 random;
  network wire;
  std::vector<std::unique_ptr<one>> all;
};

} // namespace shoal::test
