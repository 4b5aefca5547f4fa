// tests/runtime/model/text/file_test.cpp -- files that refer to missing parts,
// and tokenizer_config.json.
#include "runtime/core/text/shown.hpp"
#include "runtime/model/text/models/json_view.hpp"
#include "tests/runtime/model/text/golden.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(files)

using namespace shoal::model::text;
using namespace shoal::tests;
using nlohmann::json;

namespace {

json minimal() {
  return json::parse(R"({"version":"1.0","added_tokens":[
    {"id":2,"content":"<s>","special":true},
    {"id":3,"content":"</s>","special":true}],
    "normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,
    "model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})");
}

std::string fault_of(const json& file, const std::string& config = {}) {
  const auto made = hf_tokenizer::parse(file.dump(), config, "DIR/t.json");
  return made ? std::string("none") : made.message();
}

/// A change of the smallest file, and words that the fault must have.
struct lie {
  const char* at;
  const char* value;
  std::vector<const char*> words;
};

const std::vector<lie> lies = {
  {"/version", "\"2.0\"", {"version", "1.0"}},
  {"/normalizer", "[]", {"normalizer.type"}},
  {"/normalizer", R"({"type":"ByteLevel"})", {"normalizer.type", "ByteLevel"}},
  {"/normalizer",
   R"({"type":"Precompiled"})",
   {"normalizer.precompiled_charsmap", "not a text"}},
  {"/normalizer",
   R"({"type":"Precompiled","precompiled_charsmap":"AA=A"})",
   {"normalizer.precompiled_charsmap", "base 64"}},
  {"/normalizer",
   R"({"type":"Precompiled","precompiled_charsmap":"AAQAAA=="})",
   {"normalizer.precompiled_charsmap", "1024 bytes"}},
  {"/normalizer",
   R"({"type":"BertNormalizer","clean_text":true,
       "handle_chinese_chars":true,"strip_accents":null})",
   {"normalizer.lowercase"}},
  {"/pre_tokenizer",
   R"({"type":"Punctuation","behavior":"Odd"})",
   {"pre_tokenizer.behavior"}},
  {"/pre_tokenizer",
   R"({"type":"CharDelimiterSplit","delimiter":"ab"})",
   {"pre_tokenizer.delimiter"}},
  {"/normalizer",
   R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Bert"}]})",
   {"normalizer.normalizers[1].type", "Bert"}},
  {"/normalizer",
   R"({"type":"Replace","pattern":{},"content":""})",
   {"normalizer.pattern"}},
  {"/normalizer",
   R"({"type":"Replace","pattern":{"Regex":"(a"},"content":""})",
   {"normalizer.pattern.Regex", "(a"}},
  {"/normalizer",
   R"({"type":"Strip","strip_left":1,"strip_right":true})",
   {"strip_left"}},
  {"/pre_tokenizer", R"({"type":"UnicodeScripts"})", {"UnicodeScripts"}},
  {"/pre_tokenizer",
   R"({"type":"Split","pattern":{"String":"a"},"behavior":"Odd"})",
   {"pre_tokenizer.behavior"}},
  {"/pre_tokenizer",
   R"({"type":"Split","pattern":{"Regex":"\\b"},"behavior":"Isolated"})",
   {"pre_tokenizer.pattern.Regex", "\\b"}},
  {"/pre_tokenizer",
   R"({"type":"Metaspace","replacement":"xy"})",
   {"pre_tokenizer.replacement"}},
  {"/pre_tokenizer", R"({"type":"ByteLevel"})", {"add_prefix_space"}},
  {"/post_processor", R"({"type":"Other"})", {"post_processor.type", "Other"}},
  {"/post_processor",
   R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},
       {"Sequence":{"id":"A"}}],"special_tokens":{}})",
   {"special_tokens.<s>.ids"}},
  {"/post_processor",
   R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},
       {"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[4]}}})",
   {"special_tokens.x.ids[0]", "3"}},
  {"/post_processor",
   R"({"type":"TemplateProcessing","single":[]})",
   {"post_processor.single"}},
  {"/decoder", R"({"type":"CTC"})", {"decoder.type", "CTC"}},
  {"/decoder", R"({"type":"WordPiece"})", {"decoder.prefix"}},
  {"/decoder",
   R"({"type":"Strip","content":"","start":0,"stop":0})",
   {"decoder.content"}},
  {"/model/type", "\"WordLevel\"", {"model.type", "WordLevel", "WordPiece"}},
  {"/model/type", "\"Unigram\"", {"model.vocab", "not an array"}},
  {"/model/type", "\"WordPiece\"", {"model.unk_token"}},
  {"/model",
   R"({"type":"Unigram","vocab":[]})",
   {"model.vocab", "not an array with tokens"}},
  {"/model", R"({"vocab":[["a",0]],"unk_id":1})", {"model.unk_id", "up to 0"}},
  {"/model", R"({"vocab":[["a",0]],"unk_id":-1})", {"model.unk_id"}},
  {"/model", R"({"vocab":[["a",0]],"unk_id":0.5})", {"model.unk_id"}},
  {"/model",
   R"({"type":"Unigram","vocab":[["a",0],["b"]]})",
   {"model.vocab[1]", "its score"}},
  {"/model",
   R"({"type":"Unigram","vocab":[["a",null]]})",
   {"model.vocab[0]", "its score"}},
  {"/model",
   R"({"type":"Unigram","vocab":[["a",0],["b",-1e300]]})",
   {"model.vocab[1]", "\"b\"", "1e100"}},
  {"/model",
   R"({"type":"Unigram","vocab":[["a",0],["b",1],["a",2]]})",
   {"model.vocab[2]", "\"a\"", "model.vocab[0]"}},
  {"/model",
   R"({"type":"Unigram","vocab":[["a",0]],"byte_fallback":1})",
   {"model.byte_fallback"}},
  {"/model",
   R"({"type":"WordPiece","vocab":{"a":0},"unk_token":"a",
       "continuing_subword_prefix":"##"})",
   {"model.max_input_chars_per_word"}},
  {"/model",
   R"({"type":"WordPiece","vocab":{"a":0,"b":0},"unk_token":"a",
       "continuing_subword_prefix":"##","max_input_chars_per_word":9})",
   {"model.vocab", "same id"}},
  {"/model/vocab", "{}", {"model.vocab"}},
  {"/model/vocab/b", "0", {"model.vocab", "\"a\"", "\"b\"", "same id"}},
  {"/model/vocab/b", "-1", {"\"b\""}},
  {"/model/vocab/b", "4000000", {"\"b\""}},
  {"/model/vocab/b", "\"1\"", {"\"b\""}},
  {"/model/merges", R"([["a","b"]])", {"model.merges[0]", "\"ab\""}},
  {"/model/merges", R"(["a  b"])", {"model.merges[0]"}},
  {"/model/merges", R"([["a"]])", {"model.merges[0]"}},
  {"/model/merges", R"([["a",1]])", {"model.merges[0]"}},
  {"/model/merges", "{}", {"model.merges"}},
  {"/model/end_of_word_suffix", "\"</w>\"", {"model.end_of_word_suffix"}},
  {"/model/dropout", "\"much\"", {"model.dropout"}},
  {"/model/byte_fallback", "1", {"model.byte_fallback"}},
  {"/added_tokens/0/id", "7", {"added_tokens[0].id", "7", "2"}},
  {"/added_tokens/1/content", "\"<s>\"", {"added_tokens[1].content"}},
  {"/added_tokens/1/content", "\"\"", {"added_tokens[1].content"}},
  {"/added_tokens", "{}", {"added_tokens"}},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_lie_is_refused_by_file_and_key) {
  BOOST_REQUIRE_EQUAL(fault_of(minimal()), "none");
  for (const lie& l : lies) {
    json file = minimal();
    file[json::json_pointer(l.at)] = json::parse(l.value);
    const std::string fault = fault_of(file);
    BOOST_TEST(fault.starts_with("DIR/t.json."), l.at << ": " << fault);
    for (const char* word : l.words)
      BOOST_TEST(fault.find(word) != std::string::npos,
                 l.at << " = " << l.value << ": " << fault);
  }
}

BOOST_AUTO_TEST_CASE(invalid_json_is_refused) {
  for (const char* text : {"", "{", "[]", "null", "{\"a\":\"\\ud800\"}"})
    BOOST_TEST(!hf_tokenizer::parse(text), text);
  std::string deep(1u << 20, '[');
  BOOST_TEST(!hf_tokenizer::parse(deep));
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 12; ++i)
    nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  json file = minimal();
  file["normalizer"] = nested;
  BOOST_TEST(fault_of(file).find("too deep") != std::string::npos);
}

json sequence_of(const json& step, const char* key, std::size_t count) {
  return {{"type", "Sequence"}, {key, std::vector<json>(count, step)}};
}

/// Makes eight letters of each.
const json grow = {
  {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaa"}};

BOOST_AUTO_TEST_CASE(a_normalizer_that_multiplies_a_text_is_refused) {
  const json prepend = {{"type", "Prepend"},
                        {"prepend", std::string(3000, 'b')}};
  for (const json& normal : {sequence_of(grow, "normalizers", 40),
                             sequence_of(prepend, "normalizers", 200)}) {
    json file = minimal();
    file["normalizer"] = normal;
    const auto made = hf_tokenizer::parse(file.dump());
    BOOST_TEST_REQUIRE(bool(made));
    encoder each(*made);
    const auto ids = each.encode("a");
    BOOST_TEST_REQUIRE(!ids);
    BOOST_TEST(ids.message().find("grown_bytes_max") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_pre_tokenizer_that_multiplies_a_text_is_refused) {
  json file = minimal();
  file["pre_tokenizer"] = sequence_of(
    {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}},
    "pretokenizers", 60);
  const auto made = hf_tokenizer::parse(file.dump());
  BOOST_TEST_REQUIRE(bool(made));
  encoder each(*made);
  const auto ids = each.encode("\u00e9");
  BOOST_TEST_REQUIRE(!ids);
  BOOST_TEST(ids.message().find("grown_bytes_max") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_decoder_that_multiplies_a_text_stops) {
  json file = minimal();
  file["decoder"] = sequence_of(grow, "decoders", 40);
  const auto made = hf_tokenizer::parse(file.dump());
  BOOST_TEST_REQUIRE(bool(made));
  const std::vector<token_id> ids(100, 0); // "a"
  const std::string whole = made->decode(ids);
  BOOST_TEST(whole.size() <= grown_bytes_max(100));
  BOOST_TEST(whole.size() >= 100u);
  decode_stream stream(*made);
  for (const token_id id : ids)
    BOOST_TEST(stream.push(id).size() <= grown_bytes_max(1));
  BOOST_TEST(stream.finish().empty());
}

BOOST_AUTO_TEST_CASE(an_added_token_that_the_normalizer_multiplies_is_refused) {
  json file = minimal();
  file["normalizer"] = sequence_of(grow, "normalizers", 40);
  file["added_tokens"][1]["content"] = "aaa";
  file["added_tokens"][1]["special"] = false;
  const std::string fault = fault_of(file);
  BOOST_TEST(fault.find("added_tokens[1].content") != std::string::npos, fault);
  BOOST_TEST(fault.find("grown_bytes_max") != std::string::npos, fault);
}

// The most that a normal form makes of a text.
BOOST_AUTO_TEST_CASE(steps_of_families_stay_within_the_limit) {
  json file = minimal();
  file["normalizer"] = {{"type", "NFKC"}};
  const auto made = hf_tokenizer::parse(file.dump());
  BOOST_TEST_REQUIRE(bool(made));
  encoder each(*made);
  std::string ligatures; // 18 letters each
  for (int i = 0; i < 5000; ++i)
    ligatures += "\uFDFA";
  const auto ids = each.encode(ligatures);
  BOOST_TEST(
    (ids || ids.message().find("grown_bytes_max") == std::string::npos));
}

BOOST_AUTO_TEST_CASE(names_in_a_fault_may_be_shown) {
  json file = minimal();
  file["normalizer"] = {
    {"type", "\x1b[2J\n\u009b\u202e" + std::string(10'000, 'x')}};
  const std::string fault = fault_of(file);
  BOOST_TEST(shoal::core::is_shown(fault));
  BOOST_TEST(fault.size() < 2 * fault_bytes_max);
}

BOOST_AUTO_TEST_CASE(left_out_files_are_reported) {
  json file = minimal();
  file["model"]["dropout"] = 0.1;
  file["padding"] = {{"strategy", "x"}};
  file["truncation"] = {{"max_length", 1}};
  const auto made = hf_tokenizer::parse(file.dump());
  BOOST_REQUIRE(made);
  BOOST_TEST(made->notices().size() == 3u);
  encoder each(*made);
  BOOST_TEST(each.encode("ab")->size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_config_places_bos_and_eos_where_no_template_does) {
  const std::string config =
    R"({"bos_token":{"content":"<s>"},"eos_token":"</s>",
        "add_bos_token":true,"add_eos_token":true})";
  json file = minimal();
  auto made = hf_tokenizer::parse(file.dump(), config);
  BOOST_REQUIRE(made);
  BOOST_TEST(made->bos().value() == 2);
  BOOST_TEST(made->eos().value() == 3);
  const std::vector<token_id> want = {2, 0, 3};
  const std::vector<token_id> bare = {0};
  BOOST_TEST(*encoder(*made).encode("a") == want);
  BOOST_TEST(*encoder(*made).encode("a", false) == bare);
  file["post_processor"] = json::parse(
    R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],
        "special_tokens":{}})");
  made = hf_tokenizer::parse(file.dump(), config);
  BOOST_REQUIRE(made);
  BOOST_TEST(*encoder(*made).encode("a") == bare);
}

BOOST_AUTO_TEST_CASE(a_config_that_lies_is_refused) {
  for (const char* config :
       {"[]", R"({"bos_token":"<x>"})", R"({"bos_token":1})",
        R"({"add_bos_token":true})", R"({"add_eos_token":"yes"})"}) {
    const std::string fault = fault_of(minimal(), config);
    BOOST_TEST(fault.starts_with("tokenizer_config.json"), fault);
  }
}

BOOST_AUTO_TEST_CASE(the_goldens_configs_are_read) {
  const auto mistral = read_tokenizer(tokenizer_folder() / "mistral");
  BOOST_REQUIRE(mistral);
  encoder each(*mistral);
  const auto ids = each.encode("a");
  BOOST_REQUIRE(ids);
  BOOST_TEST(ids->front() == 1);
  BOOST_TEST(ids->back() == 2);
  const auto none = read_tokenizer(tokenizer_folder());
  BOOST_REQUIRE(!none);
  BOOST_TEST(none.message().find("tokenizer.json") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
