// tests/runtime/model/text/models/bpe_test.cpp -- merges against a plain loop.
//
// Vocabularies and texts from a seed; the oracle looks for the lowest rank,
// leftmost first, over the whole piece again and again.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/models/bpe.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

BOOST_AUTO_TEST_SUITE(merging)

using namespace shoal::model::text;
using nlohmann::json;

namespace {

/// As from a file: numbers of an initialiser would be signed.
bpe read_model(const json& model, std::string& fault) {
  const json file = json::parse(model.dump());
  std::vector<std::string> notices;
  return bpe::parse(json_view(file, "model", fault), notices);
}

struct tiny {
  json file;
  std::vector<std::pair<std::string, std::string>> merges;
  std::map<std::string, token_id> vocabulary;
};

tiny make_tiny(std::mt19937& random, bool byte_fallback) {
  tiny made;
  std::vector<std::string> tokens = {"<unk>", "a", "b", "c", "\xC3\xA9"};
  if (byte_fallback)
    for (const char* code : {"<0x64>", "<0xE2>", "<0x82>", "<0xAC>"})
      tokens.push_back(code);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    made.vocabulary[tokens[i]] = static_cast<token_id>(i);
  const std::size_t count = 1 + random() % 24;
  if (random() % 3 != 0) // else bytes and <unk> may merge too
    tokens = {"a", "b", "c", "\xC3\xA9"};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string left = tokens[random() % tokens.size()];
    const std::string right = tokens[random() % tokens.size()];
    const std::string both = left + right;
    if (both.size() > 24)
      continue;
    if (made.vocabulary
          .emplace(both, static_cast<token_id>(made.vocabulary.size()))
          .second)
      tokens.push_back(both);
    made.merges.emplace_back(left, right);
  }
  made.file = {{"type", "BPE"},
               {"unk_token", "<unk>"},
               {"fuse_unk", random() % 2 == 0},
               {"byte_fallback", byte_fallback},
               {"vocab", made.vocabulary},
               {"merges", made.merges}};
  return made;
}

/// The symbols of a text, as a sentence of the format says.
std::vector<token_id> symbols(const tiny& t, const std::string& text) {
  std::vector<token_id> out;
  bool in_unknown = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    shoal::core::next_code(text, at);
    const std::string one = text.substr(first, at - first);
    auto it = t.vocabulary.find(one);
    if (it != t.vocabulary.end()) {
      out.push_back(it->second);
      in_unknown = false;
    } else if (t.file["byte_fallback"].get<bool>()
               && (one == "d" || one == "\xE2\x82\xAC")) {
      const char* codes[] = {"<0xE2>", "<0x82>", "<0xAC>"};
      if (one == "d")
        out.push_back(t.vocabulary.at("<0x64>"));
      else
        for (const char* code : codes)
          out.push_back(t.vocabulary.at(code));
    } else if (!in_unknown || !t.file["fuse_unk"].get<bool>()) {
      out.push_back(t.vocabulary.at("<unk>"));
      in_unknown = true;
    }
  }
  return out;
}

std::vector<token_id> plainly(const tiny& t, const std::string& text) {
  std::map<std::pair<token_id, token_id>, std::pair<std::size_t, token_id>>
    table;
  for (std::size_t i = 0; i < t.merges.size(); ++i) {
    const auto& [left, right] = t.merges[i];
    table[{t.vocabulary.at(left), t.vocabulary.at(right)}] = {
      i, t.vocabulary.at(left + right)};
  }
  auto ids = symbols(t, text);
  for (;;) {
    std::size_t best = ids.size();
    std::pair<std::size_t, token_id> what;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      auto it = table.find({ids[i], ids[i + 1]});
      if (it != table.end()
          && (best == ids.size() || it->second.first < what.first)) {
        best = i;
        what = it->second;
      }
    }
    if (best == ids.size())
      return ids;
    ids[best] = what.second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(equals_a_plain_loop) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const bool byte_fallback = seed % 2 == 1;
    const tiny t = make_tiny(random, byte_fallback);
    std::string fault;
    const bpe model = read_model(t.file, fault);
    BOOST_REQUIRE_EQUAL(fault, "");
    word_cache cache;
    for (int text_count = 0; text_count < 12; ++text_count) {
      // Unknown characters wait behind bytes (bpe.cpp), which the oracle does
      // not do: with byte_fallback every character has a token.
      const std::vector<std::string> alphabet =
        byte_fallback
          ? std::vector<std::string>{"a",        "b", "c",
                                     "\xC3\xA9", "d", "\xE2\x82\xAC"}
          : std::vector<std::string>{"a", "b", "c", "\xC3\xA9", "x", "y"};
      std::string text;
      const std::size_t length = random() % 150;
      for (std::size_t i = 0; i < length; ++i)
        text += alphabet[random() % alphabet.size()];
      std::vector<token_id> ids;
      BOOST_REQUIRE(model.encode(text, cache, ids));
      const auto want = plainly(t, text);
      BOOST_TEST_CONTEXT("seed " << seed << ", text " << text << ", model "
                                 << t.file.dump())
      BOOST_TEST(ids == want, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_word_of_a_million_characters_is_no_matter) {
  json file = {{"vocab", {{"a", 0}, {"aa", 1}, {"aaaa", 2}}},
               {"merges", {"a a", "aa aa"}}};
  std::string fault;
  const bpe model = read_model(file, fault);
  BOOST_REQUIRE_EQUAL(fault, "");
  word_cache cache;
  std::vector<token_id> ids;
  BOOST_REQUIRE(model.encode(std::string((1u << 20) + 3, 'a'), cache, ids));
  BOOST_TEST(ids.size() == (1u << 18) + 2);
  BOOST_TEST(ids.front() == 2);
  BOOST_TEST(ids.back() == 0);
}

BOOST_AUTO_TEST_CASE(a_character_without_token_is_named) {
  json file = {
    {"vocab", {{"a", 0}}}, {"merges", json::array()}, {"unk_token", "<unk>"}};
  std::string fault;
  bpe model = read_model(file, fault);
  BOOST_REQUIRE_EQUAL(fault, "");
  word_cache cache;
  std::vector<token_id> ids;
  const auto refused = model.encode("ab", cache, ids);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.message().find("'b'") != std::string::npos);
  file["unk_token"] = nullptr; // then it is left out
  model = read_model(file, fault);
  ids.clear();
  BOOST_REQUIRE(model.encode("ab", cache, ids));
  BOOST_TEST(ids.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
