// runtime/model/text/normalizer.hpp -- "normalizer": rewrites text.
//
// NFC, NFD, NFKC, NFKD, Prepend, Replace, Lowercase, Strip, StripAccents and
// Sequence of them. Immutable: safe from several threads.
//
// Errors: parse: an unknown type is named. apply: errors of regex and utf8proc,
//         and a text that grows beyond grown_bytes_max (regex.hpp).
#pragma once

#include "runtime/model/text/json_view.hpp"
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
using normalizer_step =
  std::variant<normal_form, prepend_step, replace_step, lowercase_step,
               strip_step, strip_accents_step>;

class normalizer {
public:
  /// null: no step. Faults go to the view.
  static normalizer parse(const json_view& from);

  /// @param cut_left becomes true if the start of the text was stripped
  status apply(std::string& text, bool& cut_left) const;
  bool empty() const { return steps_.empty(); }

private:
  void add(const json_view& from, int depth);

  std::vector<normalizer_step> steps_;
};

/// {"String": ...} or {"Regex": ...}, of Replace and Split.
result<regex> parse_pattern(const json_view& from);

} // namespace shoal::model::text
