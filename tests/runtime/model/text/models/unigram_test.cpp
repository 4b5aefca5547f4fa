// tests/runtime/model/text/models/unigram_test.cpp -- the best tokens against a
// plain loop.
//
// Vocabularies and texts from a seed, with few scores, so that many sums are
// equal. The oracle keeps the whole piece and looks for tokens by their texts.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/models/unigram.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

BOOST_AUTO_TEST_SUITE(unigrams)

namespace core = shoal::core;
using namespace shoal::model::text;
using nlohmann::json;

namespace {

using ids_list = std::vector<token_id>;
using scored = std::vector<std::pair<std::string, double>>;

/// As from a file: numbers of an initialiser would be signed.
unigram read_model(const json& model) {
  const json file = json::parse(model.dump());
  std::string fault;
  auto made = unigram::parse(json_view(file, "model", fault));
  BOOST_REQUIRE_EQUAL(fault, "");
  return made;
}

unigram
read_model(const scored& vocabulary, const json& unk, bool byte_fallback) {
  json list = json::array();
  for (const auto& [token, score] : vocabulary)
    list.push_back({token, score});
  return read_model(
    {{"vocab", list}, {"unk_id", unk}, {"byte_fallback", byte_fallback}});
}

std::string encoded(const unigram& by, std::string_view text,
                    banned_tokens banned = nullptr) {
  word_cache cache;
  ids_list ids;
  if (const auto done = by.encode(text, cache, ids, banned); !done)
    return done.message();
  return json(ids).dump();
}

/// By the rules alone.
std::string oracle(const scored& vocabulary, token_id unk, bool bytes,
                   std::string_view text) {
  struct way {
    double score = 0;
    std::size_t from = std::string::npos;
    token_id id = 0;
  };
  double lowest = vocabulary.front().second;
  std::map<std::string, token_id> ids;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    ids[vocabulary[i].first] = static_cast<token_id>(i);
    lowest = std::min(lowest, vocabulary[i].second);
  }
  std::vector<way> ways(text.size() + 1);
  for (std::size_t first = 0; first < text.size();) {
    std::size_t next = first;
    core::next_code(text, next);
    bool own = false;
    const auto offer = [&](std::size_t last, token_id id, double score) {
      const double sum = score + ways[first].score;
      if (ways[last].from == std::string::npos || sum > ways[last].score)
        ways[last] = {sum, first, id};
    };
    for (std::size_t last = first + 1; last <= text.size(); ++last) {
      const auto it = ids.find(std::string(text.substr(first, last - first)));
      if (it == ids.end())
        continue;
      offer(last, it->second,
            vocabulary[static_cast<std::size_t>(it->second)].second);
      own = own || last == next;
    }
    if (!own)
      offer(next, unk, lowest - 10);
    first = next;
  }
  std::vector<std::pair<std::string, token_id>> found; // from the last one
  for (std::size_t at = text.size(); at > 0; at = ways[at].from) {
    const std::string token(text.substr(ways[at].from, at - ways[at].from));
    if (ways[at].id == unk && !found.empty() && found.back().second == unk)
      found.back().first = token + found.back().first;
    else
      found.emplace_back(token, ways[at].id);
  }
  ids_list out;
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (const auto at = ids.find(it->first); at != ids.end()) {
      out.push_back(at->second);
      continue;
    }
    ids_list each;
    for (const char c : it->first) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      if (const auto at = ids.find(name); bytes && at != ids.end())
        each.push_back(at->second);
    }
    if (each.size() != it->first.size())
      each.assign(1, unk);
    out.insert(out.end(), each.begin(), each.end());
  }
  return json(out).dump();
}

const std::vector<std::string> letters = {"a", "b", "c", "\xC3\xA9",
                                          "\xE2\x82\xAC"};

std::string random_text(std::mt19937& random, std::size_t most) {
  std::string out;
  const std::size_t count = 1 + random() % most;
  const std::size_t kinds = 1 + random() % letters.size(); // long runs too
  for (std::size_t i = 0; i < count; ++i)
    out += letters[random() % kinds];
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(tokens_are_those_of_a_plain_loop) {
  constexpr double scores[] = {0, -0.1, -0.3, -1.1, -2.2, -7.5};
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    scored vocabulary = {{"<unk>", 0.0}};
    std::map<std::string, bool> has = {{"<unk>", true}};
    const auto add = [&](const std::string& token) {
      if (!std::exchange(has[token], true))
        vocabulary.emplace_back(token, scores[random() % std::size(scores)]);
    };
    for (unsigned i = 0; i < 2 + random() % 20; ++i)
      add(random_text(random, 4));
    const bool bytes = random() % 2 == 0;
    for (const char* code : {"<0x61>", "<0x62>", "<0xC3>", "<0xA9>", "<0xE2>"})
      if (random() % 3 != 0)
        add(code);
    const unigram by = read_model(vocabulary, 0, bytes);
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random, i < 18 ? 12 : 300);
      BOOST_TEST_CONTEXT("seed " << seed << ": " << text)
      BOOST_TEST(encoded(by, text) == oracle(vocabulary, 0, bytes, text));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_cache_changes_nothing) {
  const unigram by =
    read_model({{"<unk>", 0.0}, {"a", -1.0}, {"aa", -1.5}}, 0, false);
  word_cache cache;
  ids_list ids;
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(bool(by.encode("aaax", cache, ids)));
  const ids_list once(ids.begin(), ids.begin() + std::ssize(ids) / 2);
  const ids_list again(ids.begin() + std::ssize(ids) / 2, ids.end());
  BOOST_TEST(once == again);
  BOOST_TEST(once.size() == 3u);
}

BOOST_AUTO_TEST_CASE(unknown_characters_side_by_side_are_one_token) {
  const scored some = {{"a", -1.0}, {"<unk>", -2.0}};
  BOOST_TEST(encoded(read_model(some, 1, false), "xyaz") == "[1,0,1]");
  // The text of the token itself counts as one.
  BOOST_TEST(encoded(read_model(some, 1, false), "x<unk>a") == "[1,0]");
}

BOOST_AUTO_TEST_CASE(bytes_stand_for_what_is_unknown_if_all_are_tokens) {
  const scored some = {
    {"<unk>", 0.0}, {"a", -1.0}, {"<0xC3>", 0.0}, {"<0xA9>", 0.0}};
  const unigram by = read_model(some, 0, true);
  BOOST_TEST(encoded(by, "a\xC3\xA9\xC3\xA9") == "[1,2,3,2,3]");
  BOOST_TEST(encoded(by, "a\xC3\xA9z") == "[1,0]"); // together they lack one
}

BOOST_AUTO_TEST_CASE(without_an_unknown_token_a_text_may_be_refused) {
  const unigram by = read_model({{"a", -1.0}, {"xb", -1.0}}, nullptr, true);
  BOOST_TEST(encoded(by, "aaa") == "[0,0,0]");
  const std::string fault = encoded(by, "axb");
  BOOST_TEST(fault.find("'x'") != std::string::npos, fault);
  BOOST_TEST(fault.find("unk_id") != std::string::npos, fault);
}

// 13 of 100 numbers of a file are read as a neighbour of the nearest double.
BOOST_AUTO_TEST_CASE(scores_are_read_as_the_package_reads_them) {
  const auto ids = [](double one, double two) {
    const scored some = {
      {"<unk>", 0.0}, {"ab", -one}, {"c", 0.0}, {"a", 0.0}, {"bc", -two}};
    return encoded(read_model(some, 0, false), "abc");
  };
  BOOST_TEST(ids(1.5, 1.5) == "[3,4]"); // equal: the longer last token
  BOOST_TEST(ids(1.25, 1.5) == "[1,2]");
  // The first is the lower one, but is read as if it were the second.
  for (const auto& [one, two] :
       {std::pair(3.6994928736996533, 3.6994928736996537),
        std::pair(1.0836490023192407, 1.0836490023192409),
        std::pair(3.6891367635695325, 3.689136763569533)}) {
    BOOST_TEST(one < two);
    BOOST_TEST(ids(one, two) == "[3,4]");
  }
}

BOOST_AUTO_TEST_CASE(a_banned_token_is_not_taken_from_a_text) {
  const unigram by =
    read_model({{"<unk>", 0.0}, {"</s>", 0.0}, {"s", -1.0}}, 0, false);
  const std::vector<bool> banned = {true, true, false};
  BOOST_TEST(encoded(by, "s</s>") == "[2,1]");
  BOOST_TEST(encoded(by, "s</s>", &banned) == "[2,0,2,0]");
}

BOOST_AUTO_TEST_CASE(long_texts_of_one_letter_take_linear_time) {
  scored some = {{"<unk>", 0.0}};
  for (std::size_t n = 1; n <= 64; ++n)
    some.emplace_back(std::string(n, 'a'), -double(n % 7));
  const unigram by = read_model(some, 0, false);
  word_cache cache;
  ids_list ids;
  BOOST_TEST(bool(by.encode(std::string(2'000'000, 'a'), cache, ids)));
  BOOST_TEST(ids.size() >= 2'000'000u / 64);
}

BOOST_AUTO_TEST_CASE(a_token_that_would_cost_too_much_is_refused) {
  std::string fault;
  const std::string token(searched_token_bytes_max + 1, 'a');
  const json file =
    json::parse(R"({"vocab":[["<unk>",0],[")" + token + R"(",0]]})");
  (void)unigram::parse(json_view(file, "model", fault));
  BOOST_TEST(fault.starts_with("model.vocab[1]"), fault);
  BOOST_TEST(fault.find("1024 bytes") != std::string::npos, fault);
}

BOOST_AUTO_TEST_SUITE_END()
