// tests/kernels/sampling_test.cpp -- the choice of the next token.
#include "tests/kernels/harness.hpp"

#include <cmath>
#include <set>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(sampling)

namespace {

using kernels::sampled_token;
using kernels::sampling_generator;
using kernels::sampling_options;

std::vector<sampled_token> draw(const floats& logits, sampling_options options,
                                std::uint64_t seed, int count) {
  auto reference = kernels::make_reference_backend();
  sampling_generator generator{seed};
  std::vector<sampled_token> tokens;
  for (int i = 0; i != count; ++i)
    tokens.push_back(reference->sample(logits, options, generator));
  return tokens;
}

std::set<int> ids_of(const std::vector<sampled_token>& tokens) {
  std::set<int> ids;
  for (auto& token : tokens)
    ids.insert(token.id);
  return ids;
}

} // namespace

BOOST_AUTO_TEST_CASE(temperature_0_takes_the_first_of_the_largest) {
  floats logits{1, 5, 5, 2};
  sampling_generator generator{3};
  auto token = cpu_fixture{}.cpu->sample(logits, {.temperature = 0}, generator);
  BOOST_TEST(token.id == 1);
  BOOST_TEST(generator.state == 3u);
  auto sum = 2 + std::exp(-4.0) + std::exp(-3.0);
  BOOST_TEST(std::abs(token.logprob + std::log(sum)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(top_k_keeps_k) {
  auto logits = random_values(500, 1);
  auto ids = ids_of(draw(logits, {.temperature = 5, .top_k = 3}, 1, 300));
  BOOST_TEST(ids.size() == 3u);
  for (auto id : ids)
    BOOST_TEST(std::count_if(logits.begin(), logits.end(),
                             [&](float x) {
                               return x > logits[static_cast<std::size_t>(id)];
                             })
               < 3);
}

BOOST_AUTO_TEST_CASE(top_p_keeps_the_fewest_that_reach_p) {
  // Probabilities 0.4, 0.3, 0.2, 0.1 in mixed order.
  floats logits{std::log(0.2f), std::log(0.4f), std::log(0.1f), std::log(0.3f)};
  BOOST_TEST(ids_of(draw(logits, {.top_p = 0.39f}, 1, 200))
             == std::set<int>{1});
  BOOST_TEST(
    (ids_of(draw(logits, {.top_p = 0.65f}, 1, 200)) == std::set<int>{1, 3}));
  BOOST_TEST(
    (ids_of(draw(logits, {.top_p = 0.85f}, 1, 200)) == std::set<int>{0, 1, 3}));
  BOOST_TEST(ids_of(draw(logits, {}, 1, 400)).size() == 4u);
}

// A flat distribution needs more than the first guess of how many to sort.
BOOST_AUTO_TEST_CASE(top_p_works_beyond_the_first_candidates) {
  floats logits(1000, 0.0f);
  auto ids = ids_of(draw(logits, {.top_p = 0.5f}, 1, 20000));
  BOOST_TEST(ids.size() > 490u);
  BOOST_TEST(*ids.rbegin() < 501);
}

BOOST_AUTO_TEST_CASE(min_p_keeps_a_share_of_the_most_probable) {
  // Probabilities 0.4, 0.3, 0.2, 0.1 in mixed order.
  floats logits{std::log(0.2f), std::log(0.4f), std::log(0.1f), std::log(0.3f)};
  BOOST_TEST(
    (ids_of(draw(logits, {.min_p = 0.6f}, 1, 200)) == std::set<int>{1, 3}));
  BOOST_TEST(
    (ids_of(draw(logits, {.min_p = 0.45f}, 1, 200)) == std::set<int>{0, 1, 3}));
  BOOST_TEST(ids_of(draw(logits, {.min_p = 1}, 1, 200)) == std::set<int>{1});
  // The other filters come first: min_p applies to their result.
  BOOST_TEST((ids_of(draw(logits, {.top_k = 2, .min_p = 0.1f}, 1, 200))
              == std::set<int>{1, 3}));
  // The share is of probabilities at this temperature.
  BOOST_TEST(
    ids_of(draw(logits, {.temperature = 4, .min_p = 0.6f}, 1, 400)).size()
    == 4u);
}

BOOST_AUTO_TEST_CASE(the_penalty_makes_seen_tokens_less_probable) {
  floats logits{3, 2, -1, -2};
  const std::vector<kernels::token_id> seen{0, 3};
  sampling_options options{.temperature = 0};
  options.seen = seen;
  options.repetition_penalty = 1.4f; // 3 / 1.4 is still the largest
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 0);
  options.repetition_penalty = 1.6f;
  const auto other = draw(logits, options, 1, 1)[0];
  BOOST_TEST(other.id == 1);
  // The returned probability is the model's own.
  double sum = 0;
  for (const float x : logits)
    sum += std::exp(x);
  BOOST_TEST(std::abs(other.logprob - (2 - std::log(sum))) < 1e-6);
  // Negative logits go down, too: weights 0.5 of e^-1 and e^-2 become more
  // unlike.
  options.temperature = 1;
  options.repetition_penalty = 20;
  BOOST_TEST((ids_of(draw(logits, options, 1, 400)) == std::set<int>{0, 1, 2}));
}

BOOST_AUTO_TEST_CASE(biases_and_counts_change_logits) {
  floats logits{3, 2, 1, 0};
  sampling_options options{.temperature = 0};
  const std::vector<kernels::token_bias> biases{{2, 2.5f}, {0, -100}};
  options.biases = biases;
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 2); // 3.5 against 2
  const std::vector<kernels::token_count> chosen{{2, 3}, {1, 1}};
  options.chosen = chosen;
  options.frequency_penalty = 0.4f; // 2.3 against 1.6
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 2);
  options.frequency_penalty = 0.8f; // 1.1 against 1.2
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 1);
  options.frequency_penalty = 0;
  options.presence_penalty = 1.9f; // 1.6 against 0.1
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 2);
  options.biases = {};
  options.presence_penalty = -2; // 3, 4, 3, 0
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 1);
  // The repetition penalty takes what the biases have made: 3.5 / 3 against 2.
  options.chosen = {};
  options.biases = biases;
  const std::vector<kernels::token_id> seen{2};
  options.seen = seen;
  options.repetition_penalty = 3;
  BOOST_TEST(draw(logits, options, 1, 1)[0].id == 1);
}

BOOST_AUTO_TEST_CASE(frequencies_follow_the_probabilities) {
  floats logits{0, std::log(3.0f)};
  auto tokens = draw(logits, {}, 5, 4000);
  auto ones = std::count_if(tokens.begin(), tokens.end(),
                            [](auto& token) { return token.id == 1; });
  BOOST_TEST(ones > 2900);
  BOOST_TEST(ones < 3100);
  BOOST_TEST(
    std::abs(tokens[0].logprob - std::log(tokens[0].id == 1 ? 0.75 : 0.25))
    < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_seed_gives_one_sequence) {
  auto logits = random_values(300, 1);
  auto a = draw(logits, {}, 9, 50), b = draw(logits, {}, 9, 50);
  auto c = draw(logits, {}, 10, 50);
  auto same = [](auto& x, auto& y) { return x.id == y.id; };
  BOOST_TEST(std::equal(a.begin(), a.end(), b.begin(), same));
  BOOST_TEST(!std::equal(a.begin(), a.end(), c.begin(), same));
}

BOOST_AUTO_TEST_CASE(the_likeliest_tokens_come_with_their_log_probabilities) {
  const floats logits{1, 5, 5, 2}; // equal ones: the lower id first
  const double sum = 2 + std::exp(-4.0) + std::exp(-3.0);
  std::vector<sampled_token> likely(3);
  const float other = cpu_fixture{}.cpu->logprobs(logits, 0, likely);
  BOOST_TEST(std::abs(other + 4 + std::log(sum)) < 1e-6);
  BOOST_TEST(likely[0].id == 1);
  BOOST_TEST(likely[1].id == 2);
  BOOST_TEST(likely[2].id == 3);
  BOOST_TEST(likely[0].logprob == likely[1].logprob);
  BOOST_TEST(std::abs(likely[2].logprob + 3 + std::log(sum)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(the_likeliest_tokens_are_those_of_the_reference) {
  const cpu_fixture fixture;
  const auto reference = kernels::make_reference_backend();
  for (const std::size_t V : {1u, 19u, 20u, 977u, 50'257u})
    for (std::size_t k = 0; k <= std::min<std::size_t>(V, 20); ++k) {
      floats logits = random_values(V, V + k);
      for (float& x : logits) // many are equal
        x = std::round(x * 8);
      if (V > 2)
        logits[V / 2] = -HUGE_VALF;
      const auto of = static_cast<kernels::token_id>(V / 2);
      std::vector<sampled_token> a(k), b(k);
      const float x = reference->logprobs(logits, of, a);
      const float y = fixture.cpu->logprobs(logits, of, b);
      BOOST_TEST(x == y);
      for (std::size_t i = 0; i != k; ++i)
        BOOST_TEST((a[i].id == b[i].id && a[i].logprob == b[i].logprob),
                   "token " << i << " of " << k << " of " << V);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
