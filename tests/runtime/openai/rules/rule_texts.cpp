// tests/runtime/openai/rules/rule_texts.cpp -- random texts that rules allow, and
// whether they allow given ones.
//
//   rule_texts SEED COUNT [TOKENS] < RULES
//
// A rule is a line of JSON: {"kind": "json_schema" | "regex" | "grammar", "text": ...,
// "valid": [TEXT, ...], "invalid": [TEXT, ...]}; for each it writes a line:
//
//   {"error": WHY}                     it was refused
//   {"texts": [...],                   COUNT of them, chosen as served texts are: by
//                                      actors/serving/ruled_text.hpp from logits
//    "unfinished": N,                  texts that were given up
//    "wrong": [WHY, ...]}              a dead end, a valid text that was refused, an
//                                      invalid one that was not
//
// Logits are drawn, and in turn prefer quotes, digits, brackets, or never the end.
// Texts that get long are hurried to their end. A valid text is cut into tokens in
// three ways (bytes, the longest that fit, by chance); each token must be allowed.
// TOKENS is a tokenizer's folder, or a JSON list with a character for each byte; else
// a small vocabulary is used.
#include "actors/serving/ruled_text.hpp"
#include "runtime/core/random.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <unordered_map>

namespace {

using namespace shoal;
using namespace shoal::core::grammar;
using draws = core::cluster::random;
using json = nlohmann::json;

constexpr std::size_t tokens_soft = 100; ///< from here on a text is hurried
constexpr std::size_t tokens_hard = 3'000;
constexpr std::size_t file_bytes_max = std::size_t{64} << 20;

[[noreturn]] void fail(const std::string& why) {
  std::cerr << why << "\n";
  std::exit(1);
}

std::vector<std::string> small_vocabulary() {
  std::vector<std::string> texts;
  for (int c = 0; c != 256; ++c)
    texts.push_back({char(c)});
  texts.insert(texts.end(),
               {"\": ",    "\":",  "\",\"",  "\"}",      "\"]",
                "{\"",     "[\"",  "}}",     "]]",       "}, ",
                "], ",     "true", "false",  "null",     "tr",
                "ue",      "12",   "100",    "0.",       ".5",
                "-1",      "e+",   "name",   "value",    "id",
                "abc",     "a1",   "\\n",    "\\u",      "\\\"",
                "00",      "\n  ", "\n    ", ", ",       ": ",
                "{}",      "[]",   "\"\"",   "\xc3\xa9", "\xf0\x9f\x90\x9f",
                "\xe4\xb8"});
  return texts;
}

/// @param first of tokens that begin a text, if they are others then
std::vector<std::string> read_vocabulary(const char* from, bool first) {
  if (from == nullptr)
    return small_vocabulary();
  if (std::filesystem::is_directory(from)) {
    const auto loaded = model::load_tokenizer(from);
    if (!loaded || !*loaded)
      fail(std::string(from) + ": has no tokenizer");
    auto bytes = (*loaded)->token_bytes(first);
    return bytes ? *std::move(bytes)
                 : (fail(bytes.message()), small_vocabulary());
  }
  const auto file = model::read_file(from, file_bytes_max);
  if (!file)
    fail(file.message());
  std::vector<std::string> out;
  for (const json& text : model::parse_json(*file)) {
    const auto& line = text.get_ref<const std::string&>();
    std::string& bytes = out.emplace_back();
    for (std::size_t at = 0; at < line.size();)
      bytes += char(core::next_code(line, at));
  }
  return out;
}

/// A vocabulary, and logits for its tokens.
class judge {
public:
  judge(const char* vocabulary, std::uint64_t seed) : r_(seed) {
    auto texts = read_vocabulary(vocabulary, false),
         first = read_vocabulary(vocabulary, true);
    for (const std::string& text : texts)
      longest_ = std::max(longest_, text.size());
    end_ = static_cast<core::token_id>(texts.size());
    texts.emplace_back();
    first.emplace_back();
    tokens_ =
      std::make_shared<const token_list>(std::move(texts), std::move(first));
    for (token t = 0; t != tokens_->size(); ++t) {
      ids_.emplace(tokens_->text(t), t);
      first_ids_.emplace(tokens_->first_text(t), t);
    }
    // Drawn by Gumbel's distribution: the greatest one is a choice by chance.
    noise_.resize(2 * tokens_->size());
    for (float& x : noise_)
      x = -std::log(-std::log((float(r_.below(1 << 24)) + 0.5F) / (1 << 24)));
    for (int mode = 0; mode != modes; ++mode)
      biases_.push_back(bias_of(mode));
  }

  json answer(const json& rule, std::size_t count, std::size_t line) {
    const std::string& kind = rule["kind"].get_ref<const std::string&>();
    is_json_ = kind == "json_schema";
    const core::rule_kind as = is_json_          ? core::rule_kind::json_schema
                               : kind == "regex" ? core::rule_kind::regex
                                                 : core::rule_kind::grammar;
    auto made = openai::compile_rule(
      openai::rule_of(as, rule["text"].get_ref<const std::string&>()));
    if (!made)
      return {{"error", made.message()}};
    masks_ = std::make_shared<token_masks>(*std::move(made), tokens_);
    wrong_ = json::array();
    json texts = json::array();
    std::size_t unfinished = 0;
    for (std::size_t k = 0; k != count; ++k)
      if (const auto text = text_by(int((line + k) % drawn_modes)))
        texts.push_back(*text);
      else
        ++unfinished;
    for (const json& text : rule.value("valid", json::array()))
      check_valid(text.get<std::string>());
    for (const json& text : rule.value("invalid", json::array()))
      if (allows(text.get<std::string>()))
        wrong_.push_back("allowed: " + text.get<std::string>());
    return {{"texts", std::move(texts)},
            {"unfinished", unfinished},
            {"wrong", std::move(wrong_)}};
  }

private:
  enum mode { any, quotes, digits, brackets, no_end, hurry, hurry_in_string };
  static constexpr int modes = 7, drawn_modes = 5;

  /// What a way of choosing adds to the logits.
  std::vector<float> bias_of(int mode) const {
    std::vector<float> out(tokens_->size());
    for (token t = 0; t != tokens_->size(); ++t) {
      const std::string& text = tokens_->text(t);
      const auto has = [&](const char* of) {
        return text.find_first_of(of) != text.npos;
      };
      const bool ends = std::size_t(end_) == t;
      if (mode == quotes)
        out[t] = has("\"\\") ? 8 : 0;
      else if (mode == digits)
        out[t] = has("0123456789") ? 8 : 0;
      else if (mode == brackets)
        out[t] = has("[{(") ? 8 : 0;
      else if (mode == no_end)
        out[t] = ends ? -99 : has("\"]})") ? -12 : 0;
      else if (mode == hurry || mode == hurry_in_string)
        out[t] = ends ? 99 : -20 * haste(text, mode == hurry_in_string);
    }
    return out;
  }

  /// What ends a text of JSON soonest, roughly.
  static float haste(const std::string& text, bool in_string) {
    const bool single = text.size() == 1;
    if (in_string)
      return text == "\"" ? 0 : single && text[0] > 0 ? 1 : 3;
    if (text == "}" || text == "]" || text == "null")
      return 0;
    if (text == "\"")
      return 1;
    return !single || text == "," || text == "{" || text == "[" ? 3 : 2;
  }

  static bool ends_in_string(const std::string& text) {
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (inside && text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        inside = !inside;
    return inside;
  }

  std::optional<std::string> text_by(int mode) {
    actors::ruled_text text(masks_, {}, {}, {end_});
    std::string out;
    std::vector<float> logits(tokens_->size()), masked;
    for (std::size_t n = 0; n != tokens_hard; ++n) {
      text.find_allowed();
      if (text.now() == actors::ruled_text::state::complete)
        return out;
      if (n > tokens_soft)
        mode = is_json_ && ends_in_string(out) ? hurry_in_string : hurry;
      const float* const noise = &noise_[r_.below(tokens_->size())];
      const std::vector<float>& bias = biases_[std::size_t(mode)];
      for (std::size_t t = 0; t != logits.size(); ++t)
        logits[t] = noise[t] + bias[t];
      if (text.now() == actors::ruled_text::state::stuck
          || !text.masked(logits, masked)) {
        if (text.now() == actors::ruled_text::state::complete)
          return out;
        wrong_.push_back("a dead end after: " + core::shown(out, 4096));
        return std::nullopt;
      }
      const auto best = static_cast<core::token_id>(
        std::ranges::max_element(masked) - masked.begin());
      if (best == end_)
        return out;
      text.add(best);
      const auto chosen = static_cast<token>(best);
      out += n == 0 ? tokens_->first_text(chosen) : tokens_->text(chosen);
    }
    return std::nullopt;
  }

  bool allows(const std::string& text) const {
    stacks s(masks_->rules());
    return s.may_end(s.step(s.start(), text));
  }

  void check_valid(const std::string& text) {
    enum way { by_bytes, longest, by_chance, ways };
    for (int w = 0; w != ways; ++w) {
      constrained_text t(masks_);
      token_set allowed(tokens_->size());
      for (std::size_t at = 0; at != text.size();) {
        std::vector<token> fitting; // the longest one comes last
        const auto& ids = at == 0 ? first_ids_ : ids_;
        const std::size_t most = w == by_bytes ? 1 : longest_;
        for (std::size_t n = 1; n <= most && at + n <= text.size(); ++n)
          if (const auto id = ids.find(text.substr(at, n)); id != ids.end())
            fitting.push_back(id->second);
        if (fitting.empty())
          break; // the vocabulary cannot write it
        const token next =
          w == longest ? fitting.back() : fitting[r_.below(fitting.size())];
        t.allowed(allowed);
        if (!allowed.has(next) || !t.add(next)) {
          wrong_.push_back("token " + core::shown(tokens_->text(next), 80)
                           + " is refused at byte " + std::to_string(at)
                           + " of: " + text);
          return;
        }
        at +=
          (at == 0 ? tokens_->first_text(next) : tokens_->text(next)).size();
        if (at == text.size() && !t.may_end())
          wrong_.push_back("may not end: " + text);
      }
    }
  }

  draws r_;
  std::shared_ptr<const token_list> tokens_;
  std::unordered_map<std::string, token> ids_, first_ids_;
  std::size_t longest_ = 0;
  core::token_id end_ = 0;
  std::vector<float> noise_;
  std::vector<std::vector<float>> biases_; ///< of each mode
  bool is_json_ = false;
  std::shared_ptr<token_masks> masks_; ///< of the rule
  json wrong_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    fail("usage: rule_texts SEED COUNT [TOKENS]");
  judge j(argc > 3 ? argv[3] : nullptr, std::strtoull(argv[1], nullptr, 10));
  const auto count = std::strtoull(argv[2], nullptr, 10);
  std::size_t line = 0;
  for (std::string text; std::getline(std::cin, text); ++line)
    std::cout << model::json_text(
      j.answer(model::parse_json(text), count, line))
              << "\n";
}
