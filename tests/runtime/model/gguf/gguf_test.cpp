// tests/runtime/model/gguf/gguf_test.cpp -- GGUF files against what the package
// gguf makes and reads, and files that lie.
//
// tests/golden/make_gguf_goldens.py made the files.
#include "runtime/model/gguf/gguf_blocks.hpp"
#include "runtime/model/gguf/gguf_directory.hpp"
#include "runtime/model/gguf/gguf_model.hpp"
#include "runtime/model/gguf/gguf_tokenizer.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "tests/runtime/model/text/golden.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numbers>

BOOST_AUTO_TEST_SUITE(gguf)

using namespace shoal;
using namespace shoal::model::gguf;
namespace fs = std::filesystem;
namespace data = boost::unit_test::data;

namespace {

fs::path golden() {
  return tests::tokenizer_folder().parent_path();
}

std::string bytes_of(const char* name) {
  return tests::file_text(golden() / "gguf" / name);
}

auto parsed(std::string_view bytes) {
  return file::parse(std::as_bytes(std::span(bytes)), "it");
}

using temporary_folder = shoal::test::folder;

/// Replaces the first occurrence.
std::string with(std::string text, std::string_view old, std::string_view now) {
  const auto at = text.find(old);
  BOOST_REQUIRE(at != std::string::npos && old.size() == now.size());
  return text.replace(at, old.size(), now);
}

/// Why there is none, or "".
template <class Result>
std::string why(const Result& r) {
  return r ? "" : r.message();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(blocks_are_what_ggml_makes_of_them) {
  const std::string bytes = bytes_of("blocks.gguf");
  const auto from = parsed(bytes);
  BOOST_REQUIRE_MESSAGE(from, why(from));
  const auto expected =
    model::safetensors_source::open(golden() / "gguf" / "blocks.safetensors");
  BOOST_REQUIRE(expected);
  BOOST_TEST(from->tensors().size() == 8u);
  for (const auto& [name, t] : from->tensors()) {
    BOOST_TEST(name == name_of(t.type));
    std::vector<float> is(t.count), want(t.count);
    to_floats(t.type, t.data, is);
    BOOST_REQUIRE(expected->read(name, t.shape, want));
    BOOST_TEST(
      std::memcmp(is.data(), want.data(), t.count * sizeof(float)) == 0, name);
  }
}

BOOST_DATA_TEST_CASE(a_file_has_the_weights_of_its_directory,
                     data::make({"tiny_llama", "tiny_qwen2", "tiny_qwen3"}),
                     name) {
  const temporary_folder folder;
  const auto made = write_directory(
    golden() / "gguf" / (std::string(name) + ".gguf"), folder.path);
  BOOST_REQUIRE_MESSAGE(made, why(made));
  BOOST_TEST(contains(made->no_text, "tokenizer.ggml.model"));
  const auto is = model::load_directory(folder.path);
  const auto want = model::load_directory(golden() / name);
  BOOST_REQUIRE_MESSAGE(is, why(is));
  BOOST_REQUIRE(want);
  auto config = want->config;
  config.sliding_window = 0; // a GGUF file has none
  config.sliding_layers.clear();
  config.rope_scaling = {};                                // the file has none
  config.initializer_range = is->config.initializer_range; // nor this
  BOOST_TEST(model::to_json(is->config) == model::to_json(config));
  BOOST_REQUIRE(is->units.size() == want->units.size());
  for (std::size_t u = 0; u < is->units.size(); ++u) {
    const auto a = is->units[u].parameters(), b = want->units[u].parameters();
    BOOST_REQUIRE(a.size() == b.size());
    BOOST_TEST(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }
}

/// A node converts what a client names: the file may change at any time.
BOOST_AUTO_TEST_CASE(a_file_that_shrinks_meanwhile_is_named) {
  const temporary_folder folder;
  const fs::path path = folder.path / "it.gguf";
  fs::copy_file(golden() / "gguf" / "tiny_llama.gguf", path);
  const auto made = write_directory(
    path, folder.path, [&](std::string_view, std::uint64_t, std::uint64_t) {
      fs::resize_file(path, 4096);
      return true;
    });
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.message()
             == path.string() + ": has become shorter while it was read");
}

BOOST_AUTO_TEST_CASE(llama_3_scales_its_frequencies) {
  const std::string bytes = bytes_of("scaled.gguf");
  const auto from = parsed(bytes);
  BOOST_REQUIRE_MESSAGE(from, why(from));
  const auto config = config_of(*from);
  BOOST_REQUIRE_MESSAGE(config, why(config));
  const auto& scaling = config->rope_scaling;
  BOOST_TEST((scaling.type == kernels::rope_scaling::rule::llama3));
  BOOST_TEST(scaling.factor == 32);
  BOOST_TEST(scaling.original == 8192);
  std::string lie = bytes;
  const auto tensor = from->find_tensor("rope_freqs.weight");
  const auto at = std::size_t(
    tensor->data.data() - reinterpret_cast<const std::byte*>(bytes.data()));
  // A model may have had other positions before, of which the file says nothing.
  for (const double positions : {128., 4096.}) {
    std::vector<float> factors(tensor->count);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const double wave =
        2 * std::numbers::pi
        * std::pow(config->rope_theta, double(i) / double(factors.size()));
      const double part = std::clamp((positions / wave - 1) / 3, 0., 1.);
      factors[i] = float(1 / ((1 - part) / 32 + part));
    }
    std::string old = bytes;
    std::memcpy(old.data() + at, factors.data(),
                factors.size() * sizeof(float));
    const auto less = parsed(old);
    BOOST_REQUIRE(less);
    const auto known = config_of(*less);
    BOOST_REQUIRE_MESSAGE(known, why(known));
    BOOST_TEST(known->rope_scaling.factor == 32);
    BOOST_TEST(known->rope_scaling.original == positions);
  }
  lie[at + 3] = 0x41; // the first factor is 8
  const auto other = parsed(lie);
  BOOST_REQUIRE(other);
  BOOST_TEST(contains(why(config_of(*other)), "rope_freqs.weight"));
}

BOOST_DATA_TEST_CASE(a_file_has_the_words_of_its_tokenizer,
                     data::make({"gpt2", "llama3", "qwen2", "llama2"}), name) {
  const std::string bytes =
    bytes_of(("words_" + std::string(name) + ".gguf").c_str());
  const auto from = parsed(bytes);
  BOOST_REQUIRE_MESSAGE(from, why(from));
  const auto text = tokenizer_json(*from);
  BOOST_REQUIRE_MESSAGE(text, why(text));
  const auto made = model::text::hf_tokenizer::parse(*text);
  BOOST_REQUIRE_MESSAGE(made, why(made));
  const auto want = tests::golden_tokenizer(name);
  model::text::encoder is_it(*made), is_wanted(want);
  std::size_t tokens = 0;
  for (const std::string& sample : tests::samples()) {
    const auto a = is_it.encode(sample), b = is_wanted.encode(sample);
    BOOST_REQUIRE(a && b);
    BOOST_TEST(*a == *b, boost::test_tools::per_element());
    BOOST_TEST(made->decode(*a, false) == want.decode(*b, false));
    tokens += a->size();
  }
  BOOST_TEST(tokens > 1000u);
}

/// As of SmolLM2, and of what Hugging Face's trainers make.
BOOST_AUTO_TEST_CASE(special_tokens_may_come_first) {
  std::string bytes = bytes_of("words_gpt2.gguf");
  const std::string_view key = "tokenizer.ggml.token_type";
  // Behind the key: the types of the value and of its items, and their number.
  const std::size_t first = bytes.find(key) + key.size() + 4 + 4 + 8;
  BOOST_REQUIRE(bytes[first] == 1);
  bytes[first] = 3; // no normal token, but one that controls
  const auto from = parsed(bytes);
  BOOST_REQUIRE_MESSAGE(from, why(from));
  const auto text = tokenizer_json(*from);
  BOOST_REQUIRE_MESSAGE(text, why(text));
  const auto made = model::text::hf_tokenizer::parse(*text);
  BOOST_REQUIRE_MESSAGE(made, why(made));
  BOOST_TEST(made->is_special(0));
  const auto want = tests::golden_tokenizer("gpt2");
  model::text::encoder is_it(*made), is_wanted(want);
  const auto a = is_it.encode("of a token"), b = is_wanted.encode("of a token");
  BOOST_REQUIRE(a && b);
  BOOST_TEST(*a == *b, boost::test_tools::per_element());
}

/// A file with one more key, a text.
std::string
with_text(std::string bytes, std::string_view key, std::string_view text) {
  const auto number = [](std::uint64_t n, std::size_t size) {
    std::string out;
    for (std::size_t i = 0; i < size; ++i)
      out += char(n >> (8 * i) & 0xff);
    return out;
  };
  ++bytes[16]; // the number of keys; 24 bytes come before the first
  return bytes.insert(24, number(key.size(), 8) + std::string(key)
                            + number(8, 4) + number(text.size(), 8)
                            + std::string(text));
}

BOOST_AUTO_TEST_CASE(its_special_tokens_and_chat_template_are_told) {
  const std::string plain = bytes_of("words_llama3.gguf");
  const std::string bytes = with_text(
    with_text(plain, "tokenizer.chat_template.tool_use", "{{ tools }}"),
    "tokenizer.chat_template", "{{ bos_token }}\"");
  const auto from = parsed(bytes);
  BOOST_REQUIRE_MESSAGE(from, why(from));
  BOOST_TEST(chat_template_of(*from) == "{{ bos_token }}\"");
  BOOST_TEST(tokenizer_config_json(*from)
             == R"({"bos_token":"<|begin_of_text|>","chat_template":[)"
                R"({"name":"default","template":"{{ bos_token }}\""},)"
                R"({"name":"tool_use","template":"{{ tools }}"}]})");
  const auto none = parsed(plain);
  BOOST_REQUIRE(none);
  BOOST_TEST(chat_template_of(*none).empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_anywhere_is_refused) {
  const std::string words = bytes_of("words_gpt2.gguf");
  for (std::size_t size = 0; size + 64 < words.size(); ++size)
    BOOST_REQUIRE(!parsed(std::string_view(words).substr(0, size)));
  const std::string weights = bytes_of("tiny_qwen2.gguf");
  const auto cut =
    parsed(std::string_view(weights).substr(0, weights.size() - 100));
  BOOST_REQUIRE(!cut);
  BOOST_TEST(contains(cut.message(), "it: tensor "), cut.message());
  BOOST_TEST(contains(cut.message(), "truncated"), cut.message());
}

BOOST_AUTO_TEST_CASE(a_lie_is_named) {
  const std::string bytes = bytes_of("tiny_qwen2.gguf");
  const auto fault = [&](std::string_view old, std::string_view now) {
    const std::string lie = with(bytes, old, now);
    const auto from = parsed(lie);
    if (!from)
      return from.message();
    const auto config = config_of(*from);
    if (!config)
      return config.message();
    const auto tensors = tensors_of(*from, *config);
    return tensors ? std::string("none") : tensors.message();
  };
  BOOST_TEST(fault("GGUF", "GGML") == "it: is no GGUF file");
  BOOST_TEST(contains(fault("qwen2.block_count", "qwen2.block_c0unt"),
                      "key qwen2.block_count: is missing"));
  BOOST_TEST(contains(fault("blk.1.attn_q.weight", "blk.1.attn_x.weight"),
                      "tensor blk.1.attn_x.weight"));
  BOOST_TEST(
    contains(fault("blk.1.ffn_up.weight", "blk.1.ffn_up.wei\x01ht"), "tensor"));
  BOOST_TEST(contains(fault("token_embd.weight", "token_embe.weight"),
                      "tensor token_embd.weight: is missing"));
  // The family, as its own key tells it.
  std::string other = bytes;
  const auto at = other.find("general.architecture") + 20 + 4 + 8;
  other.replace(at, 5, "gemma");
  const auto from = parsed(other);
  BOOST_REQUIRE(from);
  BOOST_TEST(contains(config_of(*from).message(), "is gemma"));
}

BOOST_AUTO_TEST_CASE(a_missing_or_misshapen_tensor_is_named) {
  const temporary_folder folder;
  const std::string bytes = bytes_of("tiny_llama.gguf");
  const auto fault = [&](std::string text) {
    const fs::path path = folder.path / "lie.gguf";
    std::ofstream(path, std::ios::binary) << text;
    const auto made = write_directory(path, folder.path);
    return made ? std::string("none") : made.message();
  };
  // Of a third block that the keys do not count, and one less than they count.
  std::string more = bytes;
  const auto key = more.find("llama.block_count");
  const auto value = key + std::strlen("llama.block_count") + 4;
  more[value] = 4;
  BOOST_TEST(contains(fault(more), "model.layers.3."), fault(more));
  BOOST_TEST(contains(fault(more), "is missing"));
  std::string wide = bytes;
  const auto ffn = wide.find("llama.feed_forward_length")
                   + std::strlen("llama.feed_forward_length") + 4;
  wide[ffn] = 64;
  BOOST_TEST(contains(fault(wide), "its shape is not that of"), fault(wide));
  BOOST_TEST(contains(fault(wide), "ffn_"));
}

BOOST_AUTO_TEST_SUITE_END()
