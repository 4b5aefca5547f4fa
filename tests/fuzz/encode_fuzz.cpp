// tests/fuzz/encode_fuzz.cpp -- any bytes as a text, and as ids.
//
// Small tokenizers: byte level, with a pattern; byte fallback, with marks for
// spaces, as BPE and as Unigram; one that composes (NFC); and BERT's. All but the
// last two must return the text; every encoder must give the same result twice,
// the second time from its cache; and any ids must decode to UTF-8.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/byte_level.hpp"
#include "runtime/model/text/hf_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>

using namespace shoal::model::text;
using nlohmann::json;

namespace {

hf_tokenizer made_from(const json& file) {
  auto made = hf_tokenizer::parse(file.dump());
  if (!made) {
    std::fprintf(stderr, "%s\n", made.message().c_str());
    std::abort();
  }
  return *made;
}

hf_tokenizer make_byte_level(const json& normal) {
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    vocabulary[to_byte_level({&byte, 1})] = b;
  }
  json merges = json::array();
  int next = 256;
  for (const auto& [left, right] :
       {std::pair("a", "b"), std::pair("ab", "ab"), std::pair("\u0120", "a"),
        std::pair("\u00c3", "\u00a9"), std::pair("b", "a")}) {
    vocabulary[std::string(left) + right] = next++;
    merges.push_back({left, right});
  }
  return made_from(
    {{"normalizer", normal},
     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
     {"decoder", {{"type", "ByteLevel"}}},
     {"added_tokens", {{{"id", next}, {"content", "<s>"}}}},
     {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}});
}

/// Marks for spaces, and bytes, around a model.
hf_tokenizer with_marks(const json& model) {
  const json to_mark = {
    {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const json to_space = {
    {"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  return made_from(
    {{"normalizer", to_mark},
     {"decoder",
      {{"type", "Sequence"},
       {"decoders",
        {to_space, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
     {"model", model}});
}

hf_tokenizer make_unigram() {
  json vocabulary = json::array({{"<unk>", 0}});
  for (int b = 0; b < 256; ++b) {
    char code[8];
    std::snprintf(code, sizeof code, "<0x%02X>", b);
    vocabulary.push_back({code, 0});
  }
  double score = -1;
  for (const char* token : {"a", "aa", "ab", "b", "\u2581", "\u2581\u2581",
                            "\u2581a", "b\u00e9", "aba", "bab"})
    vocabulary.push_back({token, score *= 1.1});
  return with_marks({{"type", "Unigram"},
                     {"unk_id", 0},
                     {"byte_fallback", true},
                     {"vocab", vocabulary}});
}

hf_tokenizer make_bert() {
  json vocabulary = json::object();
  int next = 0;
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##b",
                            "ab", "##ab", "e", "##e", ".", ",", "'", "##aba"})
    vocabulary[token] = next++;
  return made_from(
    {{"normalizer",
      {{"type", "BertNormalizer"},
       {"clean_text", true},
       {"handle_chinese_chars", true},
       {"strip_accents", nullptr},
       {"lowercase", true}}},
     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
     {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
     {"post_processor",
      {{"type", "BertProcessing"},
       {"sep", {"[SEP]", 2}},
       {"cls", {"[CLS]", 1}}}},
     {"model",
      {{"type", "WordPiece"},
       {"unk_token", "[UNK]"},
       {"continuing_subword_prefix", "##"},
       {"max_input_chars_per_word", 20},
       {"vocab", vocabulary}}}});
}

hf_tokenizer make_fallback() {
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) {
    char code[8];
    std::snprintf(code, sizeof code, "<0x%02X>", b);
    vocabulary[code] = b;
  }
  int next = 256;
  json merges = json::array();
  for (const char* one : {"a", "b", "\u2581", "\u00e9"})
    vocabulary[one] = next++;
  for (const auto& [left, right] :
       {std::pair("\u2581", "a"), std::pair("\u2581", "\u2581"),
        std::pair("a", "b"), std::pair("ab", "ab"), std::pair("b", "\u00e9")}) {
    vocabulary[std::string(left) + right] = next++;
    merges.push_back({left, right});
  }
  return with_marks({{"type", "BPE"},
                     {"byte_fallback", true},
                     {"vocab", vocabulary},
                     {"merges", merges}});
}

void check(bool holds) {
  if (!holds)
    std::abort();
}

void try_text(const hf_tokenizer& tokenizer, encoder& each,
              std::string_view text, bool comes_back) {
  const auto ids = each.encode(text);
  check(bool(ids));
  check(*each.encode(text) == *ids);
  const std::string back = tokenizer.decode(*ids, false);
  check(shoal::core::is_utf8(back));
  if (comes_back)
    check(back == shoal::core::replace_broken(text));
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const hf_tokenizer bytes = make_byte_level(nullptr);
  static const hf_tokenizer composed = make_byte_level({{"type", "NFC"}});
  static const hf_tokenizer fallback = make_fallback();
  static const hf_tokenizer unigram = make_unigram();
  static const hf_tokenizer bert = make_bert();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static encoder bytes_encoder(bytes);
  static encoder composed_encoder(composed);
  static encoder fallback_encoder(fallback);
  static encoder unigram_encoder(unigram);
  static encoder bert_encoder(bert);
  try_text(bytes, bytes_encoder, text, true);
  try_text(composed, composed_encoder, text, false);
  try_text(bert, bert_encoder, text, false);
  // A mark in the text itself is returned as a space, the text of a byte's token
  // as that byte.
  const bool has_mark = text.find("\u2581") != std::string_view::npos;
  try_text(fallback, fallback_encoder, text, !has_mark);
  try_text(unigram, unigram_encoder, text,
           !has_mark && text.find("<0x") == std::string_view::npos
             && text.find("<unk>") == std::string_view::npos);
  std::vector<token_id> ids;
  for (std::size_t i = 0; i + 1 < size; i += 2)
    ids.push_back(data[i] << 1 | data[i + 1] >> 7);
  for (const hf_tokenizer* of : {&bytes, &fallback, &unigram, &bert}) {
    check(shoal::core::is_utf8(of->decode(ids)));
    decode_stream stream(*of);
    for (const token_id id : ids)
      check(shoal::core::is_utf8(stream.push(id)));
    check(shoal::core::is_utf8(stream.finish()));
  }
  return 0;
}
