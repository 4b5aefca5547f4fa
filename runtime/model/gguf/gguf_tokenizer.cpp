// runtime/model/gguf/gguf_tokenizer.cpp -- tokens, merges, words.
// Source: the tokenizers that transformers makes of the same models.
#include "runtime/model/gguf/gguf_tokenizer.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shoal::model::gguf {

namespace {

using json = nlohmann::ordered_json;

/// What the file says of a token.
enum class token_kind : int {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";

/// A longer token of SentencePiece's is in no merge: the work grows by its square.
constexpr std::size_t merged_bytes_max = 256;

/// How words are cut, by tokenizer.ggml.pre.
struct word_rule {
  std::string_view pre;
  const char* pattern;      ///< null: that of ByteLevel itself
  bool normal_form = false; ///< NFC
  bool whole_words = false; ///< a word that is a token is not merged
  bool begins = false;      ///< a text begins with bos, if nothing is said
};
constexpr char llama3_words[] =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
  "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr char qwen2_words[] =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
  "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr word_rule word_rules[] = {
  {"gpt-2", nullptr},
  {"llama-bpe", llama3_words, false, true, true},
  {"qwen2", qwen2_words, true},
  {"deepseek-r1-qwen", qwen2_words, true},
};

class writer {
public:
  explicit writer(const file& from) : from_(from) {}

  result<std::string> run() {
    const auto kind = from_.text("tokenizer.ggml.model");
    if (!kind)
      return kind.why();
    if (*kind != "gpt2" && *kind != "llama")
      return wrong("tokenizer.ggml.model",
                   "is " + core::shown(*kind) + ", which cannot be read");
    if (status ok = read_tokens(); !ok)
      return ok.why();
    out_["version"] = "1.0";
    out_["truncation"] = nullptr;
    out_["padding"] = nullptr;
    add_added_tokens();
    if (status ok = *kind == "gpt2" ? bytes() : characters(); !ok)
      return ok.why();
    return json_text(out_);
  }

private:
  failure wrong(std::string_view key, const std::string& why) const {
    return failure{from_.where() + ": key " + std::string(key) + ": " + why};
  }

  template <class List>
  result<const List*> list(std::string_view key) const {
    const value* v = from_.find(key);
    const List* found = v == nullptr ? nullptr : std::get_if<List>(v);
    if (found == nullptr)
      return wrong(key, v == nullptr ? "is missing" : "is no such list");
    return found;
  }

  bool flag(std::string_view key, bool usual) const {
    const value* v = from_.find(key);
    const bool* b = v == nullptr ? nullptr : std::get_if<bool>(v);
    return b == nullptr ? usual : *b;
  }

  status read_tokens() {
    const auto all = list<texts>(tokens_key);
    if (!all)
      return all.why();
    tokens_ = *all;
    kinds_.assign(tokens_->size(), token_kind::normal);
    constexpr std::string_view key = "tokenizer.ggml.token_type";
    if (from_.find(key) == nullptr)
      return done{};
    const auto kinds = list<numbers>(key);
    if (!kinds)
      return kinds.why();
    if ((*kinds)->size() != tokens_->size())
      return wrong(key, "is not as long as " + std::string(tokens_key));
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const double k = (**kinds)[i];
      if (!(k >= 1 && k <= 6))
        return wrong(key, "item " + std::to_string(i) + " is none");
      kinds_[i] = token_kind(int(k));
    }
    return done{};
  }

  bool is_added(std::size_t i) const {
    return kinds_[i] == token_kind::control
           || kinds_[i] == token_kind::user_defined
           || kinds_[i] == token_kind::unknown;
  }

  /// Whether no token of the vocabulary has an id behind an added one. Then their
  /// order gives the added ones their ids, else the vocabulary has to.
  bool added_are_last() const {
    bool added = false;
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      if (is_added(i))
        added = true;
      else if (added && kinds_[i] != token_kind::unused)
        return false;
    return true;
  }

  void add_added_tokens() {
    json all = json::array();
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      if (is_added(i))
        all.push_back({{"id", i},
                       {"content", (*tokens_)[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", kinds_[i] != token_kind::user_defined}});
    out_["added_tokens"] = std::move(all);
  }

  /// A special token that texts begin or end with; nothing: none.
  std::optional<std::size_t>
  around(const char* flag_key, const char* id_key, bool usual) const {
    if (!flag(flag_key, usual))
      return std::nullopt;
    const auto id = from_.whole(id_key);
    if (!id || *id >= tokens_->size())
      return std::nullopt;
    return std::size_t(*id);
  }

  json template_of(bool begins) const {
    const auto first = around("tokenizer.ggml.add_bos_token",
                              "tokenizer.ggml.bos_token_id", begins);
    const auto last = around("tokenizer.ggml.add_eos_token",
                             "tokenizer.ggml.eos_token_id", false);
    if (!first && !last)
      return nullptr;
    json special = json::object();
    const auto token = [&](std::size_t id) {
      const std::string text((*tokens_)[id]);
      special[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
      return json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
    };
    json single = json::array(), pair = json::array();
    if (first)
      single.push_back(token(*first));
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    if (last)
      single.push_back(token(*last));
    return {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", pair},
            {"special_tokens", special}};
  }

  json vocabulary(bool with_added) const {
    json out = json::object();
    // Its own operator[] looks at each entry.
    json::object_t::Container& entries = out.get_ref<json::object_t&>();
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < tokens_->size(); ++i) {
      if (kinds_[i] == token_kind::unused || (!with_added && is_added(i)))
        continue;
      const std::string_view text = (*tokens_)[i];
      const auto [at, fresh] = places.try_emplace(text, entries.size());
      if (fresh)
        entries.emplace_back(std::string(text), i);
      else
        entries[at->second].second = i;
    }
    return out;
  }

  void put_model(json vocab, json merges, json unknown, bool byte_fallback,
                 bool whole_words) {
    out_["model"] = {{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", std::move(unknown)},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", byte_fallback},
                     {"byte_fallback", byte_fallback},
                     {"ignore_merges", whole_words},
                     {"vocab", std::move(vocab)},
                     {"merges", std::move(merges)}};
  }

  /// GPT-2's kind: bytes as characters.
  status bytes() {
    constexpr std::string_view key = "tokenizer.ggml.pre";
    const auto pre = from_.text(key);
    if (!pre)
      return pre.why();
    const auto rule = std::ranges::find(word_rules, *pre, &word_rule::pre);
    if (rule == std::end(word_rules))
      return wrong(key, "is " + core::shown(*pre) + ", which is not known");
    const auto merges = list<texts>("tokenizer.ggml.merges");
    if (!merges)
      return merges.why();
    out_["normalizer"] =
      rule->normal_form ? json{{"type", "NFC"}} : json(nullptr);
    json level = {{"type", "ByteLevel"},
                  {"add_prefix_space", false},
                  {"trim_offsets", true},
                  {"use_regex", rule->pattern == nullptr}};
    if (rule->pattern == nullptr)
      out_["pre_tokenizer"] = level;
    else
      out_["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers", json::array({{{"type", "Split"},
                                        {"pattern", {{"Regex", rule->pattern}}},
                                        {"behavior", "Isolated"},
                                        {"invert", false}},
                                       level})}};
    out_["post_processor"] = template_of(rule->begins);
    level["use_regex"] = true;
    out_["decoder"] = level;
    json all = json::array();
    for (const std::string_view m : **merges)
      all.push_back(m);
    put_model(vocabulary(!added_are_last()), std::move(all), nullptr, false,
              rule->whole_words);
    return done{};
  }

  /// SentencePiece's kind.
  status characters() {
    constexpr std::string_view key = "tokenizer.ggml.scores";
    const auto scores = list<numbers>(key);
    if (!scores)
      return scores.why();
    if ((*scores)->size() != tokens_->size())
      return wrong(key, "is not as long as " + std::string(tokens_key));
    for (const double score : **scores)
      if (!std::isfinite(score))
        return wrong(key, "has an item that is no finite number");
    constexpr const char* space = "\u2581";
    const bool prefix = flag("tokenizer.ggml.add_space_prefix", true);
    json steps = json::array();
    if (prefix)
      steps.push_back({{"type", "Prepend"}, {"prepend", space}});
    steps.push_back({{"type", "Replace"},
                     {"pattern", {{"String", " "}}},
                     {"content", space}});
    out_["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    out_["pre_tokenizer"] = nullptr;
    out_["post_processor"] = template_of(true);
    json decoders = json::array({{{"type", "Replace"},
                                  {"pattern", {{"String", space}}},
                                  {"content", " "}},
                                 {{"type", "ByteFallback"}},
                                 {{"type", "Fuse"}}});
    if (prefix)
      decoders.push_back(
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    out_["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
    const auto unknown = std::ranges::find(kinds_, token_kind::unknown);
    put_model(vocabulary(true), merges_by(**scores),
              unknown == kinds_.end()
                ? json(nullptr)
                : json((*tokens_)[std::size_t(unknown - kinds_.begin())]),
              true, false);
    return done{};
  }

  struct merge {
    std::string_view left, right;
    double score = 0;
    std::size_t left_length = 0, right_length = 0; ///< in characters
  };

  /// Each way to cut a token into two tokens, the highest score first.
  json merges_by(const numbers& scores) const {
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      ids.emplace((*tokens_)[i], i);
    std::vector<merge> all;
    for (std::size_t i = 0; i < tokens_->size(); ++i) {
      const std::string_view token = (*tokens_)[i];
      if (token.size() > merged_bytes_max)
        continue;
      const std::size_t begin = all.size();
      const std::size_t length = characters_of(token);
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        if (!begins_character(token[cut]))
          continue;
        const auto left = token.substr(0, cut), right = token.substr(cut);
        if (!ids.contains(left) || !ids.contains(right))
          continue;
        const std::size_t n = characters_of(left);
        all.push_back({left, right, scores[i], n, length - n});
      }
      std::ranges::sort(all.begin() + std::ptrdiff_t(begin), all.end(), {},
                        [&](const merge& m) {
                          return std::pair(ids.at(m.left), ids.at(m.right));
                        });
    }
    std::ranges::stable_sort(all, [](const merge& a, const merge& b) {
      return std::tuple(a.score, a.left_length, a.right_length)
             > std::tuple(b.score, b.left_length, b.right_length);
    });
    json out = json::array();
    for (const merge& m : all)
      out.push_back(json::array({m.left, m.right}));
    return out;
  }

  static bool begins_character(char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }
  static std::size_t characters_of(std::string_view text) {
    return std::size_t(std::ranges::count_if(text, begins_character));
  }

  const file& from_;
  const texts* tokens_ = nullptr;
  std::vector<token_kind> kinds_;
  json out_ = json::object();
};

} // namespace

result<std::string> tokenizer_json(const file& from) {
  return writer(from).run();
}

std::string_view chat_template_of(const file& from) {
  const auto text = from.text("tokenizer.chat_template");
  return text ? *text : std::string_view();
}

std::string tokenizer_config_json(const file& from) {
  constexpr std::pair<const char*, std::string_view> named[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"}};
  json out = json::object();
  const value* v = from.find(tokens_key);
  const texts* tokens = v == nullptr ? nullptr : std::get_if<texts>(v);
  for (const auto& [name, key] : named) {
    const auto id = from.whole(key);
    if (id && tokens != nullptr && *id < tokens->size())
      out[name] = (*tokens)[std::size_t(*id)];
  }
  const std::string_view usual = chat_template_of(from);
  const auto with_tools = from.text("tokenizer.chat_template.tool_use");
  if (!usual.empty() && with_tools)
    out["chat_template"] =
      json::array({{{"name", "default"}, {"template", usual}},
                   {{"name", "tool_use"}, {"template", *with_tools}}});
  else if (!usual.empty())
    out["chat_template"] = usual;
  return json_text(out);
}

} // namespace shoal::model::gguf
