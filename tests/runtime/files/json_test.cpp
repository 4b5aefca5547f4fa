// tests/runtime/files/json_test.cpp -- foreign JSON that nests too deep.
//
// Code that parsed, copied or printed these values by recursion would end the
// test program: 2 million levels need far more than a stack.
#include "runtime/files/json.hpp"
#include "runtime/model/config/config.hpp"
#include "runtime/model/decode/evaluate.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstring>

BOOST_AUTO_TEST_SUITE(json)

namespace bdata = boost::unit_test::data;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

/// Lists nested to this depth.
std::string lists(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

/// Just below the bytes that a config.json may have.
const std::string deep = lists(2'000'000);

std::string member(const std::string& key, const std::string& value) {
  return "{\"" + key + "\":" + value + "}";
}

/// Whether a failure names the value that nests too deep, and does not show all
/// of it.
template <class Value>
void refused(const result<Value>& got, std::string_view where) {
  BOOST_REQUIRE(!got);
  BOOST_TEST(got.message().starts_with(where), got.message());
  BOOST_TEST(got.message().find("nested") != std::string::npos, got.message());
  BOOST_TEST(got.message().size() < 200u);
}

} // namespace

BOOST_AUTO_TEST_CASE(depth_is_that_of_lists_and_objects_outside_of_texts) {
  BOOST_TEST(!nests_too_deep(lists(json_depth_max)));
  BOOST_TEST(nests_too_deep(lists(json_depth_max + 1)));
  const std::string brackets(1000, '[');
  BOOST_TEST(!nests_too_deep("[\"" + brackets + "\"]"));
  BOOST_TEST(!nests_too_deep("[\"\\\"" + brackets + "\\\\\"]"));
  BOOST_TEST(nests_too_deep("[\"\\\\\"," + brackets));
  std::string objects;
  for (std::size_t i = 0; i <= json_depth_max; ++i)
    objects += "{\"a\":";
  BOOST_TEST(nests_too_deep(objects));
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i)
    flat += "[{}],";
  BOOST_TEST(!nests_too_deep(flat + "0]"));
}

BOOST_AUTO_TEST_CASE(deep_or_invalid_json_is_discarded) {
  BOOST_TEST(parse_json(lists(json_depth_max)).is_array());
  BOOST_TEST(parse_json(lists(json_depth_max + 1)).is_discarded());
  BOOST_TEST(parse_json("[1").is_discarded());
  BOOST_TEST(why(parse_json_object("[]", "f")) == "f: is not a JSON object");
  BOOST_TEST(why(parse_json_object("{\"a\" 1}", "f"))
             == "f: is not valid JSON: byte 6");
  BOOST_TEST(why(parse_json_object("{\"a\":1e999}", "f"))
             == "f: is not valid JSON");
  refused(parse_json_object(deep, "f"), "f: is nested deeper than 64 levels");
}

BOOST_AUTO_TEST_CASE(errors_show_little_of_a_value) {
  using value = nlohmann::json;
  BOOST_TEST(shown(value(7)) == "7");
  BOOST_TEST(shown(value("a\"\n")) == "\"a\\\"\\n\"");
  BOOST_TEST(shown(value(lists(2'000))).size() < 100u);
  BOOST_TEST(shown(value::parse("[[1]]")) == "a list");
  BOOST_TEST(shown(value::parse("{}")) == "an object");
}

BOOST_DATA_TEST_CASE(a_deep_config_is_refused,
                     bdata::make({"vocab_size", "rms_norm_eps", "model_type",
                                  "tie_word_embeddings", "rope_scaling",
                                  "layer_types", "mlp_only_layers",
                                  "eos_token_id", "bos_token_id",
                                  "quantization_config", "unknown"}),
                     key) {
  refused(parse_config(member(key, deep), "c.json"), "c.json: ");
  // What may be as deep as this is refused by its kind.
  const auto got = parse_config(member(key, lists(60)), "c.json");
  if (std::string_view(key) != "unknown"
      && std::string_view(key) != "layer_types"
      && std::string_view(key) != "mlp_only_layers") {
    BOOST_REQUIRE(!got);
    BOOST_TEST(got.message().find(key) != std::string::npos);
    BOOST_TEST(got.message().find("[[") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_deep_generation_config_is_refused) {
  refused(parse_generation_config(member("eos_token_id", deep), "g.json"),
          "g.json: ");
}

BOOST_AUTO_TEST_CASE(a_deep_tokenizer_is_refused) {
  refused(text::hf_tokenizer::parse(member("normalizer", deep), {}, "t.json"),
          "t.json: ");
  temporary_folder folder;
  write_text(folder / "tokenizer_config.json", member("tokenizer_class", deep));
  refused(load_tokenizer(folder.path()),
          (folder / "tokenizer_config.json").string() + ": ");
}

BOOST_AUTO_TEST_CASE(deep_safetensors_are_refused) {
  refused(parse_index(member("weight_map", deep), "i.json"), "i.json: ");
  for (const std::string& header :
       {member("a", deep), member("__metadata__", deep)}) {
    std::string file(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file += header;
    refused(parse_safetensors(std::as_bytes(std::span(file)), "w"), "w: ");
  }
}

BOOST_AUTO_TEST_CASE(a_deep_line_of_text_is_refused) {
  temporary_folder folder;
  for (const char* key : {"text", "input_ids"}) {
    write_text(folder / "a.jsonl",
               "{\"text\":\"a\"}\n" + member(key, "[" + deep + "]") + "\n");
    const std::string path = (folder / "a.jsonl").string();
    const tokenizer bytes;
    model_config config;
    config.vocab_size = 256;
    refused(read_sequences(std::span(&path, 1), config, &bytes), path + ":2: ");
  }
}

BOOST_AUTO_TEST_SUITE_END()
