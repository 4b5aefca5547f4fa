// tests/runtime/model/text/models/word_piece_test.cpp -- the longest tokens
// against a plain loop.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/models/word_piece.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

BOOST_AUTO_TEST_SUITE(word_pieces)

namespace core = shoal::core;
using namespace shoal::model::text;
using nlohmann::json;

namespace {

using ids_list = std::vector<token_id>;
using table = std::map<std::string, token_id>;

word_piece
read_model(const table& vocabulary, const std::string& prefix, unsigned most) {
  const json file = json::parse(json({{"unk_token", "[UNK]"},
                                      {"continuing_subword_prefix", prefix},
                                      {"max_input_chars_per_word", most},
                                      {"vocab", vocabulary}})
                                  .dump());
  std::string fault;
  auto made = word_piece::parse(json_view(file, "model", fault));
  BOOST_REQUIRE_EQUAL(fault, "");
  return made;
}

std::string encoded(const word_piece& by, std::string_view text,
                    banned_tokens banned = nullptr) {
  word_cache cache;
  ids_list ids;
  if (const auto done = by.encode(text, cache, ids, banned); !done)
    return done.message();
  return json(ids).dump();
}

/// By the rules alone: from the whole rest down, one character less each time.
std::string oracle(const table& vocabulary, const std::string& prefix,
                   std::size_t most, const std::string& word) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < word.size(); ++characters)
    core::next_code(word, at);
  ids_list ids;
  std::size_t first = characters > most ? std::string::npos : 0;
  while (first < word.size()) {
    std::size_t last = word.size();
    auto it = vocabulary.end();
    while (last > first && it == vocabulary.end()) {
      it = vocabulary.find((first > 0 ? prefix : "")
                           + word.substr(first, last - first));
      if (it == vocabulary.end())
        core::previous_code(word, last);
    }
    if (it == vocabulary.end()) {
      first = std::string::npos;
      break;
    }
    ids.push_back(it->second);
    first = last;
  }
  if (first == std::string::npos)
    ids.assign(1, vocabulary.at("[UNK]"));
  return json(ids).dump();
}

const std::vector<std::string> letters = {"a", "b", "c", "\xC3\xA9", "#"};

std::string random_word(std::mt19937& random, std::size_t most) {
  std::string out;
  const std::size_t count = 1 + random() % most;
  for (std::size_t i = 0; i < count; ++i)
    out += letters[random() % letters.size()];
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(tokens_are_those_of_a_plain_loop) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::string prefix = seed % 3 == 0   ? ""
                               : seed % 3 == 1 ? "##"
                                               : "\xE2\x96\x81";
    table vocabulary = {{"[UNK]", 0}};
    const auto add = [&](const std::string& token) {
      vocabulary.emplace(token, static_cast<token_id>(vocabulary.size()));
    };
    for (const std::string& letter : letters) {
      if (random() % 8 != 0)
        add(letter);
      if (random() % 8 != 0)
        add(prefix + letter);
    }
    for (unsigned i = 0; i < random() % 30; ++i)
      add((random() % 2 == 0 ? prefix : "") + random_word(random, 4));
    const unsigned most = 1 + random() % 20;
    const word_piece by = read_model(vocabulary, prefix, most);
    for (int i = 0; i < 30; ++i) {
      const std::string word = random_word(random, 22);
      BOOST_TEST_CONTEXT("seed " << seed << ": " << word)
      BOOST_TEST(encoded(by, word) == oracle(vocabulary, prefix, most, word));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_word_that_leads_nowhere_is_one_unknown_token) {
  const word_piece by =
    read_model({{"[UNK]", 7}, {"a", 1}, {"##b", 2}}, "##", 3);
  BOOST_TEST(encoded(by, "ab") == "[1,2]");
  BOOST_TEST(encoded(by, "abb") == "[1,2,2]");
  BOOST_TEST(encoded(by, "aba") == "[7]");
  BOOST_TEST(encoded(by, "abbb") == "[7]"); // more than 3 characters
}

BOOST_AUTO_TEST_CASE(without_the_unknown_token_a_word_may_be_refused) {
  const word_piece by = read_model({{"a", 0}}, "##", 9);
  BOOST_TEST(encoded(by, "a") == "[0]");
  const std::string fault = encoded(by, "aa");
  BOOST_TEST(fault.find("\"[UNK]\"") != std::string::npos, fault);
}

BOOST_AUTO_TEST_CASE(a_banned_token_is_not_taken_from_a_text) {
  const word_piece by =
    read_model({{"[UNK]", 0}, {"[SEP]", 1}, {"[", 2}}, "##", 9);
  const std::vector<bool> banned = {true, true, false};
  BOOST_TEST(encoded(by, "[SEP]") == "[1]");
  BOOST_TEST(encoded(by, "[SEP]", &banned) == "[0]");
}

BOOST_AUTO_TEST_CASE(long_words_take_linear_time) {
  const word_piece by = read_model({{"[UNK]", 0},
                                    {"a", 1},
                                    {"##a", 2},
                                    {"##" + std::string(500, 'a') + "b", 3}},
                                   "##", 4'000'000'000);
  word_cache cache;
  ids_list ids;
  BOOST_TEST(bool(by.encode(std::string(300'000, 'a'), cache, ids)));
  BOOST_TEST(ids.size() == 300'000u);
}

BOOST_AUTO_TEST_SUITE_END()
