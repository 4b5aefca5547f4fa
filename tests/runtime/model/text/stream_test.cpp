// tests/runtime/model/text/stream_test.cpp -- ids decoded one by one.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/decode/token_places.hpp"
#include "runtime/model/text/token_decoder.hpp"
#include "tests/runtime/model/text/golden.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(stream)

namespace data = boost::unit_test::data;
using namespace shoal::model::text;
using namespace shoal::tests;

namespace {

/// All that a stream gives; checks that each part is whole characters.
std::string
streamed(const hf_tokenizer& tokenizer, const std::vector<token_id>& ids) {
  decode_stream stream(tokenizer);
  std::string all;
  for (const token_id id : ids) {
    const std::string part = stream.push(id);
    BOOST_TEST(shoal::core::is_utf8(part));
    all += part;
  }
  const std::string last = stream.finish();
  BOOST_TEST(shoal::core::is_utf8(last));
  return all + last;
}

token_decoder decoder_of(const char* json) {
  const auto parsed = nlohmann::json::parse(json);
  std::string fault;
  auto made = token_decoder::parse(json_view(parsed, "decoder", fault));
  BOOST_REQUIRE_EQUAL(fault, "");
  return made;
}

} // namespace

BOOST_DATA_TEST_CASE(a_stream_gives_the_same_as_decode,
                     data::make(golden_names), name) {
  const auto tokenizer = golden_tokenizer(name);
  encoder each(tokenizer);
  for (const std::string& text : samples()) {
    const auto ids = each.encode(text);
    BOOST_REQUIRE(ids);
    BOOST_TEST_CONTEXT(text)
    BOOST_TEST(streamed(tokenizer, *ids) == tokenizer.decode(*ids));
  }
}

/// The reference: the bytes of all tokens one behind the other.
BOOST_DATA_TEST_CASE(a_token_begins_where_its_first_character_does,
                     data::make(golden_names), name) {
  const shoal::model::tokenizer by(golden_tokenizer(name));
  encoder each(*by.file());
  std::size_t compared = 0;
  for (const std::string& text : samples()) {
    const auto ids = each.encode(text);
    BOOST_REQUIRE(ids);
    std::string all;
    std::vector<std::size_t> begins; // bytes
    bool first = true;
    for (const token_id id : *ids) {
      begins.push_back(all.size());
      if (by.file()->is_special(id))
        continue;
      all += by.piece(id, first);
      first = first && by.piece(id).empty();
    }
    if (all != by.file()->decode(*ids))
      continue; // its decoder looks at more than a token
    ++compared;
    shoal::model::token_places places(&by);
    const auto goes_on = [&](std::size_t at) {
      return at < all.size() && (all[at] & 0xC0) == 0x80;
    };
    for (std::size_t i = 0; i < ids->size(); ++i) {
      std::size_t expected = 0;
      for (std::size_t at = 0; at < begins[i]; ++at)
        expected += goes_on(at) ? 0 : 1;
      expected -= goes_on(begins[i]) ? 1 : 0;
      BOOST_TEST_CONTEXT(text << ", token " << i)
      BOOST_TEST(places.push((*ids)[i]) == expected);
    }
  }
  BOOST_TEST((compared > 0) == bool(by.token_bytes()));
}

BOOST_AUTO_TEST_CASE(the_piece_of_a_special_token_is_its_text) {
  const shoal::model::tokenizer by(golden_tokenizer("llama2"));
  BOOST_TEST(by.piece(*by.file()->id_of("</s>")) == "</s>");
  BOOST_TEST(by.piece(*by.file()->id_of("<0xE2>")) == "\xe2");
  BOOST_TEST(by.piece(*by.file()->id_of("\u2581the")) == " the");
  BOOST_TEST(by.piece(*by.file()->id_of("\u2581the"), true) == "the");
  BOOST_TEST(by.piece(1 << 30) == "");
  const shoal::model::tokenizer bytes;
  BOOST_TEST(bytes.piece(0xe2) == "\xe2");
  BOOST_TEST(bytes.piece(256) == "");
}

/// Its decoder takes one space from the beginning of a text.
BOOST_AUTO_TEST_CASE(a_space_that_is_left_out_is_a_text_s_first_token) {
  const shoal::model::tokenizer by(golden_tokenizer("llama2"));
  shoal::model::token_places places(&by);
  const auto space = *by.file()->id_of("\u2581");
  const auto the = *by.file()->id_of("\u2581the");
  const std::vector<token_id> ids{space, the, the};
  BOOST_TEST(by.file()->decode(ids) == " the the");
  BOOST_TEST(places.push(space) == 0u);
  BOOST_TEST(places.push(the) == 0u);
  BOOST_TEST(places.push(the) == 4u);
}

BOOST_AUTO_TEST_CASE(bytes_do_not_go_on_with_the_prompt_s_last_character) {
  const shoal::model::tokenizer bytes;
  shoal::model::token_places places(&bytes);
  places.after(std::vector<token_id>{0xe2});
  BOOST_TEST(places.push(0x96) == 0u);
  BOOST_TEST(places.push(0x81) == 1u);
  BOOST_TEST(places.push('a') == 2u);
}

BOOST_AUTO_TEST_CASE(a_character_comes_when_its_last_byte_does) {
  const auto tokenizer = golden_tokenizer("llama2");
  decode_stream stream(tokenizer);
  BOOST_TEST(stream.push(*tokenizer.id_of("<0xF0>")) == "");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0x9F>")) == "");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0x98>")) == "");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0x80>")) == "\xF0\x9F\x98\x80");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0xC3>")) == "");
  BOOST_TEST(stream.push(*tokenizer.id_of("a"))
             == "\xEF\xBF\xBD"
                "a");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0xE2>")) == "");
  BOOST_TEST(stream.push(*tokenizer.id_of("<0x82>")) == "");
  BOOST_TEST(stream.finish() == "\xEF\xBF\xBD\xEF\xBF\xBD");
}

BOOST_DATA_TEST_CASE(any_ids_give_whole_characters, data::make(golden_names),
                     name) {
  const auto tokenizer = golden_tokenizer(name);
  const nlohmann::json want =
    file_json(tokenizer_folder() / name / "golden.json");
  const std::string family = name;
  for (const nlohmann::json& row : want["broken"]) {
    const auto ids = row["ids"].get<std::vector<token_id>>();
    const std::string text = streamed(tokenizer, ids);
    // Runs of bytes that break are shown differently (token_decoder.hpp).
    if (family == "gpt2" || family == "llama3" || family == "qwen2")
      BOOST_TEST(text == row["text"].get<std::string>());
  }
}

// Decoded as a whole, a run of bytes is one text, the first one here: of it all
// marks go.
BOOST_AUTO_TEST_CASE(a_run_of_bytes_at_the_start_is_one_text) {
  const auto decoder = decoder_of(
    R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},
        {"type":"Metaspace","replacement":"\u2581"}]})");
  const std::vector<std::string> tokens = {
    "<0xE2>", "<0x96>",  "<0x81>", "<0xE2>", "<0x96>", "<0x81>",
    "<0x61>", "\u2581b", "<0xE2>", "<0x96>", "<0x81>"};
  text_stream parts(decoder);
  std::string all;
  for (const std::string& token : tokens)
    all += parts.push(token);
  BOOST_TEST(all + parts.finish() == "a b ");
  BOOST_TEST(decoder.decode(tokens) == "a b ");
}

// A rule that looks at whole words can say nothing of a part of a character.
BOOST_AUTO_TEST_CASE(word_pieces_after_bytes_come_at_the_end) {
  const auto decoder = decoder_of(
    R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},
        {"type":"WordPiece","prefix":"##","cleanup":true}]})");
  BOOST_TEST(!decoder.is_by_token());
  const std::vector<std::string> tokens = {"a", "<0xC3>", "<0xA9>", "."};
  text_stream parts(decoder);
  std::string all;
  for (const std::string& token : tokens)
    all += parts.push(token);
  BOOST_TEST(all + parts.finish() == decoder.decode(tokens));
  BOOST_TEST(decoder.decode(tokens) == "a \u00e9.");
}

BOOST_AUTO_TEST_CASE(word_pieces_come_token_by_token) {
  const auto decoder =
    decoder_of(R"({"type":"WordPiece","prefix":"##","cleanup":true})");
  text_stream parts(decoder);
  BOOST_TEST(parts.push("##don") == "##don"); // the first is taken as it is
  BOOST_TEST(parts.push("'") == " '");
  BOOST_TEST(parts.push("##t") == "t");
  BOOST_TEST(parts.push(".") == ".");
  BOOST_TEST(parts.push("do not") == " don't");
  BOOST_TEST(decoder.token_bytes("do not") == " don't");
  BOOST_TEST(decoder.token_bytes("##t") == "t");
  BOOST_TEST(decoder.token_bytes("do not", true) == "do not");
  BOOST_TEST(decoder.token_bytes("##t", true) == "##t");
}

BOOST_AUTO_TEST_CASE(strip_takes_from_the_start_of_the_text_only) {
  const auto decoder = decoder_of(
    R"({"type":"Sequence","decoders":[{"type":"Fuse"},
        {"type":"Strip","content":" ","start":2,"stop":0}]})");
  text_stream parts(decoder);
  BOOST_TEST(parts.push(" ") == "");
  BOOST_TEST(parts.push("  a") == " a");
  BOOST_TEST(parts.push(" b") == " b");
  BOOST_TEST(parts.finish() == "");
}

BOOST_AUTO_TEST_CASE(text_that_only_the_end_decides_comes_at_the_end) {
  const auto decoder = decoder_of(
    R"({"type":"Sequence","decoders":[{"type":"Fuse"},
        {"type":"Strip","content":"!","start":0,"stop":1}]})");
  text_stream parts(decoder);
  BOOST_TEST(parts.push("a!") == "");
  BOOST_TEST(parts.push("b!") == "");
  BOOST_TEST(parts.finish() == "a!b");
}

BOOST_AUTO_TEST_SUITE_END()
