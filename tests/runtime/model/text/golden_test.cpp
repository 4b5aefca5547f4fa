// tests/runtime/model/text/golden_test.cpp -- the same ids and texts as the
// package `tokenizers` has.
//
// tests/golden/make_tokenizer_goldens.py trained the vocabularies with each
// family's own pipeline and encoded the samples.
#include "tests/runtime/model/text/golden.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(golden)

namespace core = shoal::core;
namespace data = boost::unit_test::data;
namespace model = shoal::model;
using namespace shoal::model::text;
using namespace shoal::tests;
using nlohmann::json;

namespace {

using ids_list = std::vector<token_id>;

std::string shown(const ids_list& ids) {
  return json(ids).dump();
}

/// The first and the last three.
ids_list ends(const ids_list& ids) {
  ids_list out(ids.begin(),
               ids.begin() + std::min<std::ptrdiff_t>(3, std::ssize(ids)));
  out.insert(out.end(),
             ids.end() - std::min<std::ptrdiff_t>(3, std::ssize(ids)),
             ids.end());
  return out;
}

void check_decoded(const hf_tokenizer& tokenizer, const ids_list& ids,
                   const json& row) {
  const std::string text = row["text"];
  const std::string all = row.value("all", text);
  BOOST_TEST(tokenizer.decode(ids) == text);
  BOOST_TEST(tokenizer.decode(ids, false) == all);
}

} // namespace

BOOST_DATA_TEST_CASE(samples_give_the_same_ids, data::make(golden_names),
                     name) {
  const auto tokenizer = golden_tokenizer(name);
  const json want = file_json(tokenizer_folder() / name / "golden.json");
  const auto texts = samples();
  BOOST_REQUIRE(want["samples"].size() == texts.size());
  encoder each(tokenizer);
  for (int round = 0; round < 2; ++round) { // the second from the cache
    for (std::size_t i = 0; i < texts.size(); ++i) {
      BOOST_TEST_CONTEXT("sample " << i << ": " << texts[i]) {
        const json& row = want["samples"][i];
        auto plain = each.encode(texts[i], false);
        auto around = each.encode(texts[i]);
        BOOST_REQUIRE(plain);
        BOOST_REQUIRE(around);
        BOOST_TEST(shown(*plain) == shown(row["ids"].get<ids_list>()));
        BOOST_TEST(shown(ends(*around)) == row["around"].dump());
        check_decoded(tokenizer, *around, row);
      }
    }
  }
  BOOST_TEST(tokenizer.id_count() == want["id_count"].get<std::size_t>());
}

// What a token adds behind other text is what decoding shows, where that is whole
// characters.
BOOST_DATA_TEST_CASE(tokens_have_the_bytes_that_they_add,
                     data::make(golden_names), name) {
  const auto tokenizer = golden_tokenizer(name);
  const auto bytes = tokenizer.token_bytes();
  if (std::string_view(name) == "unknowns") { // joins texts by spaces
    BOOST_TEST(!bytes);
    return;
  }
  if (!bytes)
    BOOST_FAIL(bytes.message());
  BOOST_TEST(bytes->size() == tokenizer.id_count());
  const auto first = tokenizer.token_bytes(true);
  BOOST_REQUIRE(first);
  encoder each(tokenizer);
  const auto letter = each.encode("a", false);
  BOOST_REQUIRE(letter);
  for (const std::string& text : samples()) {
    const auto ids = each.encode(text, false);
    BOOST_REQUIRE(ids);
    ids_list behind = *letter;
    behind.insert(behind.end(), ids->begin(), ids->end());
    std::string joined = tokenizer.decode(*letter);
    for (const token_id id : *ids)
      joined += (*bytes)[static_cast<std::size_t>(id)];
    BOOST_TEST_CONTEXT(text)
    BOOST_TEST(joined == tokenizer.decode(behind));
    joined.clear();
    bool begun = false; // by one that is shown
    for (const token_id id : *ids) {
      joined += (begun ? *bytes : *first)[static_cast<std::size_t>(id)];
      begun = begun || !tokenizer.is_special(id);
    }
    BOOST_TEST_CONTEXT(text)
    BOOST_TEST(joined == tokenizer.decode(*ids));
  }
}

BOOST_DATA_TEST_CASE(ids_at_random_give_the_same_text, data::make(golden_names),
                     name) {
  const auto tokenizer = golden_tokenizer(name);
  const json want = file_json(tokenizer_folder() / name / "golden.json");
  for (const json& row : want["broken"]) {
    BOOST_TEST_CONTEXT(row["ids"].dump())
    check_decoded(tokenizer, row["ids"].get<ids_list>(), row);
  }
}

BOOST_AUTO_TEST_CASE(text_of_byte_level_families_comes_back) {
  // qwen2 would give the composed characters, the rest is the sample itself.
  for (const char* name : {"gpt2", "llama3", "gemma2"}) {
    const auto tokenizer = golden_tokenizer(name);
    encoder each(tokenizer);
    for (const std::string text :
         {"plain", " two  spaces ", "caf\xC3\xA9 \xF0\x9F\x98\x80\n\t\0x"}) {
      const auto ids = each.encode(text, false);
      BOOST_REQUIRE(ids);
      BOOST_TEST(tokenizer.decode(*ids) == text);
    }
  }
}

/// A client's text makes no special token, whatever it says.
BOOST_AUTO_TEST_CASE(a_special_token_in_a_foreign_part_is_text) {
  std::size_t seen = 0;
  for (const char* name : golden_names) {
    const auto by = golden_tokenizer(name);
    const auto file = file_json(tokenizer_folder() / name / "tokenizer.json");
    const json& its_model = file["model"];
    const json unk =
      its_model.contains("unk_id")
        ? its_model["vocab"][its_model["unk_id"].get<std::size_t>()][0]
        : its_model["unk_token"];
    for (const auto& token : file["added_tokens"]) {
      if (!token["special"].get<bool>())
        continue;
      const std::string content = token["content"];
      const auto id = token["id"].get<token_id>();
      const std::string text = "ab" + content + "cd" + content + "ef";
      const std::size_t second = 4 + content.size();
      const auto count = [&](std::vector<shoal::core::text_range> foreign) {
        auto ids = encoder(by).encode(text, false, foreign);
        BOOST_REQUIRE(bool(ids));
        return std::ranges::count(*ids, id);
      };
      BOOST_TEST_CONTEXT(name << " " << content) {
        if (count({}) != 2)
          continue; // it is no token within a word
        ++seen;
        if (content != unk) // which any text without tokens becomes
          BOOST_TEST(count({{0, text.size()}}) == 0);
        if (content == unk && name == std::string_view("words"))
          continue;                       // as whatever is left of its text
        BOOST_TEST(count({{0, 3}}) == 1); // its first byte
        BOOST_TEST(count({{second - 3, second - 2}}) == 1); // its last byte
        BOOST_TEST(count({{second, second + 1}}) == 1);
        if (!token["normalized"].get<bool>())
          BOOST_TEST(count({{0, 2}, {second - 2, second}}) == 2); // beside it
      }
    }
  }
  BOOST_TEST(seen >= 10u);
}

BOOST_AUTO_TEST_SUITE_END()
