// tests/runtime/model/decode/text_test.cpp -- tokenizer, generation, evaluation.
#include "runtime/model/decode/evaluate.hpp"
#include "runtime/model/decode/generate.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

BOOST_AUTO_TEST_SUITE(text)

using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

/// Logits that leave no choice.
std::vector<float> only(token_id id) {
  std::vector<float> logits(300, -30.0f);
  logits[id] = 30.0f;
  return logits;
}

model_config byte_config() {
  model_config config = tiny_config();
  config.vocab_size = 300;
  config.eos_token_ids = {257};
  return config;
}

/// Feeds a generation the bytes of a text. @returns pieces joined by '|'.
std::string
stream(generate_options options, std::string_view text, finish_reason& finish) {
  const auto device = kernels::make_reference_backend();
  const tokenizer bytes;
  options.temperature = 0;
  generation state(byte_config(), &bytes, options, 1000);
  std::string pieces;
  for (const token_id id : byte_tokenizer().encode(text)) {
    if (state.finish() != finish_reason::none)
      break;
    pieces += state.next(*device, only(id)).text + "|";
  }
  finish = state.finish();
  return pieces;
}

} // namespace

BOOST_AUTO_TEST_CASE(bytes_are_ids_both_ways) {
  const byte_tokenizer t;
  std::string all;
  for (int i = 0; i < 256; ++i)
    all.push_back(static_cast<char>(i));
  const auto ids = t.encode(all);
  BOOST_TEST(ids.size() == 256u);
  BOOST_TEST(ids[200] == 200);
  BOOST_TEST(t.bytes(ids) == all);
  BOOST_TEST(t.bytes(std::vector<token_id>{65, 256, 66, -1}) == "AB");
}

BOOST_AUTO_TEST_CASE(a_stream_never_gives_half_a_character) {
  const std::string whole = "a\u00e9\u20ac\U0001F41Fz";
  for (std::size_t step = 1; step <= whole.size(); ++step) {
    utf8_stream stream;
    std::string out;
    for (std::size_t i = 0; i < whole.size(); i += step) {
      const std::string piece = stream.push(whole.substr(i, step));
      utf8_stream check;
      BOOST_TEST(check.push(piece) == piece);
      BOOST_TEST(check.finish().empty());
      out += piece;
    }
    BOOST_TEST(out + stream.finish() == whole);
  }
}

BOOST_AUTO_TEST_CASE(broken_bytes_become_replacement_characters) {
  const byte_tokenizer t;
  auto decode = [&](std::string_view bytes) {
    return t.decode(t.encode(bytes));
  };
  const std::string r = "\uFFFD";
  BOOST_TEST(decode("a\x80z") == "a" + r + "z");
  BOOST_TEST(decode("\xC0\xAF") == r + r);         // overlong
  BOOST_TEST(decode("\xED\xA0\x80") == r + r + r); // surrogate
  BOOST_TEST(decode("\xF5") == r);                 // beyond U+10FFFF
  BOOST_TEST(decode("\xF0\x9F\x90") == r);         // cut off at the end
  BOOST_TEST(decode("\xE2\x82"
                    "a")
             == r + "a"); // cut off inside
  BOOST_TEST(decode("\xF4\x90\x80\x80") == r + r + r + r);
}

BOOST_AUTO_TEST_CASE(a_directory_names_its_tokenizer) {
  temporary_folder folder;
  const auto none = load_tokenizer(folder.path());
  BOOST_REQUIRE(none);
  BOOST_TEST(!none->has_value());
  write_text(folder / "tokenizer_config.json",
             R"({"tokenizer_class":"ByteTokenizer"})");
  const auto bytes = load_tokenizer(folder.path());
  BOOST_REQUIRE(bytes);
  BOOST_TEST(bytes->has_value());
  for (const char* bad : {"", "[]", "{}", R"({"tokenizer_class":"Other"})"}) {
    write_text(folder / "tokenizer_config.json", bad);
    BOOST_TEST(!load_tokenizer(folder.path()), bad);
  }
}

// Another program reads them as what they say; we know them by what they are.
BOOST_AUTO_TEST_CASE(the_files_of_the_byte_tokenizer_give_bytes) {
  temporary_folder folder;
  const std::string json = byte_tokenizer::to_json();
  const std::string config = byte_tokenizer::config_json(byte_config());
  const auto read = model::text::hf_tokenizer::parse(json, config);
  BOOST_REQUIRE_MESSAGE(read, why(read));
  BOOST_TEST(read->notices().empty());
  BOOST_TEST(read->id_count() == 256u);
  model::text::encoder encoder(*read);
  const byte_tokenizer by;
  std::string text = "it's \xC3\xA9 \xF0\x9F\x90\x9F  \n\t x<|endoftext|>";
  for (char c = 0; c >= 0 && c < 127; ++c)
    text.push_back(c);
  const auto ids = encoder.encode(text);
  BOOST_REQUIRE_MESSAGE(ids, why(ids));
  BOOST_TEST(*ids == by.encode(text), boost::test_tools::per_element());
  BOOST_TEST(read->decode(*ids) == text);

  write_text(folder / "tokenizer_config.json", config);
  const auto kind = [&](const std::string& file) {
    write_text(folder / "tokenizer.json", file);
    const auto found = load_tokenizer(folder.path());
    BOOST_REQUIRE_MESSAGE(found, why(found));
    BOOST_REQUIRE(found->has_value());
    return (*found)->file() == nullptr;
  };
  BOOST_TEST(kind(json));
  std::string narrow = json; // as other programs save it
  std::erase(narrow, '\n');
  BOOST_TEST(kind(narrow));
  std::string other = json;
  other.replace(other.find("\"A\": 65"), 7, "\"A\":300");
  BOOST_TEST(!kind(other));
}

BOOST_AUTO_TEST_CASE(a_tokenizer_json_comes_before_bytes) {
  temporary_folder folder;
  const auto golden = golden_folder() / "tokenizers/llama2";
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(golden / name, folder / name);
  const auto found = load_tokenizer(folder.path());
  BOOST_REQUIRE_MESSAGE(found, why(found));
  BOOST_REQUIRE(found->has_value());
  BOOST_TEST((*found)->id_count() == 963u);
  const auto ids = text_encoder(**found).encode("the");
  BOOST_REQUIRE(ids);
  BOOST_TEST(ids->front() == 1); // <s>

  // A word after the prompt keeps the space that one at the start has not.
  model_config config = byte_config();
  config.vocab_size = 963;
  generate_options options;
  options.temperature = 0;
  const auto device = kernels::make_reference_backend();
  const token_id word = ids->at(1);
  std::vector<float> logits(963, 0.0f);
  logits[static_cast<std::size_t>(word)] = 1;
  generation alone(config, &**found, options, 10);
  generation behind(config, &**found, options, 10);
  behind.after(*ids);
  const std::string first = alone.next(*device, logits).text;
  BOOST_TEST(!first.empty());
  BOOST_TEST(behind.next(*device, logits).text == " " + first);

  write_text(folder / "tokenizer.json", "{}");
  const auto bad = load_tokenizer(folder.path());
  BOOST_REQUIRE(!bad);
  BOOST_TEST(bad.message().find("tokenizer.json.model.vocab")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_that_may_become_a_stop_string_is_held_back) {
  finish_reason finish{};
  generate_options options;
  options.stop = {"END", "NDX"};
  BOOST_TEST(stream(options, "aENdENDzz", finish) == "a|||ENd||||");
  BOOST_TEST((finish == finish_reason::stop));
  options.stop = {"aab"};
  BOOST_TEST(stream(options, "aaab", finish) == "||a||");
  options.max_tokens = 2;
  BOOST_TEST(stream(options, "aaab", finish) == "|aa|");
  BOOST_TEST((finish == finish_reason::length));
}

BOOST_AUTO_TEST_CASE(eos_ends_and_has_no_text) {
  const auto device = kernels::make_reference_backend();
  const tokenizer bytes;
  generation state(byte_config(), &bytes, {}, 10);
  BOOST_TEST(state.next(*device, only('x')).text == "x");
  const auto last = state.next(*device, only(257));
  BOOST_TEST(last.text == "");
  BOOST_TEST(last.id == 257);
  BOOST_TEST((last.finish == finish_reason::stop));
}

BOOST_AUTO_TEST_CASE(a_penalty_counts_prompt_and_text) {
  const auto device = kernels::make_reference_backend();
  generate_options options;
  options.temperature = 0;
  options.repetition_penalty = 1.5f;
  generation state(byte_config(), nullptr, options, 10);
  const std::vector<token_id> prompt{'a'};
  state.after(prompt);
  std::vector<float> logits(258, 0.0f);
  logits['a'] = 3;
  logits['b'] = 2.9f;
  logits['c'] = 2.8f;
  BOOST_TEST(state.next(*device, logits).id == 'b'); // 'a' counts 2
  BOOST_TEST(state.next(*device, logits).id == 'c'); // 'b' does now, too
  BOOST_TEST(state.next(*device, logits).id == 'a'); // all once
}

BOOST_AUTO_TEST_CASE(eos_may_be_others_than_the_configs) {
  const auto device = kernels::make_reference_backend();
  generate_options options;
  options.eos_token_ids = {'x'};
  generation state(byte_config(), nullptr, options, 10);
  BOOST_TEST((state.next(*device, only(257)).finish == finish_reason::none));
  BOOST_TEST((state.next(*device, only('x')).finish == finish_reason::stop));
}

BOOST_AUTO_TEST_CASE(bad_options_and_prompts_are_refused) {
  auto refused = [](auto change) {
    generate_options options;
    change(options);
    return !check(options);
  };
  BOOST_TEST(!refused([](auto&) {}));
  BOOST_TEST(refused([](auto& o) { o.max_tokens = 0; }));
  BOOST_TEST(refused([](auto& o) { o.temperature = -1; }));
  BOOST_TEST(refused([](auto& o) { o.temperature = NAN; }));
  BOOST_TEST(refused([](auto& o) { o.top_p = 0; }));
  BOOST_TEST(refused([](auto& o) { o.top_p = 1.5f; }));
  BOOST_TEST(refused([](auto& o) { o.min_p = -0.1f; }));
  BOOST_TEST(refused([](auto& o) { o.min_p = NAN; }));
  BOOST_TEST(refused([](auto& o) { o.repetition_penalty = 0; }));
  BOOST_TEST(refused([](auto& o) { o.repetition_penalty = INFINITY; }));
  BOOST_TEST(refused([](auto& o) { o.stop = {""}; }));
  BOOST_TEST(refused([](auto& o) { o.stop.resize(17, "x"); }));
  model_rig rig(tiny_config());
  for (const std::vector<token_id>& prompt :
       {std::vector<token_id>{}, {61}, {-1}, std::vector<token_id>(40, 1)})
    BOOST_TEST(!generate(rig.whole(), nullptr, prompt, {}));
}

BOOST_AUTO_TEST_CASE(generation_repeats_by_seed_and_fills_the_positions) {
  model_rig rig(tiny_config());
  generate_options options;
  options.max_tokens = 1000;
  options.seed = 3;
  const std::vector<token_id> prompt = {1, 2, 3};
  std::size_t calls = 0;
  const auto a = generate(rig.whole(), nullptr, prompt, options,
                          [&](const auto&) { return ++calls > 0; });
  const auto b = generate(rig.whole(), nullptr, prompt, options);
  BOOST_REQUIRE(a);
  BOOST_REQUIRE(b);
  BOOST_TEST(a->ids == b->ids, boost::test_tools::per_element());
  BOOST_TEST(a->ids.size() == 37u); // 40 positions
  BOOST_TEST(calls == 37u);
  BOOST_TEST((a->finish == finish_reason::length));
  const auto stopped = generate(rig.whole(), nullptr, prompt, options,
                                [](const auto&) { return false; });
  BOOST_TEST(stopped->ids.size() == 1u);
  BOOST_TEST((stopped->finish == finish_reason::aborted));
}

BOOST_AUTO_TEST_CASE(a_model_that_gives_nan_is_named_broken) {
  model_rig rig(tiny_config());
  rig.units[1].parameters()[0] = NAN;
  const std::vector<token_id> prompt = {1};
  BOOST_TEST(!generate(rig.whole(), nullptr, prompt, {}));
}

BOOST_AUTO_TEST_CASE(logprobs_are_those_of_the_losses) {
  model_rig rig(tiny_config());
  const std::vector<token_id> prompt = {5, 6};
  generate_options options;
  options.max_tokens = 8;
  const auto out = generate(rig.whole(), nullptr, prompt, options);
  BOOST_REQUIRE(out);
  std::vector<token_id> all = prompt;
  all.insert(all.end(), out->ids.begin(), out->ids.end());
  std::vector<float> losses(9);
  forward_work work;
  work.tokens = 9;
  work.ids = std::span(all).first(9);
  work.targets = std::span(all).subspan(1);
  work.keep = false;
  work.losses_out = losses;
  rig.whole().forward(work);
  for (std::size_t i = 0; i < 8; ++i)
    BOOST_TEST(std::abs(losses[i + 1] + out->logprobs[i]) < 1e-4);
}

BOOST_AUTO_TEST_CASE(windows_predict_all_but_their_first_token) {
  model_rig rig(tiny_config());
  std::vector<token_id> sequence;
  for (token_id i = 0; i < 95; ++i)
    sequence.push_back(i * 7 % 61);
  evaluation_sum whole;
  evaluate(rig.whole(), sequence, whole);
  BOOST_TEST(whole.tokens == 39u + 39u + 14u);
  evaluation_sum parts;
  evaluate(rig.whole(), std::span(sequence).first(40), parts);
  evaluate(rig.whole(), std::span(sequence).subspan(40, 40), parts);
  evaluate(rig.whole(), std::span(sequence).subspan(80), parts);
  BOOST_TEST(whole.loss_sum == parts.loss_sum);
  BOOST_TEST(whole.mean().perplexity == std::exp(whole.mean().loss));
  BOOST_TEST(evaluation_sum().mean().tokens == 0u);
}

BOOST_AUTO_TEST_CASE(sequences_come_from_text_and_jsonl) {
  temporary_folder folder;
  write_text(folder / "a.txt", "hello");
  write_text(folder / "b.jsonl", "{\"text\":\"hi\"}\n\n"
                                 "{\"input_ids\":[299,0]}\r\n");
  const std::vector<std::string> paths = {folder.path().string()};
  const tokenizer bytes;
  const byte_tokenizer by;
  const auto all = read_sequences(paths, byte_config(), &bytes);
  BOOST_REQUIRE_MESSAGE(all, why(all));
  const std::vector<std::vector<token_id>> expected = {
    by.encode("hello"), by.encode("hi"), {299, 0}};
  BOOST_TEST((all->all == expected));
  BOOST_TEST(all->tokens == 9u);
  BOOST_TEST(all->bytes == 8u); // an id beyond the bytes has no text
  BOOST_TEST(!read_sequences(paths, byte_config(), nullptr));

  const std::vector<std::string> file = {(folder / "b.jsonl").string()};
  for (const char* bad :
       {"x", "[]", "{}", R"({"text":1})", R"({"input_ids":1})",
        R"({"input_ids":[-1,2]})", R"({"input_ids":[300]})",
        R"({"input_ids":[1.5]})", R"({"input_ids":[7]})", ""}) {
    write_text(folder / "b.jsonl", bad);
    const auto refused = read_sequences(file, byte_config(), &bytes);
    BOOST_REQUIRE_MESSAGE(!refused, bad);
    BOOST_TEST(refused.message().find("b.jsonl") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
