// tests/runtime/model/text/stream_test.cpp -- ids decoded one by one.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/token_decoder.hpp"
#include "tests/runtime/model/text/golden.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

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

BOOST_AUTO_TEST_SUITE(stream)

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
