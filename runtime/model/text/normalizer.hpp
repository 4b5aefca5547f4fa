// runtime/model/text/normalizer.hpp -- "normalizer": rewrites text.
//
// NFC, NFD, NFKC, NFKD, Nmt, Precompiled, BertNormalizer, Prepend, Replace,
// Lowercase, Strip, StripAccents and Sequence of them. Immutable: safe from
// several threads.
//
// Errors: parse: an unknown type is named. apply: errors of regex and utf8proc,
//         and a text that grows beyond grown_bytes_max (regex.hpp).
#pragma once

#include "runtime/model/text/models/json_view.hpp"
#include "runtime/model/text/patterns/charsmap.hpp"
#include "runtime/model/text/patterns/regex.hpp"
#include "runtime/model/text/patterns/unicode.hpp"

#include <variant>
#include <vector>

namespace shoal::model::text {

struct prepend_step {
  std::string text;
};
struct replace_step {
  regex pattern;
  std::string content;
};
struct lowercase_step {};
struct strip_step {
  bool left = false;
  bool right = false;
};
struct strip_accents_step {};
struct nmt_step {};
struct bert_step {
  bool clean_text = false;
  bool handle_chinese_chars = false;
  bool strip_accents = false;
  bool lowercase = false;
};
using normalizer_step =
  std::variant<normal_form, prepend_step, replace_step, lowercase_step,
               strip_step, strip_accents_step, nmt_step, bert_step, charsmap>;

class normalizer {
public:
  /// null: no step. Faults go to the view.
  static normalizer parse(const json_view& from);

  /// @param cut_left becomes true if the start of the text was taken away
  status apply(std::string& text, bool& cut_left) const;
  bool empty() const { return steps_.empty(); }

private:
  void add(const json_view& from, int depth);

  std::vector<normalizer_step> steps_;
};

/// {"String": ...} or {"Regex": ...}, of Replace and Split.
result<regex> parse_pattern(const json_view& from);

} // namespace shoal::model::text
