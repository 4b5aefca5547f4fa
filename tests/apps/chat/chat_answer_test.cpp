// tests/apps/chat/chat_answer_test.cpp -- the speed of an answer.
#include "apps/chat/chat_answer.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(chat_answer_speed)

using shoal::apps::chat_answer;
using std::chrono::milliseconds;

namespace {

/// An answer of this many tokens, the first after 100 ms, the others `apart`.
chat_answer answer_of(int tokens, milliseconds apart) {
  const chat_answer::clock::time_point asked{};
  chat_answer out(asked);
  for (int n = 0; n < tokens; ++n)
    out.put(R"({"choices":[{"delta":{"content":"a "}}]})",
            asked + milliseconds(100) + n * apart,
            [](const std::string&, bool) {});
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(is_that_of_the_tokens_after_the_first) {
  const auto answer = answer_of(11, milliseconds(50));
  BOOST_TEST(answer.tokens() == 11);
  BOOST_TEST(answer.tokens_per_s() == 20, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(shoal::apps::speed_text(answer)
             == "11 tokens, 20.0 tokens/s; the first after 100 ms");
}

BOOST_AUTO_TEST_CASE(is_not_known_of_few_tokens_or_of_some_that_come_at_once) {
  for (const auto& answer :
       {answer_of(9, milliseconds(50)), answer_of(12, milliseconds(1))}) {
    BOOST_TEST(answer.tokens_per_s() == 0);
    BOOST_TEST(shoal::apps::speed_text(answer).find("tokens/s")
               == std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
