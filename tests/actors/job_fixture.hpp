// tests/actors/job_fixture.hpp -- a small run on any layout, and its losses.
#pragma once

#include "tests/actors/small_shoal.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

namespace shoal::test {

using runtime::run_config;

inline constexpr std::int64_t steps = 6;

inline run_config
small_run(std::int64_t replicas, std::int64_t stages, bool tied = false) {
  run_config run;
  run.model.vocab_size = 256;
  run.model.hidden_size = 16;
  run.model.intermediate_size = 24;
  run.model.num_hidden_layers = 4;
  run.model.num_attention_heads = 2;
  run.model.num_key_value_heads = 1;
  run.model.head_dim = 8;
  run.model.max_position_embeddings = 16;
  run.model.tie_word_embeddings = tied;
  run.model.bos_token_id.reset();
  run.model.eos_token_ids.clear();
  run.steps = steps;
  run.seq_len = 8;
  run.local_batch_size = 1;
  run.global_batch_size = 6;
  run.replicate_degree = replicas;
  run.pipeline_degree = stages;
  run.validation_freq = 3;
  run.validation_steps = 2;
  run.checkpoint_interval = 4;
  return run;
}

inline std::string some_text() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += char('a' + (i * i) % 23);
  return text;
}

/// The run on one peer.
inline const run_record& alone(bool tied) {
  static std::map<bool, run_record> known;
  if (!known.contains(tied)) {
    small_shoal s(1, small_run(1, 1, tied), some_text());
    s.submit();
    BOOST_REQUIRE(s.finish());
    known[tied] = s.record(0);
  }
  return known[tied];
}

inline void require_same(const run_record& got, bool exact, bool tied) {
  const auto& want = alone(tied);
  BOOST_REQUIRE_EQUAL(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    if (exact) {
      BOOST_TEST(got.losses[i] == want.losses[i]);
      BOOST_TEST(got.norms[i] == want.norms[i]);
    } else {
      BOOST_TEST(std::abs(got.losses[i] / want.losses[i] - 1) < 1e-5);
      BOOST_TEST(std::abs(got.norms[i] / want.norms[i] - 1) < 1e-5);
    }
  }
}

/// Kills a peer after `when` messages, restarts it some time later and runs to
/// the end. @returns false if the run had ended before
inline bool die_and_return(small_shoal& s, std::size_t victim, int when) {
  for (int i = 0; i < when && !s.ended(); ++i)
    s.step();
  if (s.ended())
    return false;
  s.kill(victim);
  for (int i = 0; i < 150 && !s.ended(); ++i)
    s.step();
  if (!s.ended())
    s.restart(victim);
  BOOST_REQUIRE(s.finish());
  return true;
}

/// Kills and restarts random nodes after random numbers of messages, until the
/// run has ended or `turns` are over. Node 0 stays, and at least a minimum of
/// the others.
inline void deaths_and_returns(small_shoal& s, std::size_t peers, int seed,
                               int turns, std::size_t alive_min) {
  std::mt19937 rng{unsigned(seed)};
  const auto below = [&](std::size_t n) { return std::size_t(rng() % n); };
  std::set<std::size_t> dead;
  for (int turn = 0; turn < turns && !s.ended(); ++turn) {
    for (std::size_t left = below(400); left > 0 && !s.ended(); --left)
      s.step();
    const std::size_t who = 1 + below(peers - 1);
    if (s.ended())
      break;
    if (dead.erase(who) > 0)
      s.restart(who);
    else if (dead.size() + 1 + alive_min <= peers && dead.insert(who).second)
      s.kill(who);
  }
}

} // namespace shoal::test
