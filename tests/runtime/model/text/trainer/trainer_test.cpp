// tests/runtime/model/text/trainer/trainer_test.cpp -- tokenizers learned from text.
//
// The golden file is what the package `tokenizers` learns from the same texts.
// Random texts are compared with a trainer that counts all pairs again before
// each merge.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/byte_level.hpp"
#include "runtime/model/text/patterns/unicode.hpp"
#include "runtime/model/text/pre_tokenizer.hpp"
#include "runtime/model/text/trainer/bpe_trainer.hpp"
#include "runtime/model/text/trainer/word_counts.hpp"
#include "tests/runtime/model/text/golden.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>

BOOST_AUTO_TEST_SUITE(trainer)

using namespace shoal::model;
using namespace shoal::model::text;
using namespace shoal::tests;
using nlohmann::json;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

bpe_description
learn(const std::vector<std::string>& texts, const bpe_training& options) {
  auto made = train_bpe(views(texts), options);
  if (!made)
    throw std::runtime_error(made.message());
  return *made;
}

/// Merges the texts' words by counting all pairs anew each time.
std::vector<std::pair<std::string, std::string>>
plain_merges(const std::vector<std::string>& texts, std::size_t tokens,
             std::uint64_t count_min) {
  const auto counts = count_words(views(texts), gpt2_pattern, 1, {});
  std::map<std::string, std::size_t> ids; // by the order of characters
  std::vector<std::pair<std::vector<std::string>, std::uint64_t>> words;
  for (const auto& [word, count] : *counts) {
    auto& symbols = words.emplace_back(std::vector<std::string>(), count).first;
    for (const char c : word)
      symbols.push_back(to_byte_level(std::string(1, c)));
  }
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b)
    bytes.push_back(to_byte_level(std::string(1, char(b))));
  std::ranges::sort(bytes, {}, [](const std::string& s) {
    std::size_t at = 0;
    return shoal::core::next_code(s, at);
  });
  for (const std::string& b : bytes)
    ids.emplace(b, 1 + ids.size());
  std::vector<std::pair<std::string, std::string>> merges;
  while (ids.size() + 1 < tokens) {
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> pairs;
    std::map<std::pair<std::size_t, std::size_t>,
             std::pair<std::string, std::string>>
      names;
    for (const auto& [word, count] : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        const std::pair key(ids.at(word[i]), ids.at(word[i + 1]));
        pairs[key] += count;
        names[key] = {word[i], word[i + 1]};
      }
    const auto best = std::ranges::max_element(
      pairs, [](const auto& a, const auto& b) { // the first of the greatest
        return a.second < b.second;
      });
    if (best == pairs.end() || best->second < count_min)
      break;
    const auto [left, right] = names.at(best->first);
    merges.emplace_back(left, right);
    ids.emplace(left + right, 1 + ids.size());
    for (auto& [word, count] : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == left && word[i + 1] == right) {
          word[i] += right;
          word.erase(word.begin() + std::ptrdiff_t(i) + 1);
        }
  }
  return merges;
}

} // namespace

void check_file(const char* name, word_rules words) {
  const auto folder = tokenizer_folder() / "trained";
  const std::vector<std::string> texts = file_json(folder / "texts.json");
  for (const unsigned threads : {1u, 2u}) {
    bpe_training options;
    options.words = words;
    options.vocab_size = 700;
    options.threads = threads;
    const std::string made = to_json(learn(texts, options));
    BOOST_TEST((json::parse(made) == file_json(folder / name)));
    const auto read = hf_tokenizer::parse(
      made, tokenizer_config_json(std::string(begin_of_text), 256));
    BOOST_REQUIRE(read);
    BOOST_TEST(read->notices().empty());
    BOOST_TEST(read->id_count() == 700u);
    BOOST_TEST(*read->bos() == 0);
    BOOST_TEST(*read->eos() == 0);
    encoder each(*read);
    for (const std::string& text : texts) {
      const auto ids = each.encode(text);
      BOOST_REQUIRE(ids);
      BOOST_TEST(ids->front() == 0);
      const auto normal =
        words == word_rules::gpt2 ? text : *normalise(text, normal_form::nfc);
      BOOST_TEST(read->decode(*ids, false)
                 == std::string(begin_of_text) + normal);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_file_is_that_of_the_package) {
  check_file("tokenizer.json", word_rules::gpt2);
}

BOOST_AUTO_TEST_CASE(qwen2_has_words_of_its_own) {
  check_file("qwen2.json", word_rules::qwen2);
}

BOOST_AUTO_TEST_CASE(merges_are_those_of_counting_all_pairs_again) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937 random(seed);
      // Few letters: many equal counts, and letters beside themselves.
      const std::string letters = seed % 3 == 0 ? "aab " : "abcd \n";
      std::vector<std::string> texts(1 + random() % 4);
      for (std::string& text : texts)
        for (std::size_t i = random() % 400; i > 0; --i)
          text += random() % 50 == 0 ? "\xC3\xA9\xFF"[random() % 3]
                                     : letters[random() % letters.size()];
      for (std::string& text : texts)
        text = shoal::core::replace_broken(text);
      bpe_training options;
      options.vocab_size = 257 + random() % 60;
      options.count_min = random() % 4;
      options.threads = 1 + seed % 2;
      const auto made = learn(texts, options);
      std::vector<std::pair<std::string, std::string>> merges;
      for (const auto& [left, right] : made.merges)
        merges.emplace_back(made.tokens[left], made.tokens[right]);
      BOOST_TEST(
        (merges
         == plain_merges(texts, options.vocab_size,
                         std::max<std::uint64_t>(options.count_min, 1))));
      BOOST_TEST(made.tokens.size() == 257 + made.merges.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_text_may_be_cut_for_counting) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const auto pattern =
      regex::compile(seed % 2 == 0 ? gpt2_pattern : qwen2_pattern);
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937 random(seed);
      std::string text;
      for (int i = 0; i < 300; ++i)
        for (const std::string bit : {"ab", "\n", " ", "\t", "'s", "12",
                                      "\xC3\xA9", "\xE3\x80\x80", "."})
          if (random() % 4 == 0)
            text += bit;
      auto words = [&](std::string_view part) {
        std::vector<text_part> found;
        BOOST_REQUIRE(pattern->find(part, found));
        std::vector<std::string> out;
        for (const text_part& w : found)
          out.emplace_back(part.substr(w.first, w.last - w.first));
        return out;
      };
      const auto parts = cut_between_words(text, 1 + random() % 20);
      BOOST_TEST(parts.size() > 1u);
      std::vector<std::string> cut;
      for (const std::string_view part : parts)
        std::ranges::move(words(part), std::back_inserter(cut));
      BOOST_TEST(cut == words(text), boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(little_text_gives_few_tokens_and_it_can_be_stopped) {
  BOOST_TEST(learn({}, {}).tokens.size() == trained_tokens_min);
  BOOST_TEST(learn({"a", "b"}, {}).merges.empty());
  const auto same = learn({"x\xFFy x\xFFy"}, {});
  BOOST_TEST(
    (same.merges == learn({"x\xEF\xBF\xBDy x\xEF\xBF\xBDy"}, {}).merges));
  bpe_training options;
  options.told = [](std::string_view what, std::uint64_t, std::uint64_t) {
    return what != "training the tokenizer";
  };
  const std::vector<std::string_view> texts{"the the"};
  const auto stopped = train_bpe(texts, options);
  BOOST_REQUIRE(!stopped);
  BOOST_TEST(stopped.message() == "stopped while training the tokenizer");
}

BOOST_AUTO_TEST_SUITE_END()
