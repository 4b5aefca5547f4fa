// tests/runtime/http/keys/key_account_test.cpp -- limits of keys, by a clock that
// the test sets.
#include "runtime/http/keys/key_account.hpp"

#include <boost/test/unit_test.hpp>

#include <map>

namespace limits_of_keys {

using namespace shoal::runtime;
using namespace std::chrono_literals;

namespace {

struct account_fixture {
  std::chrono::steady_clock::time_point now{1000s};
  key_clock clock = [this] { return now; };

  key_account of(key_limits limits) { return {"ann", limits, clock}; }
  static std::string header(const key_account& a, const std::string& name) {
    for (const auto& [each, value] : a.headers())
      if (each == "x-ratelimit-" + name)
        return value;
    return "none";
  }
};

} // namespace

} // namespace limits_of_keys

BOOST_FIXTURE_TEST_SUITE(limits_of_keys, limits_of_keys::account_fixture)

BOOST_AUTO_TEST_CASE(a_minutes_requests_may_come_at_once) {
  auto a = of({3, 0});
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(!a.take_request());
  const auto refused = a.take_request();
  BOOST_TEST_REQUIRE(bool(refused));
  BOOST_TEST(refused->status == 429u);
  BOOST_TEST(refused->type == "rate_limit_error");
  BOOST_TEST(refused->code == "rate_limit_exceeded");
  BOOST_TEST(refused->retry_after_s == 20u);
  BOOST_TEST(refused->message.find("\"ann\"") != std::string::npos);
  BOOST_TEST(refused->message.find("3 requests a minute") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(another_try_is_right_when_it_is_said_to_be) {
  auto a = of({3, 0});
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(!a.take_request());
  now += 7300ms;
  const auto refused = a.take_request();
  BOOST_TEST_REQUIRE(bool(refused));
  BOOST_TEST(refused->retry_after_s == 13u);
  now += 12s; // of 12.7
  BOOST_TEST(bool(a.take_request()));
  now += 1s;
  BOOST_TEST(!a.take_request());
  BOOST_TEST(bool(a.take_request()));
}

BOOST_AUTO_TEST_CASE(what_is_not_used_is_kept_for_a_minute) {
  auto a = of({60, 0});
  now += 1h;
  for (int i = 0; i < 60; ++i)
    BOOST_TEST(!a.take_request());
  BOOST_TEST(bool(a.take_request()));
}

BOOST_AUTO_TEST_CASE(a_prompt_is_taken_whole_or_not_at_all) {
  auto a = of({0, 600});
  BOOST_TEST(!a.take_prompt(400));
  const auto refused = a.take_prompt(300);
  BOOST_TEST_REQUIRE(bool(refused));
  BOOST_TEST(refused->retry_after_s == 10u); // 100 tokens, 10 a second
  BOOST_TEST(refused->message.find("600 tokens a minute") != std::string::npos);
  BOOST_TEST(!a.take_prompt(200)); // nothing was taken by the refused one
  BOOST_TEST(!a.take_prompt(0));
  BOOST_TEST(!a.take_request()); // as many as it likes
}

BOOST_AUTO_TEST_CASE(what_is_generated_may_be_owed) {
  auto a = of({0, 60});
  BOOST_TEST(!a.take_prompt(10));
  a.generated(80);
  BOOST_TEST(header(a, "remaining-tokens") == "0");
  BOOST_TEST(header(a, "reset-tokens") == "1m30s");
  BOOST_TEST(a.take_prompt(1)->retry_after_s == 31u);
  now += 31s;
  BOOST_TEST(!a.take_prompt(1));
}

BOOST_AUTO_TEST_CASE(what_is_given_back_may_be_used_again) {
  auto a = of({0, 60});
  BOOST_TEST(!a.take_prompt(50));
  a.give_back(50);
  BOOST_TEST(!a.take_prompt(60));
  now += 30s;
  a.give_back(60); // half of them are back already
  BOOST_TEST(header(a, "remaining-tokens") == "60");
  BOOST_TEST(!a.take_prompt(60));
  BOOST_TEST(bool(a.take_prompt(1)));
  of({1, 0}).give_back(5); // it has no such limit
}

BOOST_AUTO_TEST_CASE(a_prompt_that_never_fits_is_not_to_be_tried_again) {
  auto a = of({0, 100});
  const auto never = a.take_prompt(101);
  BOOST_TEST_REQUIRE(bool(never));
  BOOST_TEST(never->status == 429u);
  BOOST_TEST((never->retry_after_s == shoal::openai::api_error::never));
  BOOST_TEST(!a.take_prompt(100));
}

BOOST_AUTO_TEST_CASE(headers_tell_what_is_left) {
  auto a = of({60, 6000});
  BOOST_TEST(a.headers().size() == 6u);
  BOOST_TEST(header(a, "limit-requests") == "60");
  BOOST_TEST(header(a, "remaining-requests") == "60");
  BOOST_TEST(header(a, "reset-requests") == "0ms");
  BOOST_TEST(header(a, "limit-tokens") == "6000");
  BOOST_TEST(!a.take_request());
  BOOST_TEST(!a.take_prompt(12));
  BOOST_TEST(header(a, "remaining-requests") == "59");
  BOOST_TEST(header(a, "reset-requests") == "1s");
  BOOST_TEST(header(a, "remaining-tokens") == "5988");
  BOOST_TEST(header(a, "reset-tokens") == "120ms");
  BOOST_TEST(of({60, 0}).headers().size() == 3u);
}

BOOST_AUTO_TEST_CASE(headers_in_the_words_of_the_other_api) {
  auto a = of({60, 6000});
  const auto told = [&] {
    std::map<std::string, std::string> out;
    for (const auto& [name, value] : a.anthropic_headers(1709251170))
      out[name.substr(std::string("anthropic-ratelimit-").size())] = value;
    return out;
  };
  BOOST_TEST(told().size() == 6u);
  BOOST_TEST(told()["requests-limit"] == "60");
  BOOST_TEST(told()["requests-remaining"] == "60");
  BOOST_TEST(told()["requests-reset"] == "2024-02-29T23:59:30Z"); // it is full
  a.generated(6001);
  BOOST_TEST(!a.take_request());
  BOOST_TEST(told()["requests-remaining"] == "59");
  BOOST_TEST(told()["requests-reset"] == "2024-02-29T23:59:31Z");
  BOOST_TEST(told()["tokens-limit"] == "6000");
  BOOST_TEST(told()["tokens-remaining"] == "0");
  BOOST_TEST(told()["tokens-reset"] == "2024-03-01T00:00:31Z"); // rounded up
  BOOST_TEST(of({0, 5}).anthropic_headers(0).size() == 3u);
}

BOOST_AUTO_TEST_CASE(long_times_have_hours) {
  auto a = of({0, 1});
  a.generated(120);
  BOOST_TEST(header(a, "reset-tokens") == "2h0m0s");
}

BOOST_AUTO_TEST_CASE(refusals_are_counted_by_name) {
  key_accounts all(clock);
  const auto one = all.of({"bob", {}, {1, 5}});
  const auto none = all.of({"eve", {}, {}});
  BOOST_TEST(!none);
  BOOST_TEST(all.of({"bob", {}, {1, 5}}) == one);
  BOOST_TEST(!one->take_request());
  BOOST_TEST(bool(one->take_request()));
  BOOST_TEST(bool(one->take_request()));
  BOOST_TEST(bool(one->take_prompt(6)));
  (void)all.of({"ann", {}, {1, 0}});
  const auto counts = all.refusals();
  BOOST_TEST_REQUIRE(counts.size() == 2u);
  BOOST_TEST(counts[0].name == "ann");
  BOOST_TEST(counts[1].name == "bob");
  BOOST_TEST(counts[1].requests == 2u);
  BOOST_TEST(counts[1].tokens == 1u);
  // Other limits begin anew.
  BOOST_TEST(!all.of({"bob", {}, {2, 5}})->take_request());
}

BOOST_AUTO_TEST_CASE(a_bill_charges_each_token_once) {
  key_accounts all(clock);
  const auto a = all.of({"ann", {}, {0, 100}});
  token_bill bill(a);
  for (const std::uint64_t tokens : {3, 5, 8, 8, 0, 4, 10})
    bill.up_to(tokens);
  BOOST_TEST(header(*a, "remaining-tokens") == "90");
  token_bill(nullptr).up_to(9); // of a key without limits
}

BOOST_AUTO_TEST_CASE(a_prompt_is_given_back_if_nothing_was_generated) {
  const auto a =
    std::make_shared<key_account>("ann", key_limits{0, 100}, clock);
  BOOST_TEST(!a->take_prompt(30));
  token_bill bill(a);
  bill.up_to(1);
  bill.give_back_prompt(30);
  BOOST_TEST(header(*a, "remaining-tokens") == "69");
  token_bill(a).give_back_prompt(30);
  BOOST_TEST(header(*a, "remaining-tokens") == "99");
  token_bill(nullptr).give_back_prompt(9);
}

BOOST_AUTO_TEST_SUITE_END()
