// runtime/model/text/tokenizer_json.cpp -- writes a tokenizer.json.
#include "runtime/model/text/tokenizer_json.hpp"

#include "runtime/files/json.hpp"
#include "runtime/model/text/pre_tokenizer.hpp" // qwen2_pattern

namespace shoal::model::text {

namespace {

using json = nlohmann::ordered_json;

/// @param prefix  in a decoder its default value; it does nothing there
/// @param cuts    by GPT-2's pattern; in a decoder it does nothing
json byte_level(bool prefix, bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

json normalizer_of(word_rules words) {
  return words == word_rules::qwen2 ? json{{"type", "NFC"}} : json();
}

json pre_tokenizer_of(word_rules words) {
  if (words == word_rules::gpt2)
    return byte_level(false, true);
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", qwen2_pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  json out = {{"type", "Sequence"}};
  out["pretokenizers"] = json::array({split, byte_level(false, false)});
  return out;
}

/// Puts a token before a text.
json begin_template(const std::string& token) {
  const json mark = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  auto sequence = [](const char* id, int type) -> json {
    return {{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  json out = {{"type", "TemplateProcessing"}};
  out["single"] = json::array({mark, sequence("A", 0)});
  out["pair"] = json::array({mark, sequence("A", 0), mark, sequence("B", 1)});
  out["special_tokens"][token] = {
    {"id", token}, {"ids", json::array({0})}, {"tokens", json::array({token})}};
  return out;
}

} // namespace

std::string to_json(const bpe_description& from) {
  json all = {
    {"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  all["added_tokens"] = json::array();
  if (!from.begin.empty())
    all["added_tokens"].push_back({{"id", 0},
                                   {"content", from.begin},
                                   {"single_word", false},
                                   {"lstrip", false},
                                   {"rstrip", false},
                                   {"normalized", false},
                                   {"special", true}});
  all["normalizer"] = normalizer_of(from.words);
  all["pre_tokenizer"] = pre_tokenizer_of(from.words);
  all["post_processor"] =
    from.begin.empty() ? json() : begin_template(from.begin);
  all["decoder"] = byte_level(true, true);
  json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", false}};
  // As a vector: an ordered map would search for every new key.
  json::object_t vocabulary;
  for (std::size_t id = 0; id < from.tokens.size(); ++id)
    vocabulary.json::object_t::Container::emplace_back(from.tokens[id], id);
  json merges = json::array();
  for (const auto& [left, right] : from.merges)
    merges.push_back(json::array({from.tokens[left], from.tokens[right]}));
  model["vocab"] = std::move(vocabulary);
  model["merges"] = std::move(merges);
  all["model"] = std::move(model);
  return json_text(all, 2) + "\n";
}

std::string
tokenizer_config_json(const std::string& begin, std::uint64_t length_max) {
  json o = {{"tokenizer_class", "PreTrainedTokenizerFast"},
            {"clean_up_tokenization_spaces", false},
            {"model_max_length", length_max}};
  if (!begin.empty()) {
    o["bos_token"] = begin;
    o["eos_token"] = begin;
  } else { // or a class of transformers adds those that it has by default
    for (const char* none :
         {"bos_token", "eos_token", "unk_token", "pad_token"})
      o[none] = nullptr;
  }
  return json_text(o, 2) + "\n";
}

} // namespace shoal::model::text
